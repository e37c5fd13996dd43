"""The log as the brokers hold it, page by page, the next page on its way while this one is read."""

import time
from concurrent.futures import Future
from types import TracebackType
from typing import Any, NamedTuple, Self

from aiokafka.protocol.admin import DescribeConfigsRequest
from aiokafka.protocol.offset import OffsetRequest

from makewhole.kafka.batches import Batch, split
from makewhole.kafka.page import Isolation, Page
from makewhole.kafka.protocol import PartitionFetchRequest
from makewhole.kafka.transactions import AbortedTransaction
from makewhole.kafka.wire import PATIENCE_SECONDS, Cluster, NotNowError
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.window import PartitionRange

_PAGE_BYTES = 8 << 20
_MAX_WAIT_MS = 500
_EARLIEST = -2
_OFFSET_OUT_OF_RANGE = 1
_STALE_TOPIC_ID = (100, 103)
_EMPTY_ANSWERS_FOR_A_HOLE = 3
_TOPIC_RESOURCE = 2
_CLEANUP_POLICY = "cleanup.policy"


class _Answer(NamedTuple):
    """One partition of a fetch answer. Offsets are -1 where the broker does not tell."""

    is_out_of_range: bool
    high_watermark: int
    stable_offset: int
    aborted: tuple[AbortedTransaction, ...]
    data: bytes
    is_throttled: bool


class BrokerLog:
    """A log source over a running cluster. A context manager; `close` ends its connections.

    `patience_seconds` is how long one offset may stay unreachable before a read fails as transient.
    """

    def __init__(
        self, connection: KafkaConnection, *, patience_seconds: float = PATIENCE_SECONDS, page_bytes: int = _PAGE_BYTES
    ) -> None:
        self._cluster = Cluster(connection, patience_seconds=patience_seconds)
        self._patience_seconds = patience_seconds
        self._page_bytes = page_bytes
        self._ahead: tuple[tuple[PartitionRange, int, Isolation], Future[_Answer]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all connections. Safe to call twice."""
        self._cluster.close()

    def check(self, wanted: PartitionRange) -> None:
        """Refuse a topic that was made again under the same name."""
        self._cluster.run(self._check(wanted))

    async def _check(self, wanted: PartitionRange) -> None:
        topic = await self._cluster.topic(wanted.topic, is_fresh=True)
        if topic.topic_id != wanted.topic_id:
            raise RefusedError(
                f"Topic {wanted.topic} was deleted and made again: its id is {topic.topic_id}, the range belongs to "
                f"{wanted.topic_id}. Read the range from its archive, or start a new baseline for the new topic"
            )

    def fetch(self, wanted: PartitionRange, offset: int, isolation: Isolation) -> Page:
        """The page at `offset`; waits for it as long as patience lasts."""
        deadline, empty_answers = time.monotonic() + self._patience_seconds, 0
        while True:
            answer = self._answer(wanted, offset, isolation)
            if answer.is_out_of_range:
                start = self._cluster.run(self._log_start(wanted))
                if start > offset:
                    return Page(log_start=start)
            elif batches := list(split(answer.data)):
                self._look_ahead(wanted, batches, isolation)
                return Page(data=answer.data, batches=batches, aborted=answer.aborted)
            limit = answer.stable_offset if isolation == "committed" else answer.high_watermark
            if offset < limit and not answer.is_throttled and not answer.data:
                empty_answers += 1
                if empty_answers >= _EMPTY_ANSWERS_FOR_A_HOLE and self._cluster.run(self._is_compacted(wanted.topic)):
                    return Page(hole_end=limit)
            if time.monotonic() > deadline:
                raise TransientError(_why(wanted, offset, answer, isolation))
            time.sleep(0.05)

    def _answer(self, wanted: PartitionRange, offset: int, isolation: Isolation) -> _Answer:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == (wanted, offset, isolation):
            return ahead[1].result()
        return self._cluster.run(self._fetch(wanted, offset, isolation))

    def _look_ahead(self, wanted: PartitionRange, batches: list[Batch], isolation: Isolation) -> None:
        following = batches[-1].end_offset
        if batches[-1].base_offset < following < wanted.hi:
            work = self._cluster.start(self._fetch(wanted, following, isolation))
            self._ahead = ((wanted, following, isolation), work)

    async def _fetch(self, wanted: PartitionRange, offset: int, isolation: Isolation) -> _Answer:
        what = f"records of {wanted.topic} partition {wanted.partition} at offset {offset}"
        return await self._cluster.patiently(what, lambda: self._fetch_once(wanted, offset, isolation))

    async def _fetch_once(self, wanted: PartitionRange, offset: int, isolation: Isolation) -> _Answer:
        topic = await self._cluster.topic(wanted.topic)
        if topic.topic_id != wanted.topic_id:
            await self._check(wanted)
            raise NotNowError("the topic's description is out of date")
        request = PartitionFetchRequest(
            topic_id=topic.raw_id,
            partition=wanted.partition,
            offset=offset,
            isolation=1 if isolation == "committed" else 0,
            max_bytes=self._page_bytes,
            max_wait_ms=_MAX_WAIT_MS,
        )
        response = await self._cluster.ask_leader(wanted.topic, wanted.partition, request)
        return await self._read(wanted, response)

    async def _read(self, wanted: PartitionRange, response: Any) -> _Answer:
        thing = f"{wanted.topic} partition {wanted.partition}"
        self._cluster.refuse(response.error_code, thing)
        if not response.topics or not response.topics[0][1]:
            raise NotNowError(f"an empty answer for {thing}")
        _, code, high_watermark, stable_offset, _, aborted, _, data, _ = response.topics[0][1][0]
        if code in _STALE_TOPIC_ID:
            await self._check(wanted)
        if code != _OFFSET_OUT_OF_RANGE:
            self._cluster.refuse(code, thing)
        return _Answer(
            is_out_of_range=code == _OFFSET_OUT_OF_RANGE,
            high_watermark=high_watermark,
            stable_offset=stable_offset,
            aborted=tuple(AbortedTransaction(producer_id=one[0], first_offset=one[1]) for one in aborted or ()),
            data=data or b"",
            is_throttled=response.throttle_time_ms > 0,
        )

    async def _log_start(self, wanted: PartitionRange) -> int:
        request = OffsetRequest(-1, 0, [(wanted.topic, [(wanted.partition, _EARLIEST)])])

        async def attempt() -> int:
            response = await self._cluster.ask_leader(wanted.topic, wanted.partition, request)
            _, code, _, offset = response.topics[0][1][0]
            self._cluster.refuse(code, f"{wanted.topic} partition {wanted.partition}")
            return int(offset)

        return await self._cluster.patiently(f"log start of {wanted.topic} partition {wanted.partition}", attempt)

    async def _is_compacted(self, topic: str) -> bool:
        request = DescribeConfigsRequest([(_TOPIC_RESOURCE, topic, [_CLEANUP_POLICY])])

        async def attempt() -> bool:
            response = await self._cluster.ask_any(request)
            code, _, _, _, entries = response.resources[0]
            self._cluster.refuse(code, f"settings of topic {topic}")
            return any(entry[0] == _CLEANUP_POLICY and "compact" in str(entry[1]) for entry in entries)

        return await self._cluster.patiently(f"settings of topic {topic}", attempt)


def _why(wanted: PartitionRange, offset: int, answer: _Answer, isolation: Isolation) -> str:
    """Why nothing comes at an offset that should exist."""
    thing = f"{wanted.topic} partition {wanted.partition}: offset {offset} of [{wanted.lo}, {wanted.hi}) cannot be read"
    if answer.data:
        return f"{thing}, its batch is cut off at {len(answer.data)} bytes. Read with larger pages"
    if answer.is_out_of_range or answer.high_watermark <= offset:
        return (
            f"{thing}, the log ends before it: truncated, or its replicas lag. Check the leader epochs, then try again"
        )
    if isolation == "committed" and answer.stable_offset <= offset:
        return f"{thing}, an open transaction holds the log at {answer.stable_offset}. Try again when it has ended"
    return f"{thing}, the broker answers with nothing. Try again"
