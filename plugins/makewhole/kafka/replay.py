"""Writes chunks of records exactly once: each chunk is one transaction that holds the records and the marker offset.

The marker is the committed offset of a consumer group that nobody ever joins: its value is the number of chunks done.
`init_transactions` first fences and aborts whoever used the same transactional id before; only then is the marker true.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import PermanentError, TransientError

MARKER_TOPIC = "makewhole-markers"
_TIMEOUT_SECONDS = 30.0
_TRANSACTION_TIMEOUT_MS = 60_000
_BATCH_OVERHEAD_BYTES = 1024  # of a record alone in its batch, generously
_NO_OFFSET = -1001
_ANY_PARTITION = -1
_ERRORS_ONLY = 3
_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
_NO_COORDINATOR_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._WAIT_COORD,
)
_COORDINATOR_PAUSE_SECONDS = 0.2
_PERMANENT = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError._AUTHENTICATION,
)


class FencedError(TransientError):
    """Another producer with the same transactional id has come after this one."""


@dataclass(frozen=True, kw_only=True)
class ReplayRecord:
    """A record to write. `partition` None: by the partitioner. `timestamp_ms` None: now."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp_ms: int | None
    partition: int | None

    @property
    def size_bytes(self) -> int:
        headers = sum(len(name.encode()) + len(value or b"") + 10 for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers + 30


@dataclass(frozen=True, kw_only=True)
class TopicRules:
    """What the broker would refuse in this topic."""

    partitions: frozenset[int]
    max_message_bytes: int
    max_ahead_ms: int
    max_behind_ms: int
    is_create_time: bool

    def refusal(self, record: ReplayRecord, now_ms: int) -> str | None:
        """Why the broker would not take the record, if so. One such record would abort its whole chunk."""
        if record.partition is not None and record.partition not in self.partitions:
            return f"unfit: the topic has no partition {record.partition} any more"
        if record.size_bytes + _BATCH_OVERHEAD_BYTES > self.max_message_bytes:
            return f"unfit: with its lineage headers the record exceeds max.message.bytes ({self.max_message_bytes})"
        if self.is_create_time and record.timestamp_ms is not None:
            if record.timestamp_ms - now_ms > self.max_ahead_ms:
                return "unfit: its timestamp is further ahead than message.timestamp.after.max.ms allows"
            if now_ms - record.timestamp_ms > self.max_behind_ms:
                return "unfit: its timestamp is older than message.timestamp.before.max.ms allows"
        return None


class ReplayWriter:
    """One plan's way into one topic. `identity` is both transactional id and marker group."""

    def __init__(self, connection: KafkaConnection, topic: str, identity: str) -> None:
        self._connection, self._topic, self._identity = connection, topic, identity
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None

    @property
    def marker(self) -> str:
        """Where the receipts are, for people."""
        return f"{MARKER_TOPIC}/0 of group {self._identity}"

    def open(self) -> int | None:
        """Fence every earlier producer of this plan, then say how many chunks are done; None when there is no marker.

        May be called again after any error: the producer is made anew, never reused.
        """
        self.close()
        with self._mapped("open"):
            ensure_marker_topic(self._connection)
            self._producer = Producer(self._producer_properties())
            self._producer.init_transactions(_TIMEOUT_SECONDS)
            self._consumer = Consumer(
                _without_partitioner(self._connection)
                | {"group.id": self._identity, "isolation.level": "read_committed"}
            )
            found = _committed(self._consumer)
        if found.error is not None:
            raise TransientError(
                f"Kafka {self._connection.id}: the marker of {self._identity} cannot be read; try again"
            )
        return None if found.offset == _NO_OFFSET else int(found.offset)

    def rules(self) -> TopicRules:
        """What the topic accepts now."""
        with self._mapped("describe"):
            return topic_rules(self._connection, self._topic)

    def write(self, chunk: int, records: Sequence[ReplayRecord]) -> None:
        """Records and marker in one transaction. After any error call `open` again: it knows whether it happened.

        Raises:
            FencedError: another runner took this plan's transactional id.
            TransientError: the outcome is not known, or the transaction failed.
        """
        if self._producer is None or self._consumer is None:
            raise TransientError(f"{self._identity}: write before open")
        with self._mapped("write"):
            self._producer.begin_transaction()
            for record in records:
                self._produce(record)
            self._producer.send_offsets_to_transaction(
                [TopicPartition(MARKER_TOPIC, 0, chunk + 1)],
                self._consumer.consumer_group_metadata(),
                _TIMEOUT_SECONDS,
            )
            self._producer.commit_transaction(_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Let go of producer and consumer; an open transaction is left to the next `open` to abort."""
        producer, consumer, self._producer, self._consumer = self._producer, self._consumer, None, None
        if producer is not None:
            producer.purge()
        if consumer is not None:
            consumer.close()

    def _produce(self, record: ReplayRecord) -> None:
        assert self._producer is not None
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=_ANY_PARTITION if record.partition is None else record.partition,
                    timestamp=_timestamp(record.timestamp_ms),
                )
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _producer_properties(self) -> dict[str, Any]:
        return dict(self._connection.properties) | {
            "log_level": _ERRORS_ONLY,
            "transactional.id": self._identity,
            "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "retry.backoff.ms": 5,  # twice as fast as the default between short transactions
            "message.max.bytes": 1_000_000_000,  # the topic decides, see TopicRules
        }

    @contextmanager
    def _mapped(self, what: str) -> Iterator[None]:
        """Kafka's errors as ours."""
        try:
            yield
        except KafkaException as error:
            kafka_error: KafkaError = error.args[0]
            text = f"Kafka {self._connection.id}, {self._identity}: {what} failed ({kafka_error.name()})"
            if kafka_error.code() in _FENCED:
                raise FencedError(f"{text}: another runner came after this one") from error
            if kafka_error.code() in _PERMANENT:
                raise PermanentError(f"{text}: grant it, then run the plan again") from error
            raise TransientError(f"{text}: try again; what happened is read from the marker") from error


def ensure_marker_topic(connection: KafkaConnection) -> None:
    """The topic whose group offsets are the markers: one partition, never a record, created when absent."""
    admin = _admin(connection)
    metadata = admin.list_topics(timeout=_TIMEOUT_SECONDS)
    if MARKER_TOPIC in metadata.topics:
        return
    replicas = min(3, len(metadata.brokers))
    future = admin.create_topics([NewTopic(MARKER_TOPIC, num_partitions=1, replication_factor=replicas)])[MARKER_TOPIC]
    try:
        future.result(timeout=_TIMEOUT_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _committed(consumer: Consumer) -> TopicPartition:
    """The marker as committed. A group that is asked for the first time may have no coordinator yet: asked again."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            return consumer.committed([TopicPartition(MARKER_TOPIC, 0)], timeout=_TIMEOUT_SECONDS)[0]
        except KafkaException as error:
            if error.args[0].code() not in _NO_COORDINATOR_YET or time.monotonic() > deadline:
                raise
            time.sleep(_COORDINATOR_PAUSE_SECONDS)


def topic_rules(connection: KafkaConnection, topic: str) -> TopicRules:
    """The topic's partitions and limits, from metadata and its configuration.

    Raises:
        PermanentError: the topic is not there.
    """
    admin = _admin(connection)
    metadata = admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
    if metadata.error is not None or not metadata.partitions:
        raise PermanentError(f"Kafka {connection.id} has no topic {topic}; nothing was replayed to it")
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs: Mapping[str, str] = {
        name: entry.value
        for name, entry in admin.describe_configs([resource])[resource].result(_TIMEOUT_SECONDS).items()
    }
    return TopicRules(
        partitions=frozenset(metadata.partitions),
        max_message_bytes=int(configs["max.message.bytes"]),
        max_ahead_ms=int(configs["message.timestamp.after.max.ms"]),
        max_behind_ms=int(configs["message.timestamp.before.max.ms"]),
        is_create_time=configs["message.timestamp.type"] == "CreateTime",
    )


def _timestamp(milliseconds: int | None) -> int:
    """As librdkafka takes it: 0 is now, so that the first millisecond of 1970 has to become the second."""
    if milliseconds is None or milliseconds < 0:
        return 0
    return max(milliseconds, 1)


def now_ms() -> int:
    """This machine's clock, in milliseconds since 1970."""
    return int(time.time() * 1000)


def lineage(*, plan: str, window: str, seq: int, origin: str, chunk: int) -> list[tuple[str, bytes]]:
    """The headers that mark a record as ours, so that it is never counted as a duplicate later."""
    values = {"plan": plan, "window": window, "seq": seq, "origin": origin, "chunk": chunk}
    return [(f"makewhole-{name}", str(value).encode()) for name, value in values.items()]


def _admin(connection: KafkaConnection) -> AdminClient:
    return AdminClient(_without_partitioner(connection))


def _without_partitioner(connection: KafkaConnection) -> dict[str, Any]:
    """The connection's properties, without what only a producer understands."""
    return {name: value for name, value in connection.properties.items() if name != "partitioner"}
