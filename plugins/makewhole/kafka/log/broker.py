"""Read the log of the brokers page by page; the next page is fetched while this one is read.

Every fetch names the leader epoch that we take for the present one, and that of the batch before: a deposed leader
refuses, and a new leader whose log diverges from the one that was read says where (KIP-320, KIP-595).
"""

import time
from concurrent.futures import Future
from typing import Any, NamedTuple

from aiokafka.errors import TopicAuthorizationFailedError
from aiokafka.protocol.admin import DescribeConfigsRequest
from aiokafka.protocol.offset import OffsetRequest

from makewhole.kafka.lineage import divergence
from makewhole.kafka.log.aborted_transactions import AbortedTransaction
from makewhole.kafka.log.batches import Batch, find_defect, split_batches
from makewhole.kafka.log.page import Isolation, LogPage
from makewhole.kafka.log.page_walk import first_reachable
from makewhole.kafka.offsets import EpochEnd
from makewhole.kafka.wire.cluster import PATIENCE_SECONDS, Cluster, NotNowError
from makewhole.kafka.wire.protocol import (
    NO_EPOCH,
    LeaderEpochEndRequest,
    PartitionFetchRequest,
    diverging_offset,
)
from makewhole.model.closing import ClosingContext
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.window import PartitionRange

_PAGE_BYTES = 8 << 20
_MAX_WAIT_MS = 500
_EARLIEST = -2
_OFFSET_OUT_OF_RANGE = 1
_STALE_TOPIC_ID = (100, 103)
# Error codes of a broker that cannot read its own log; the last has other meanings, too.
_CORRUPT, _INVALID, _FAILED = 2, 87, -1
_ANSWERS_WITHOUT_A_BATCH = 3
_TOPIC_RESOURCE = 2
_CLEANUP_POLICY = "cleanup.policy"


class _FetchedPartition(NamedTuple):
    """One partition of a fetch answer. Offsets are -1 where the broker does not report them."""

    error_code: int
    high_watermark: int
    stable_offset: int
    aborted: tuple[AbortedTransaction, ...]
    data: bytes
    is_throttled: bool
    diverging: int | None

    @property
    def is_out_of_range(self) -> bool:
        return self.error_code == _OFFSET_OUT_OF_RANGE

    @property
    def is_corrupt(self) -> bool:
        return self.error_code in (_CORRUPT, _INVALID)


class _FetchPosition(NamedTuple):
    """Place of a fetch: an offset of a range, behind a batch of leader epoch `last_epoch`."""

    wanted: PartitionRange
    offset: int
    isolation: Isolation
    last_epoch: int = NO_EPOCH


class BrokerLog(ClosingContext):
    """Log source over a running cluster. A context manager; `close` ends its connections.

    `patience_seconds` is how long one offset may stay unreachable before a read fails as transient.
    """

    def __init__(
        self, connection: KafkaConnection, *, patience_seconds: float = PATIENCE_SECONDS, page_bytes: int = _PAGE_BYTES
    ) -> None:
        self._cluster = Cluster(connection, patience_seconds=patience_seconds)
        self._patience_seconds = patience_seconds
        self._page_bytes = page_bytes
        self._prefetched: tuple[_FetchPosition, Future[_FetchedPartition]] | None = None
        self._next_position: _FetchPosition | None = None
        self._policies: dict[str, str | None] = {}

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

    def fetch(self, wanted: PartitionRange, offset: int, isolation: Isolation) -> LogPage:
        """Return the page at `offset`; waits for it as long as patience lasts."""
        deadline, in_vain = time.monotonic() + self._patience_seconds, 0
        position = _FetchPosition(wanted, offset, isolation, self._epoch_before(wanted, offset))
        while True:
            answer = self._answer(position)
            if answer.diverging is not None:
                raise TransientError(_truncated_message(position, answer.diverging))
            if answer.is_out_of_range:
                start = self._cluster.run(self._log_start(wanted))
                if start > offset:
                    return LogPage(log_start=start)
            elif batches := list(split_batches(answer.data)):
                self._prefetch(position, batches)
                return LogPage(data=answer.data, batches=batches, aborted=answer.aborted)
            limit = answer.stable_offset if isolation == "committed" else answer.high_watermark
            is_late = time.monotonic() > deadline
            in_vain += answer.is_corrupt or (offset < limit and not answer.is_throttled)
            if (in_vain >= _ANSWERS_WITHOUT_A_BATCH or (is_late and answer.error_code == _FAILED)) and (
                page := self._without_batch(position, answer, limit)
            ):
                return page
            if is_late:
                raise TransientError(_no_answer_message(position, answer))
            time.sleep(0.05)

    def _without_batch(self, position: _FetchPosition, answer: _FetchedPartition, limit: int) -> LogPage | None:
        """Return what it means that an offset below the log's end gives no batch; None when that is not certain."""
        wanted, isolation = position.wanted, position.isolation
        if (reachable := self._reachable(wanted, position.offset, position.offset, isolation)) is not None:
            sound = self._cluster.run(self._fetch(_FetchPosition(wanted, reachable[0], isolation)))
            batches = list(split_batches(sound.data))
            return LogPage(broken_end=reachable[1], data=sound.data, batches=batches, aborted=sound.aborted)
        if answer.is_corrupt or answer.data:
            return LogPage(broken_end=wanted.hi)
        is_hole = self.hole_reason(wanted, position.offset, limit) is None
        return LogPage(hole_end=limit) if is_hole else None

    def next_batch(self, wanted: PartitionRange, offset: int, likely: int, isolation: Isolation) -> int:
        """Return where the first batch begins that the broker can give behind the damaged one at `offset`."""
        if offset < likely < wanted.hi and self._found_at(wanted, likely, likely, isolation) == likely:
            return likely
        reachable = self._reachable(wanted, offset, offset + 1, isolation)
        return wanted.hi if reachable is None else min(reachable[1], wanted.hi)

    def _reachable(
        self, wanted: PartitionRange, behind: int, lowest: int, isolation: Isolation
    ) -> tuple[int, int] | None:
        """Return (offset to ask for, base offset) of the first reachable batch that begins at `lowest` or later."""
        return first_reachable(lambda at: self._found_at(wanted, at, lowest, isolation), behind, wanted.hi)

    def _found_at(self, wanted: PartitionRange, at: int, lowest: int, isolation: Isolation) -> int | None:
        """Return the base offset of the batch that a fetch at an offset finds; None when none from `lowest` on is."""
        answer = self._cluster.run(self._fetch(_FetchPosition(wanted, at, isolation), max_bytes=1))
        batch = next(split_batches(answer.data), None)
        if batch is None or batch.base_offset < lowest:
            return None
        # Behind a wrong length, anything may be taken for a batch: unless it is sound, it must hold the offset.
        return batch.base_offset if batch.base_offset <= at or find_defect(batch, answer.data) is None else None

    def intact_end(self, wanted: PartitionRange) -> int:
        """Return up to where the range still is the one that was frozen: leaders know where earlier epochs ended."""
        if not wanted.leader_epochs:
            return wanted.hi
        frozen_under, present = wanted.leader_epochs[-1][0], self._cluster.run(self._present_epoch(wanted))
        if present == frozen_under:
            return wanted.hi
        end = divergence(lambda epoch: self._cluster.run(self._epoch_end(wanted, epoch)), wanted.leader_epochs, 0)
        return min(end, wanted.hi)

    def hole_reason(self, wanted: PartitionRange, start: int, end: int) -> str | None:  # noqa: ARG002
        """Return why a hole is not compaction's work; None where `cleanup.policy` compacts now."""
        if wanted.topic not in self._policies:
            self._policies[wanted.topic] = self._cluster.run(self._cleanup_policy(wanted.topic))
        policy = self._policies[wanted.topic]
        if policy is None:
            return "no batch holds these offsets, and cleanup.policy may not be read (DescribeConfigs)"
        return None if "compact" in policy else f"no batch holds these offsets, and cleanup.policy is {policy}"

    def _epoch_before(self, wanted: PartitionRange, offset: int) -> int:
        """Return the leader epoch of the last batch read before `offset` in this range; -1 when there is none."""
        known = self._next_position
        if known is None or known.wanted != wanted or known.offset > offset:
            return NO_EPOCH
        return known.last_epoch

    def _answer(self, position: _FetchPosition) -> _FetchedPartition:
        prefetched, self._prefetched = self._prefetched, None
        if prefetched is not None and prefetched[0] == position:
            return prefetched[1].result()
        return self._cluster.run(self._fetch(position))

    def _prefetch(self, position: _FetchPosition, batches: list[Batch]) -> None:
        """Start to fetch the next page. A damaged epoch (no checksum covers it) must not be taken for the last."""
        following = batches[-1].end_offset
        present = self._cluster.known_epoch(position.wanted.topic, position.wanted.partition)
        epochs = [position.last_epoch, *(batch.leader_epoch for batch in batches)]
        last_epoch = max(epoch for epoch in epochs if epoch <= max(present, position.last_epoch))
        self._next_position = position._replace(offset=following, last_epoch=last_epoch)
        if batches[-1].base_offset < following < position.wanted.hi:
            self._prefetched = (self._next_position, self._cluster.start(self._fetch(self._next_position)))

    async def _fetch(self, position: _FetchPosition, max_bytes: int | None = None) -> _FetchedPartition:
        what = f"records of {position.wanted.topic} partition {position.wanted.partition} at offset {position.offset}"
        return await self._cluster.retry(what, lambda: self._fetch_once(position, max_bytes or self._page_bytes))

    async def _fetch_once(self, position: _FetchPosition, max_bytes: int) -> _FetchedPartition:
        wanted = position.wanted
        topic = await self._cluster.topic(wanted.topic)
        if topic.topic_id != wanted.topic_id:
            await self._check(wanted)
            raise NotNowError("the topic's description is out of date")
        request = PartitionFetchRequest(
            topic_id=topic.raw_id,
            partition=wanted.partition,
            offset=position.offset,
            leader_epoch=topic.leader_epochs.get(wanted.partition, NO_EPOCH),
            last_epoch=position.last_epoch,
            isolation=1 if position.isolation == "committed" else 0,
            max_bytes=max_bytes,
            max_wait_ms=_MAX_WAIT_MS,
        )
        response = await self._cluster.ask_leader(wanted.topic, wanted.partition, request)
        return await self._read(wanted, response)

    async def _read(self, wanted: PartitionRange, response: Any) -> _FetchedPartition:
        thing = f"{wanted.topic} partition {wanted.partition}"
        self._cluster.raise_for_code(response.error_code, thing)
        if not response.topics or not response.topics[0][1]:
            raise NotNowError(f"an empty answer for {thing}")
        _, code, high_watermark, stable_offset, _, aborted, _, data, tags = response.topics[0][1][0]
        if code in _STALE_TOPIC_ID:
            await self._check(wanted)
        if code not in (_OFFSET_OUT_OF_RANGE, _CORRUPT, _INVALID, _FAILED):
            self._cluster.raise_for_code(code, thing)
        return _FetchedPartition(
            error_code=code,
            high_watermark=high_watermark,
            stable_offset=stable_offset,
            aborted=tuple(AbortedTransaction(producer_id=entry[0], first_offset=entry[1]) for entry in aborted or ()),
            data=data or b"",
            is_throttled=response.throttle_time_ms > 0,
            diverging=diverging_offset(tags),
        )

    async def _log_start(self, wanted: PartitionRange) -> int:
        request = OffsetRequest(-1, 0, [(wanted.topic, [(wanted.partition, _EARLIEST)])])

        async def attempt() -> int:
            response = await self._cluster.ask_leader(wanted.topic, wanted.partition, request)
            _, code, _, offset = response.topics[0][1][0]
            self._cluster.raise_for_code(code, f"{wanted.topic} partition {wanted.partition}")
            return int(offset)

        return await self._cluster.retry(f"log start of {wanted.topic} partition {wanted.partition}", attempt)

    async def _present_epoch(self, wanted: PartitionRange) -> int:
        """Return the partition's present leader epoch, at least that of the leader which froze the range."""
        thing = f"{wanted.topic} partition {wanted.partition}"

        async def attempt() -> int:
            topic = await self._cluster.topic(wanted.topic, is_fresh=True)
            present = topic.leader_epochs.get(wanted.partition, NO_EPOCH)
            if present < wanted.leader_epochs[-1][0]:
                raise NotNowError(f"a broker names leader epoch {present} of {thing}, which is past")
            return present

        return await self._cluster.retry(f"leader epoch of {thing}", attempt)

    async def _epoch_end(self, wanted: PartitionRange, epoch: int) -> EpochEnd | None:
        thing = f"{wanted.topic} partition {wanted.partition}"

        async def attempt() -> EpochEnd | None:
            topic = await self._cluster.topic(wanted.topic)
            present = topic.leader_epochs.get(wanted.partition, NO_EPOCH)
            request = LeaderEpochEndRequest(wanted.topic, {wanted.partition: epoch}, leader_epoch=present)
            response = await self._cluster.ask_leader(wanted.topic, wanted.partition, request)
            code, _, found_epoch, end_offset = response.topics[0][1][0]
            self._cluster.raise_for_code(code, thing)
            return None if end_offset < 0 else EpochEnd(found_epoch, end_offset)

        return await self._cluster.retry(f"end of leader epoch {epoch} of {thing}", attempt)

    async def _cleanup_policy(self, topic: str) -> str | None:
        """Return the topic's `cleanup.policy`; None where we may not read it."""
        request = DescribeConfigsRequest([(_TOPIC_RESOURCE, topic, [_CLEANUP_POLICY])])

        async def attempt() -> str | None:
            response = await self._cluster.ask_any(request)
            code, _, _, _, entries = response.resources[0]
            if code == TopicAuthorizationFailedError.errno:
                return None
            self._cluster.raise_for_code(code, f"settings of topic {topic}")
            return next(str(entry[1]) for entry in entries if entry[0] == _CLEANUP_POLICY)

        return await self._cluster.retry(f"settings of topic {topic}", attempt)


def _truncated_message(position: _FetchPosition, diverging: int) -> str:
    wanted = position.wanted
    return (
        f"{wanted.topic} partition {wanted.partition}: a change of leader cut the log back to offset "
        f"{diverging} while [{wanted.lo}, {wanted.hi}) was read; the read stood at offset {position.offset}, "
        f"behind a batch of leader epoch {position.last_epoch}. Read the range again from its start"
    )


def _no_answer_message(position: _FetchPosition, answer: _FetchedPartition) -> str:
    """Return why nothing comes at an offset that should exist."""
    wanted, offset = position.wanted, position.offset
    thing = f"{wanted.topic} partition {wanted.partition}: offset {offset} of [{wanted.lo}, {wanted.hi}) cannot be read"
    if answer.error_code == _FAILED:
        return f"{thing}, the broker fails at it. See the broker's own log, then try again"
    if answer.is_out_of_range or answer.high_watermark <= offset:
        return (
            f"{thing}, the log ends before it: truncated, or its replicas lag. Check the leader epochs, then try again"
        )
    if position.isolation == "committed" and answer.stable_offset <= offset:
        return f"{thing}, an open transaction holds the log at {answer.stable_offset}. Try again when it has ended"
    return f"{thing}, the broker answers with nothing. Try again"
