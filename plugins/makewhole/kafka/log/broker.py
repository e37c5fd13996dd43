"""The log as the brokers hold it, page by page, the next page on its way while this one is read.

Every fetch names the leader epoch that we take for the present one, and that of the batch before: a deposed leader
refuses, and a new leader whose log left the one that was read says where (KIP-320, KIP-595).
"""

import time
from concurrent.futures import Future
from typing import Any, NamedTuple

from aiokafka.errors import TopicAuthorizationFailedError
from aiokafka.protocol.admin import DescribeConfigsRequest
from aiokafka.protocol.offset import OffsetRequest

from makewhole.kafka.lineage import divergence
from makewhole.kafka.log.aborted_transactions import AbortedTransaction
from makewhole.kafka.log.batches import Batch, defect, split
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
# A broker that cannot read its own log says one of these; the last may mean anything else, too.
_CORRUPT, _INVALID, _FAILED = 2, 87, -1
_ANSWERS_WITHOUT_A_BATCH = 3
_TOPIC_RESOURCE = 2
_CLEANUP_POLICY = "cleanup.policy"


class _FetchedPartition(NamedTuple):
    """One partition of a fetch answer. Offsets are -1 where the broker does not tell."""

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
    """What is asked for: records of a range at an offset, behind a batch of leader epoch `last_epoch`."""

    wanted: PartitionRange
    offset: int
    isolation: Isolation
    last_epoch: int = NO_EPOCH


class BrokerLog(ClosingContext):
    """A log source over a running cluster. A context manager; `close` ends its connections.

    `patience_seconds` is how long one offset may stay unreachable before a read fails as transient.
    """

    def __init__(
        self, connection: KafkaConnection, *, patience_seconds: float = PATIENCE_SECONDS, page_bytes: int = _PAGE_BYTES
    ) -> None:
        self._cluster = Cluster(connection, patience_seconds=patience_seconds)
        self._patience_seconds = patience_seconds
        self._page_bytes = page_bytes
        self._ahead: tuple[_FetchPosition, Future[_FetchedPartition]] | None = None
        self._behind: _FetchPosition | None = None
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
        """The page at `offset`; waits for it as long as patience lasts."""
        deadline, in_vain = time.monotonic() + self._patience_seconds, 0
        place = _FetchPosition(wanted, offset, isolation, self._epoch_before(wanted, offset))
        while True:
            answer = self._answer(place)
            if answer.diverging is not None:
                raise TransientError(_truncated(place, answer.diverging))
            if answer.is_out_of_range:
                start = self._cluster.run(self._log_start(wanted))
                if start > offset:
                    return LogPage(log_start=start)
            elif batches := list(split(answer.data)):
                self._look_ahead(place, batches)
                return LogPage(data=answer.data, batches=batches, aborted=answer.aborted)
            limit = answer.stable_offset if isolation == "committed" else answer.high_watermark
            is_late = time.monotonic() > deadline
            in_vain += answer.is_corrupt or (offset < limit and not answer.is_throttled)
            if (in_vain >= _ANSWERS_WITHOUT_A_BATCH or (is_late and answer.error_code == _FAILED)) and (
                page := self._without_batch(place, answer, limit)
            ):
                return page
            if is_late:
                raise TransientError(_why(place, answer))
            time.sleep(0.05)

    def _without_batch(self, place: _FetchPosition, answer: _FetchedPartition, limit: int) -> LogPage | None:
        """What it means that an offset below the log's end has no batch to give; None when nothing is sure."""
        wanted, isolation = place.wanted, place.isolation
        if (found := self._reachable(wanted, place.offset, place.offset, isolation)) is not None:
            there = self._cluster.run(self._fetch(_FetchPosition(wanted, found[0], isolation)))
            return LogPage(broken_end=found[1], data=there.data, batches=list(split(there.data)), aborted=there.aborted)
        if answer.is_corrupt or answer.data:
            return LogPage(broken_end=wanted.hi)
        is_hole = self.hole_reason(wanted, place.offset, limit) is None
        return LogPage(hole_end=limit) if is_hole else None

    def next_batch(self, wanted: PartitionRange, offset: int, likely: int, isolation: Isolation) -> int:
        """Where the first batch begins that the broker can give behind the damaged one at `offset`."""
        if offset < likely < wanted.hi and self._found_at(wanted, likely, likely, isolation) == likely:
            return likely
        found = self._reachable(wanted, offset, offset + 1, isolation)
        return wanted.hi if found is None else min(found[1], wanted.hi)

    def _reachable(
        self, wanted: PartitionRange, behind: int, lowest: int, isolation: Isolation
    ) -> tuple[int, int] | None:
        """(offset to ask for, base offset) of the first batch to be had that begins at `lowest` or later."""
        return first_reachable(lambda at: self._found_at(wanted, at, lowest, isolation), behind, wanted.hi)

    def _found_at(self, wanted: PartitionRange, at: int, lowest: int, isolation: Isolation) -> int | None:
        """The base offset of the batch that is found when asking for an offset; None when none from `lowest` on is."""
        answer = self._cluster.run(self._fetch(_FetchPosition(wanted, at, isolation), max_bytes=1))
        batch = next(split(answer.data), None)
        if batch is None or batch.base_offset < lowest:
            return None
        # Behind a length that lies, anything may be taken for a batch: unless it is sound, it must hold the offset.
        return batch.base_offset if batch.base_offset <= at or defect(batch, answer.data) is None else None

    def intact_end(self, wanted: PartitionRange) -> int:
        """Up to where the range still is the one that was frozen: leaders know where earlier epochs ended."""
        if not wanted.leader_epochs:
            return wanted.hi
        frozen_under, present = wanted.leader_epochs[-1][0], self._cluster.run(self._present_epoch(wanted))
        if present == frozen_under:
            return wanted.hi
        end = divergence(lambda epoch: self._cluster.run(self._epoch_end(wanted, epoch)), wanted.leader_epochs, 0)
        return min(end, wanted.hi)

    def hole_reason(self, wanted: PartitionRange, start: int, end: int) -> str | None:  # noqa: ARG002
        """Compaction explains a hole where `cleanup.policy` has it now."""
        if wanted.topic not in self._policies:
            self._policies[wanted.topic] = self._cluster.run(self._cleanup_policy(wanted.topic))
        policy = self._policies[wanted.topic]
        if policy is None:
            return "no batch holds these offsets, and cleanup.policy may not be read (DescribeConfigs)"
        return None if "compact" in policy else f"no batch holds these offsets, and cleanup.policy is {policy}"

    def _epoch_before(self, wanted: PartitionRange, offset: int) -> int:
        """The leader epoch of the last batch read before `offset`, when it was read in this range."""
        behind = self._behind
        return behind.last_epoch if behind is not None and behind.wanted == wanted and behind.offset <= offset else -1

    def _answer(self, place: _FetchPosition) -> _FetchedPartition:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == place:
            return ahead[1].result()
        return self._cluster.run(self._fetch(place))

    def _look_ahead(self, place: _FetchPosition, batches: list[Batch]) -> None:
        """Ask for the page behind this one. A damaged epoch (no checksum covers it) must not be taken for the last."""
        following = batches[-1].end_offset
        present = self._cluster.known_epoch(place.wanted.topic, place.wanted.partition)
        epochs = [place.last_epoch, *(batch.leader_epoch for batch in batches)]
        last_epoch = max(epoch for epoch in epochs if epoch <= max(present, place.last_epoch))
        self._behind = place._replace(offset=following, last_epoch=last_epoch)
        if batches[-1].base_offset < following < place.wanted.hi:
            self._ahead = (self._behind, self._cluster.start(self._fetch(self._behind)))

    async def _fetch(self, place: _FetchPosition, max_bytes: int | None = None) -> _FetchedPartition:
        what = f"records of {place.wanted.topic} partition {place.wanted.partition} at offset {place.offset}"
        return await self._cluster.retry(what, lambda: self._fetch_once(place, max_bytes or self._page_bytes))

    async def _fetch_once(self, place: _FetchPosition, max_bytes: int) -> _FetchedPartition:
        wanted = place.wanted
        topic = await self._cluster.topic(wanted.topic)
        if topic.topic_id != wanted.topic_id:
            await self._check(wanted)
            raise NotNowError("the topic's description is out of date")
        request = PartitionFetchRequest(
            topic_id=topic.raw_id,
            partition=wanted.partition,
            offset=place.offset,
            leader_epoch=topic.leader_epochs.get(wanted.partition, NO_EPOCH),
            last_epoch=place.last_epoch,
            isolation=1 if place.isolation == "committed" else 0,
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
            aborted=tuple(AbortedTransaction(producer_id=one[0], first_offset=one[1]) for one in aborted or ()),
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
        """The partition's leader epoch of now, at least that of the leader which froze the range."""
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
            request = LeaderEpochEndRequest(wanted.topic, wanted.partition, epoch, leader_epoch=present)
            response = await self._cluster.ask_leader(wanted.topic, wanted.partition, request)
            code, _, found_epoch, end_offset = response.topics[0][1][0]
            self._cluster.raise_for_code(code, thing)
            return None if end_offset < 0 else EpochEnd(found_epoch, end_offset)

        return await self._cluster.retry(f"end of leader epoch {epoch} of {thing}", attempt)

    async def _cleanup_policy(self, topic: str) -> str | None:
        """The topic's `cleanup.policy`; None where we may not read it."""
        request = DescribeConfigsRequest([(_TOPIC_RESOURCE, topic, [_CLEANUP_POLICY])])

        async def attempt() -> str | None:
            response = await self._cluster.ask_any(request)
            code, _, _, _, entries = response.resources[0]
            if code == TopicAuthorizationFailedError.errno:
                return None
            self._cluster.raise_for_code(code, f"settings of topic {topic}")
            return next(str(entry[1]) for entry in entries if entry[0] == _CLEANUP_POLICY)

        return await self._cluster.retry(f"settings of topic {topic}", attempt)


def _truncated(place: _FetchPosition, diverging: int) -> str:
    wanted = place.wanted
    return (
        f"{wanted.topic} partition {wanted.partition}: a change of leader cut the log back to offset "
        f"{diverging} while [{wanted.lo}, {wanted.hi}) was read; the read stood at offset {place.offset}, "
        f"behind a batch of leader epoch {place.last_epoch}. Read the range again from its start"
    )


def _why(place: _FetchPosition, answer: _FetchedPartition) -> str:
    """Why nothing comes at an offset that should exist."""
    wanted, offset = place.wanted, place.offset
    thing = f"{wanted.topic} partition {wanted.partition}: offset {offset} of [{wanted.lo}, {wanted.hi}) cannot be read"
    if answer.error_code == _FAILED:
        return f"{thing}, the broker fails at it. See the broker's own log, then try again"
    if answer.is_out_of_range or answer.high_watermark <= offset:
        return (
            f"{thing}, the log ends before it: truncated, or its replicas lag. Check the leader epochs, then try again"
        )
    if place.isolation == "committed" and answer.stable_offset <= offset:
        return f"{thing}, an open transaction holds the log at {answer.stable_offset}. Try again when it has ended"
    return f"{thing}, the broker answers with nothing. Try again"
