"""Send requests to the brokers of one cluster: connections, leaders, retries.

Built on aiokafka's connection class (authentication, framing, version negotiation), which is semi-internal: the
version is pinned, and it stays in this folder. The event loop runs in a thread of its own, so that callers stay
synchronous and the next page can arrive while this one is decoded.
"""

import asyncio
import base64
import logging
import random
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from aiokafka import errors
from aiokafka.conn import AIOKafkaConnection, collect_hosts, create_conn

from makewhole.kafka.wire.protocol import BrokersRequest, TopicMetadataRequest
from makewhole.kafka.wire.security import connection_arguments
from makewhole.model.closing import ClosingContext
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError, PermanentError, Problem, TransientError

# At debug level aiokafka logs whole answers, payloads included.
logging.getLogger("aiokafka").setLevel(logging.WARNING)
logging.getLogger("aiokafka.conn").setLevel(logging.CRITICAL)

PATIENCE_SECONDS = 30.0
_REQUEST_TIMEOUT_MS = 10_000
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 1.0
_UNKNOWN_TOPIC_TRIES = 4
_UNREACHABLE = (OSError, asyncio.TimeoutError, errors.KafkaConnectionError, errors.RequestTimedOutError)
_REFUSED = (
    errors.TopicAuthorizationFailedError,
    errors.GroupAuthorizationFailedError,
    errors.ClusterAuthorizationFailedError,
    errors.SaslAuthenticationFailed,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
)
# A connection that ended during TLS proves nothing about certificates.
_TLS_ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic incarnation as the brokers describe it now. `leaders`: partition to node id, -1 when there is none."""

    name: str
    topic_id: str
    leaders: Mapping[int, int]
    leader_epochs: Mapping[int, int]

    @property
    def raw_id(self) -> bytes:
        return base64.urlsafe_b64decode(self.topic_id + "==")


class NotNowError(Exception):
    """An answer that a refreshed leader or a retry may mend. Never leaves this package."""


class Cluster(ClosingContext):
    """Connections to the brokers of a cluster: finds the right one, refreshes leaders, retries.

    Gives up after `patience_seconds` (30 when not given).
    """

    def __init__(self, connection: KafkaConnection, *, patience_seconds: float | None = None) -> None:
        self.connection = connection
        self.patience_seconds = PATIENCE_SECONDS if patience_seconds is None else patience_seconds
        self._arguments = connection_arguments(connection) | {"request_timeout_ms": _REQUEST_TIMEOUT_MS}
        self._connections: dict[int, AIOKafkaConnection] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._topics: dict[str, Topic] = {}
        self._silent: set[int] = set()  # brokers that left the last request unanswered
        self._epochs: dict[tuple[str, str], dict[int, int]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="makewhole-kafka", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close all connections and end the loop. Safe to call twice."""
        if self._loop.is_closed():
            return
        self.start(self._close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        pending = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        closing = [future for connection in self._connections.values() if (future := connection.close()) is not None]
        self._connections.clear()
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, *closing, return_exceptions=True)

    def start(self, work: Coroutine[Any, Any, _T]) -> "Future[_T]":
        """Run a coroutine on the cluster's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the cluster's loop and wait for it."""
        return self.start(work).result()

    async def brokers(self) -> Mapping[int, tuple[str, int]]:
        """Return the addresses of the brokers by their ids.

        Raises:
            TransientError: no broker answers.
        """
        answer = await self.retry("addresses of the brokers", lambda: self._send_anywhere(BrokersRequest()))
        self._brokers = {broker[0]: (broker[1], broker[2]) for broker in answer.brokers}
        return self._brokers

    async def topic(self, name: str, *, is_fresh: bool = False) -> Topic:
        """Return the topic's id and leaders, cached until a leader answers that it is none.

        Raises:
            ConfigurationError: the topic does not exist.
            TransientError: no broker answers.
        """
        if is_fresh or name not in self._topics:
            self._topics[name] = await self.retry(f"description of topic {name}", lambda: self._describe(name))
        return self._topics[name]

    async def _describe(self, name: str) -> Topic:
        for attempt in range(_UNKNOWN_TOPIC_TRIES):  # a topic made a moment ago is not known to every broker yet
            answer = await self._send_anywhere(TopicMetadataRequest(name))
            self._brokers = {broker[0]: (broker[1], broker[2]) for broker in answer.brokers}
            code, _, topic_id, _, partitions, *_ = answer.topics[0]
            if code != errors.UnknownTopicOrPartitionError.errno:
                self.raise_for_code(code, f"topic {name}")
                partitions = sorted(partitions, key=lambda partition: partition[1])
                return self._not_older(
                    Topic(
                        name=name,
                        topic_id=_id_text(topic_id),
                        leaders={partition[1]: partition[2] for partition in partitions},
                        leader_epochs={partition[1]: partition[3] for partition in partitions},
                    )
                )
            await asyncio.sleep(0.2 * (attempt + 1))
        raise ConfigurationError(
            [
                Problem(
                    file=f"connection {self.connection.id}",
                    path="topic",
                    found=f"topic {name!r} does not exist in the cluster at {self.connection.bootstrap}",
                    remedy="Create the topic, or correct its name or the connection",
                )
            ]
        )

    def _not_older(self, topic: Topic) -> Topic:
        """Refuse the answer of a broker that has not heard of the latest elections: its leader may be deposed."""
        known = self._epochs.setdefault((topic.name, topic.topic_id), {})
        for partition, epoch in topic.leader_epochs.items():
            if epoch < known.get(partition, epoch):
                raise NotNowError(f"a broker names the leader of {topic.name} partition {partition} before the present")
            known[partition] = epoch
        return topic

    def known_epoch(self, topic: str, partition: int) -> int:
        """Return the partition's leader epoch as last described; -1 when it was not."""
        known = self._topics.get(topic)
        return -1 if known is None else known.leader_epochs.get(partition, -1)

    async def ask_leader(self, topic: str, partition: int, request: Any) -> Any:
        """Send to the partition's leader. The caller checks the answer's error codes, by `raise_for_code`."""
        known = await self.topic(topic)
        if partition not in known.leaders:
            raise ConfigurationError(
                [
                    Problem(
                        file=f"connection {self.connection.id}",
                        path="topic",
                        found=f"topic {topic!r} has no partition {partition}, only {len(known.leaders)}",
                        remedy="Ask for the partitions that the topic has",
                    )
                ]
            )
        return await self.ask(known.leaders[partition], request)

    async def ask(self, node: int, request: Any) -> Any:
        """Send to one broker."""
        return await self._send(node, request)

    async def ask_any(self, request: Any) -> Any:
        """Send to whichever broker answers."""
        return await self._send_anywhere(request)

    async def retry(self, what: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Repeat the attempt until it succeeds or patience ends. `what` names the thing for the message.

        Raises:
            TransientError: no answer in time; the message holds the last reason.
            PermanentError: the brokers refuse us.
        """
        deadline, pause = time.monotonic() + self.patience_seconds, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return await attempt()
            except _REFUSED as error:
                raise PermanentError(self._message(what, error) + ". Correct the credentials or the rights") from error
            except (*_UNREACHABLE, NotNowError, errors.KafkaError) as error:
                if (refusal := _tls_refusal(error)) is not None:
                    remedy = "Correct security.protocol or the certificates (ssl.*)"
                    raise PermanentError(f"{self._message(what, refusal)}. {remedy}") from error
                self._topics.clear()
                if time.monotonic() + pause > deadline:
                    remedy = "Check that the brokers are up and that security.protocol fits their listener; try again"
                    raise TransientError(f"{self._message(what, error)}. {remedy}") from error
            except NotImplementedError as error:
                raise PermanentError(self._message(what, error) + ". Kafka 3.1 or newer is needed") from error
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _message(self, what: str, error: BaseException) -> str:
        reason = str(error) or type(error).__name__
        return f"Kafka at {self.connection.bootstrap} gave no {what}: {reason}"

    @staticmethod
    def raise_for_code(code: int, thing: str) -> None:
        """Raise the error that a code of an answer stands for; 0 is none.

        Raises:
            NotNowError: a retry with fresh leaders may help.
        """
        if code == 0:
            return
        kind = errors.for_code(code)
        if kind in _REFUSED:
            raise kind(thing)
        raise NotNowError(f"{kind.__name__} ({code}) for {thing}")

    async def _send(self, node: int, request: Any) -> Any:
        if node not in self._brokers:
            raise NotNowError("the partition has no leader" if node < 0 else f"broker {node} is not known")
        try:
            answer = await (await self._connected(node)).send(request)
        except (TimeoutError, OSError, errors.KafkaConnectionError):
            self._silent.add(node)
            if (connection := self._connections.pop(node, None)) is not None:
                connection.close()
            raise
        self._silent.discard(node)
        return answer

    async def _connected(self, node: int) -> AIOKafkaConnection:
        connection = self._connections.get(node)
        if connection is None or not connection.connected():
            host, port = self._brokers[node]
            connection = self._connections[node] = await create_conn(host, port, **self._arguments)
        return connection

    async def _send_anywhere(self, request: Any) -> Any:
        """Send to any broker; those that were silent come last, since each may cost the whole timeout again."""
        last: BaseException = NotNowError("no broker is known")
        nodes = random.sample(sorted(self._brokers), len(self._brokers))
        for node in sorted(nodes, key=lambda broker: broker in self._silent):
            try:
                return await self._send(node, request)
            except (*_UNREACHABLE, NotNowError) as error:
                last = error
        for host, port, _ in collect_hosts(self.connection.bootstrap):
            try:
                connection = await create_conn(host, port, **self._arguments)
            except _UNREACHABLE as error:
                last = error
                continue
            try:
                return await connection.send(request)
            except _UNREACHABLE as error:
                last = error
            finally:
                connection.close()
        raise last


def _tls_refusal(error: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS error behind an error when one side does not trust the other; None when that is not the cause."""
    while error is not None:
        if isinstance(error, ssl.SSLError) and not isinstance(error, _TLS_ENDED):
            return error
        error = error.__cause__
    return None


def _id_text(raw: bytes) -> str:
    """Return a topic id as Kafka's own tools print it."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
