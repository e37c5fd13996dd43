"""Read what a consumer group has committed in a topic from Kafka's own log of commits, with who committed it.

`__consumer_offsets` holds a record for each commit. One that was sent with a transaction is in a transactional batch
with the producer id and epoch of that transaction, and stands when its marker says so; any other has the producer id
−1. Source: `OffsetCommitKey` and `OffsetCommitValue` of Kafka's group coordinator.

The log is compacted: of what a group committed in a partition the newest is kept, and what is older as long as its
segment is written to. Offsets that no record holds are a hole, in which a commit may have been.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from makewhole.compute.judge.copier_commits import CopierCommits, OffsetCommit
from makewhole.kafka.log.batches import COMMIT_MARKER, HEADER_BYTES, Batch, marker_type
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.compression import CodecError, decompress
from makewhole.kafka.log.page import LogPage
from makewhole.kafka.log.page_walk import checked_batches
from makewhole.kafka.log.records import BatchToDecode, decode
from makewhole.kafka.offsets import TopicLog
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError, TransientError
from makewhole.model.window import PartitionRange

COMMIT_LOG = "__consumer_offsets"
_READ_MOST = 1_000_000  # offsets, from the end: most batches hold one commit, and take some 10 µs each
_KEY_VERSIONS = (b"\x00\x00", b"\x00\x01")
_PARTITION = struct.Struct(">i")
_VALUE = struct.Struct(">hq")


def group_commits(
    connection: KafkaConnection, group: str, topic: str, *, log: str = COMMIT_LOG, patience_seconds: float = 30.0
) -> CopierCommits:
    """Return the commits of a group in a topic that stand, as far back as they are known.

    Raises:
        PermanentError: we may not read the log of commits (Describe and Read).
        TransientError: the brokers do not answer.
    """
    try:
        with TopicLog(connection, log, patience_seconds=patience_seconds) as commit_log:
            state = commit_log.describe()
            partition = group_partition(group, len(state.partitions))
            start, end = (ends[partition].offset for ends in (commit_log.starts(), commit_log.high_watermarks()))
    except ConfigurationError:  # no group has committed anything in this cluster yet
        return CopierCommits(group=group, is_whole=True)
    wanted = PartitionRange(
        topic=log, topic_id=state.topic_id, partition=partition, lo=max(start, end - _READ_MOST), hi=end
    )
    walk = _Walk(group=group, topic=topic, is_whole=wanted.lo == 0)
    with BrokerLog(connection, patience_seconds=patience_seconds) as source:
        _read(source, wanted, walk)
    return CopierCommits(group=group, commits=tuple(walk.standing), is_whole=walk.is_whole)


def group_partition(group: str, partitions: int) -> int:
    """Return the partition of the log of commits that has those of a group: Java's hash of its name."""
    hashed = 0
    units = group.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        hashed = (31 * hashed + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed >= 1 << 31 else hashed
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


@dataclass(frozen=True, kw_only=True)
class _Commit:
    """A record of the log: what a group reads next in a partition; `next_offset` None: that is forgotten."""

    at: int
    partition: int
    next_offset: int | None
    batch: Batch


@dataclass(kw_only=True)
class _Walk:
    """Commits found of a group, batch by batch in the order of the log."""

    group: str
    topic: str
    is_whole: bool
    standing: list[OffsetCommit] = field(default_factory=list)
    _hole_end: int = 0
    _began_at: dict[int, int] = field(default_factory=dict)
    _open: dict[int, list[_Commit]] = field(default_factory=dict)
    _last: dict[int, _Commit] = field(default_factory=dict)

    @cached_property
    def name(self) -> bytes:
        """The group and the topic as keys of records have them."""
        return _text(self.group) + _text(self.topic)

    def hole(self, end: int) -> None:
        """Note that records before `end` are gone, among which there may have been commits."""
        self._hole_end, self.is_whole = end, False

    def commit(self, commit: _Commit) -> None:
        """Take a record of the group."""
        if commit.batch.is_transactional:
            self._open.setdefault(commit.batch.producer_id, []).append(commit)
        else:
            self._stand(commit)

    def data(self, batch: Batch) -> None:
        """Take a batch, whoever's records it has."""
        if batch.is_transactional:
            self._began_at.setdefault(batch.producer_id, batch.base_offset)

    def marker(self, batch: Batch, *, is_commit: bool) -> None:
        """End a transaction. Where its beginning may lie in a hole, so may a commit of it."""
        began_at = self._began_at.pop(batch.producer_id, None)
        is_seen = self.is_whole or (began_at is not None and began_at >= self._hole_end)
        if is_commit and not is_seen:
            self.hole(batch.end_offset)
        for commit in self._open.pop(batch.producer_id, ()):
            if is_commit:
                self._stand(commit)

    def _stand(self, commit: _Commit) -> None:
        before = self._last.get(commit.partition)
        self._last[commit.partition] = commit
        if commit.next_offset is None:
            return
        is_within = commit.batch.is_transactional
        self.standing.append(
            OffsetCommit(
                partition=commit.partition,
                lo=self._lo(before),
                hi=commit.next_offset,
                producer_id=commit.batch.producer_id if is_within else None,
                producer_epoch=commit.batch.producer_epoch if is_within else None,
                committed_at_ms=commit.batch.max_timestamp,
            )
        )

    def _lo(self, before: _Commit | None) -> int | None:
        """Return from where on a commit covers offsets: from the one before it, if that is the last before it."""
        if before is None:
            return 0 if self.is_whole else None
        return None if before.at < self._hole_end else before.next_offset


def _read(source: BrokerLog, wanted: PartitionRange, walk: _Walk) -> None:
    position = wanted.lo
    while position < wanted.hi:
        page, before = source.fetch(wanted, position, "uncommitted"), position
        gone = max(page.log_start, page.hole_end or 0, page.broken_end or 0, page.truncated_end or 0)
        if gone > position:
            walk.hole(gone)
            position = gone
        checked = list(checked_batches(page, is_crc_checked=True))
        commits = _PageCommits.of(page, [batch for batch, reason, _ in checked if reason is None], walk)
        for batch, reason, resume in checked:
            if reason is not None:
                behind = resume or source.next_batch(wanted, position, batch.end_offset, "uncommitted")
                walk.hole(behind)
                position = max(position, behind)
            elif batch.end_offset > position:
                if batch.base_offset > position:
                    walk.hole(batch.base_offset)
                _take(batch, page, commits, walk)
                position = batch.end_offset
        if position <= before:
            raise TransientError(f"{wanted.topic} partition {wanted.partition}: nothing was read at offset {before}")


@dataclass(frozen=True, kw_only=True)
class _PageCommits:
    """The commits of the group in a page, by the base offset of their batch; `unreadable`: batches that may have
    more."""

    by_batch: dict[int, list[_Commit]] = field(default_factory=dict)
    unreadable: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, page: LogPage, batches: Iterable[Batch], walk: _Walk) -> "_PageCommits":
        """Decode the batches of a page that may have any: those with the group's name in them, and compressed ones."""
        commits, names = cls(), list(_places(page.data, walk.name))
        wanted = (batch for batch in batches if batch.codec or _is_in(batch, names))
        items = list(commits._to_decode(page, wanted))
        by_offset = {at: item.batch for item in items for at in range(item.batch.base_offset, item.batch.end_offset)}
        for part in decode(0, items, ("offset", "key", "value")) if items else ():
            commits.unreadable.update(by_offset[place.offset].base_offset for place in part.undecodable)
            for at, partition, next_offset in _commits_in(part.columns, walk):
                commit = _Commit(at=at, partition=partition, next_offset=next_offset, batch=by_offset[at])
                commits.by_batch.setdefault(commit.batch.base_offset, []).append(commit)
        return commits

    def _to_decode(self, page: LogPage, batches: Iterable[Batch]) -> Iterator[BatchToDecode]:
        for batch in batches:
            if not batch.is_control and batch.record_count:
                try:
                    data = decompress(batch.codec, memoryview(page.data)[batch.start + HEADER_BYTES : batch.end])
                except CodecError:
                    self.unreadable.add(batch.base_offset)
                    continue
                yield BatchToDecode(batch, data, batch.base_offset, batch.end_offset, is_aborted=False)


def _take(batch: Batch, page: LogPage, commits: _PageCommits, walk: _Walk) -> None:
    """Take a sound batch, with the commits in it. One that was compacted, or cannot be read, may have had others."""
    if batch.is_control:
        walk.marker(batch, is_commit=marker_type(batch, page.data) == COMMIT_MARKER)
        return
    walk.data(batch)
    is_whole = batch.is_dense and batch.base_offset not in commits.unreadable
    if not is_whole:
        walk.hole(batch.end_offset)
    for commit in commits.by_batch.get(batch.base_offset, []):
        walk.commit(commit)


def _commits_in(columns: pa.RecordBatch, walk: _Walk) -> Iterator[tuple[int, int, int | None]]:
    """Yield offset, partition and next offset of the records of the group in the topic."""
    name = walk.name
    lengths = pc.binary_length(columns.column("key"))  # type: ignore[call-overload]
    are_as_long = pc.equal(lengths, pa.scalar(2 + len(name) + _PARTITION.size, pa.int32()))
    for row in columns.filter(are_as_long).to_pylist():
        key, value = row["key"], row["value"]
        if key[:2] in _KEY_VERSIONS and key[2:-4] == name:
            yield row["offset"], _PARTITION.unpack(key[-4:])[0], None if value is None else _VALUE.unpack_from(value)[1]


def _places(data: bytes, name: bytes) -> Iterator[int]:
    """Yield where a name stands in a page."""
    at = data.find(name)
    while at >= 0:
        yield at
        at = data.find(name, at + 1)


def _is_in(batch: Batch, places: Sequence[int]) -> bool:
    """Return whether one of these places is in a batch."""
    at = bisect_left(places, batch.start)
    return at < len(places) and places[at] < batch.end


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return struct.pack(">h", len(encoded)) + encoded
