"""One reader for the raw log, from brokers and from archives alike.

`read_range` walks a partition range batch by batch and accounts for every offset of it: data, control, aborted,
compacted, expired or undecodable. It ends with the whole range or with an error, never in between.

Holes. A batch with fewer records than offsets is the cleaner's work by itself: a broker takes none such from a
producer. Offsets that no batch holds are `compacted` where the topic is compacted. Where it is not, nothing in Kafka
leaves them behind (a lost or removed segment does): they count as `undecodable` and are placed, with the policy of now
as the reason. If the policy was changed since, a person can tell; the log cannot.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from makewhole.kafka.log.aborted_transactions import AbortedLedger, AbortedTransaction, AbortFilter
from makewhole.kafka.log.account import LeaderEpoch, OffsetAccount, OffsetSpan, TransactionCounts
from makewhole.kafka.log.archive import ArchiveLog, SegmentWriter
from makewhole.kafka.log.batches import ABORT_MARKER, COMMIT_MARKER, HEADER_BYTES, Batch, clip, marker_type
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.compression import CodecError, decompress
from makewhole.kafka.log.page import Isolation, LogPage, LogSource
from makewhole.kafka.log.page_walk import judged
from makewhole.kafka.log.records import SCHEMA, BatchToDecode, Decoded, decode
from makewhole.kafka.log.salvage import Undecodable
from makewhole.kafka.sequences.audit import SequenceAudit
from makewhole.model.errors import MakewholeError, TransientError
from makewhole.model.window import Accounting, PartitionRange

__all__ = [
    "SCHEMA",
    "ArchiveLog",
    "BrokerLog",
    "LeaderEpoch",
    "RangeReader",
    "SegmentWriter",
    "TransactionCounts",
    "Undecodable",
    "read_range",
]

_GROUP_BYTES = 32 << 20
_BATCH_LIMIT_RECORDS = 1 << 22
FetchedCallback = Callable[[int, bytes], None]


@dataclass(frozen=True, kw_only=True)
class _Options:
    max_records: int
    include_aborted: bool
    include_replayed: bool
    isolation: Isolation
    is_crc_checked: bool
    columns: Sequence[str] | None
    has_views: bool
    on_fetched: FetchedCallback | None

    @property
    def decoded_columns(self) -> Collection[str]:
        """The wanted ones, and the flags by which rows are left out."""
        return SCHEMA.names if self.columns is None else {*self.columns, "is_aborted", "is_replayed"}


@dataclass(kw_only=True)
class _Group:
    """Data batches that are decoded together; bounded in records and bytes."""

    items: list[BatchToDecode] = field(default_factory=list)
    records: int = 0
    size_bytes: int = 0

    def has_room(self, item: BatchToDecode, max_records: int) -> bool:
        return not self.items or (
            self.records + item.batch.record_count <= max_records and self.size_bytes + len(item.data) <= _GROUP_BYTES
        )

    def add(self, item: BatchToDecode) -> None:
        self.items.append(item)
        self.records += item.batch.record_count
        self.size_bytes += len(item.data)


class RangeReader:
    """Reads one partition range once. Iterate over it (or over `batches()`), then ask for what it learned.

    `account` and `sequences` grow while reading; `accounting` exists when it is exhausted.
    """

    def __init__(self, source: LogSource, wanted: PartitionRange, options: _Options) -> None:
        self.range = wanted
        self.account = OffsetAccount(range=wanted)
        self.sequences = SequenceAudit(starts_at_zero=wanted.lo == 0)
        self._source = source
        self._options = options
        self._ledger = AbortedLedger()
        self._end = wanted.hi
        self._is_exhausted = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches()

    @property
    def accounting(self) -> Accounting:
        """What every offset of the range was.

        Raises:
            MakewholeError: asked before the range was read to its end.
        """
        if not self._is_exhausted:
            raise MakewholeError(f"{_name(self.range)} is not read to its end yet: exhaust the reader first")
        return self.account.accounting

    @property
    def undecodable(self) -> list[Undecodable]:
        """What could not be read, holes that compaction does not explain included."""
        return self.account.undecodable

    @property
    def expired(self) -> list[OffsetSpan]:
        """What was gone before it could be read, by whatever cause."""
        return self.account.expired

    @property
    def truncated(self) -> tuple[OffsetSpan, ...]:
        """Those of `expired` that a truncation took after the range was frozen."""
        return tuple(self.account.truncated)

    @property
    def leader_epochs(self) -> list[LeaderEpoch]:
        """Under which leader epochs the batches of the range were written, in offset order."""
        return self.account.leader_epochs

    @property
    def transactions(self) -> TransactionCounts:
        return self.account.transactions

    @property
    def aborted(self) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions that touch the range, with their markers where seen."""
        return self._ledger.listed()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The records of the range in offset order, in record batches of `SCHEMA`.

        Raises:
            TransientError: the source did not get to the end of the range, or offsets are left unexplained, or the
                log was truncated in the middle of the read.
            RefusedError: the topic was made again under the same name.
        """
        self._source.check(self.range)
        self._end = self._intact_end()
        group = _Group()
        for item in self._items():
            if not group.has_room(item, self._options.max_records):
                yield from self._decoded(group)
                group = _Group()
            group.add(item)
        if group.items:
            yield from self._decoded(group)
        self._finish()

    def _intact_end(self) -> int:
        """Where the part of the range ends that still stands as it was frozen."""
        return max(self.range.lo, self._source.intact_end(self.range))

    def _finish(self) -> None:
        if self._intact_end() != self._end:
            raise TransientError(f"{_name(self.range)}: the log was truncated while it was read. Read it again")
        if self._end < self.range.hi:
            self._cut_off(self._end, self.range.hi)
        accounting = self.account.accounting
        if not accounting.is_complete:
            raise TransientError(
                f"{_name(self.range)}: only {accounting.accounted} of {accounting.span} offsets are accounted for; "
                "the read was short. Read it again"
            )
        self._is_exhausted = True

    def _items(self) -> Iterator[BatchToDecode]:
        """Every data batch that has to be decoded; all else is tallied on the way."""
        position = self.range.lo
        while position < self._end:
            page = self._source.fetch(self.range, position, self._options.isolation)
            before, position = position, self._past_nothing(page, position)
            walk = _PageWalk(page=page, position=position, aborted=AbortFilter(page.aborted))
            self._ledger.add(page.aborted, touching=before if page.batches else None)
            yield from self._walk(walk)
            self._pass_on(walk)
            position = walk.position
            if position <= before:
                raise TransientError(f"{_name(self.range)}: nothing was read at offset {before}. Read it again")

    def _past_nothing(self, page: LogPage, position: int) -> int:
        """Step over what is expired or proven empty before the page's batches."""
        start = min(page.log_start, self._end)
        if start > position:
            self.account.expire(position, start)
            self.sequences.skip(start - position)
            position = start
        if page.truncated_end is not None:
            position = self._cut_off(position, min(page.truncated_end, self._end))
        if page.hole_end is not None:
            position = self._hole(position, min(page.hole_end, self._end))
        if page.broken_end is not None:
            position = self._hole(position, min(page.broken_end, self._end), "no whole batch stands at these offsets")
        return position

    def _cut_off(self, start: int, end: int) -> int:
        self.account.truncate(start, end)
        self.sequences.skip(end - start)
        return end

    def _hole(self, start: int, end: int, reason: str | None = None) -> int:
        """No batch holds these offsets: for the reason, or for whatever the source knows."""
        if end > start:
            self.account.hole(start, end, reason or self._source.hole_reason(self.range, start, end))
            self.sequences.skip(end - start)
        return max(start, end)

    def _unreadable(self, start: int, end: int, reason: str) -> int:
        end = min(end, self._end)
        self.account.unreadable(start, end, reason)
        self.sequences.skip(end - start)
        return end

    def _walk(self, walk: "_PageWalk") -> Iterator[BatchToDecode]:
        for batch, reason, resume in judged(walk.page, is_crc_checked=self._options.is_crc_checked):
            if walk.position >= self._end:
                return
            if reason is not None:
                walk.touched.append(batch)
                if resume is None:
                    likely, isolation = batch.end_offset, self._options.isolation
                    resume = self._source.next_batch(self.range, walk.position, likely, isolation)
                walk.position = self._damaged(walk.position, resume, reason)
                if walk.page.aborted:
                    return  # it may have been the marker of one of these: the next page knows which still go on
            elif (item := self._sound(walk, batch)) is not None:
                yield item

    def _damaged(self, position: int, resume: int, reason: str) -> int:
        """A batch that cannot be trusted takes everything up to the next sound one, in this page or behind it."""
        return self._unreadable(position, resume, reason) if resume > position else position

    def _sound(self, walk: "_PageWalk", batch: Batch) -> BatchToDecode | None:
        """Tally a batch; an item when its records are to be decoded."""
        marker = marker_type(batch, walk.page.data) if batch.is_control else None
        if marker == ABORT_MARKER:
            walk.aborted.abort_marker(batch.base_offset, batch.producer_id)
            self._ledger.abort_marker(batch.base_offset, batch.producer_id)
        start, end = clip(batch, walk.position, self._end)
        if batch.end_offset <= walk.position:
            return None
        self._hole(walk.position, start)
        walk.position = end
        if end <= start:
            return None
        walk.touched.append(batch)
        self.account.written_under(batch.leader_epoch, start, end)
        if batch.is_control:
            self._control(batch, end - start, marker)
            return None
        if batch.base_offset >= self.range.lo or self._begins_behind_expired(batch):
            self.sequences.observe(batch)  # a batch across `lo` belongs to the piece before
        last_offset = batch.end_offset - 1
        is_aborted = walk.aborted.is_aborted(last_offset, batch.producer_id, batch.is_transactional)
        return self._data(walk.page, batch, (start, end), is_aborted)

    def _begins_behind_expired(self, batch: Batch) -> bool:
        """The log start may stand in mid-batch, where no piece before has seen the batch."""
        expired = self.account.expired
        return bool(expired) and batch.base_offset < expired[-1][1] < batch.end_offset

    def _control(self, batch: Batch, offsets: int, marker: int | None) -> None:
        records = min(offsets, batch.record_count)
        self.account.control += records
        self.account.compacted += offsets - records
        self.account.commit_markers += marker == COMMIT_MARKER
        self.account.abort_markers += marker == ABORT_MARKER

    def _data(self, page: LogPage, batch: Batch, part: OffsetSpan, is_aborted: bool) -> BatchToDecode | None:
        start, end = part
        is_whole = end - start == batch.last_offset_delta + 1
        if batch.record_count == 0:
            self.account.compacted += end - start
            return None
        if is_aborted and not self._options.include_aborted and (batch.is_dense or is_whole):
            records = end - start if batch.is_dense else batch.record_count
            self.account.aborted += records
            self.account.compacted += end - start - records
            return None
        if batch.record_count > _BATCH_LIMIT_RECORDS:
            self.account.unreadable(start, end, f"more than {_BATCH_LIMIT_RECORDS} records in one batch")
            return None
        try:
            data = decompress(batch.codec, memoryview(page.data)[batch.start + HEADER_BYTES : batch.end])
        except CodecError as error:
            self.account.unreadable(start, end, str(error))
            return None
        return BatchToDecode(batch, data, start, end, is_aborted)

    def _pass_on(self, walk: "_PageWalk") -> None:
        """Give the batches that were walked and touch the range to the callback. A page's are contiguous in it."""
        if self._options.on_fetched is not None and walk.touched:
            first, last = walk.touched[0], walk.touched[-1]
            self._options.on_fetched(first.base_offset, walk.page.data[first.start : last.end])

    def _decoded(self, group: _Group) -> Iterator[pa.RecordBatch]:
        options = self._options
        has_views = options.has_views and options.include_aborted and options.include_replayed
        for part in decode(self.range.partition, group.items, options.decoded_columns, has_views=has_views):
            self._settle(part)
            columns = part.columns
            if not options.include_aborted:
                columns = _without(columns, "is_aborted")
            if not options.include_replayed:
                columns = _without(columns, "is_replayed")
            if options.columns is not None:
                columns = columns.select(list(options.columns))
            for start in range(0, columns.num_rows, options.max_records):
                yield columns.slice(start, options.max_records)

    def _settle(self, part: Decoded) -> None:
        """Count what decoding showed of each batch."""
        places = list(part.undecodable)
        for item, count in zip(part.items, part.counts, strict=True):
            left = item.hi - item.lo - count
            bad = 0
            if places:
                bad = left if item.batch.is_dense else min(left, item.batch.record_count - count)
                self.account.salvaged(places, bad)
            self.account.compacted += left - bad
            if item.is_aborted:
                self.account.aborted += count
            else:
                self.account.data += count


@dataclass(kw_only=True)
class _PageWalk:
    """Where the walk through one page stands."""

    page: LogPage
    position: int
    aborted: AbortFilter
    touched: list[Batch] = field(default_factory=list)


def _without(columns: pa.RecordBatch, flag: str) -> pa.RecordBatch:
    flags = columns.column(flag)
    return columns.filter(pc.invert(flags)) if pc.any(flags).as_py() else columns


def _name(wanted: PartitionRange) -> str:
    return f"{wanted.topic} partition {wanted.partition} [{wanted.lo}, {wanted.hi})"


def read_range(
    source: LogSource,
    wanted: PartitionRange,
    *,
    max_records: int = 65_536,
    include_aborted: bool = False,
    include_replayed: bool = True,
    isolation: Isolation = "committed",
    is_crc_checked: bool = True,
    columns: Sequence[str] | None = None,
    has_views: bool = False,
    on_fetched: FetchedCallback | None = None,
) -> RangeReader:
    """A reader of `wanted` from a broker or an archive.

    Rows of aborted transactions are left out unless `include_aborted` (then marked); rows of replays come too unless
    `include_replayed` is off: they count as data either way. `isolation="uncommitted"` reads up to the high watermark
    and marks nothing as aborted. With the leader epochs of `wanted`, what a truncation
    has taken since it was frozen counts as expired; without them, a log that ends before `wanted.hi` is an error that
    a retry may mend. `columns` are those of `SCHEMA` that are wanted, in that order. With `has_views`, where no row is
    left out, `value` comes as `binary_view` into the bytes of some MB of batches, uncopied and kept as long as a row of
    it. `on_fetched` gets (base offset, bytes) of every whole batch that touches the range, verbatim, each once, several
    at a time, in order.
    """
    options = _Options(
        max_records=max_records,
        include_aborted=include_aborted,
        include_replayed=include_replayed,
        isolation=isolation,
        is_crc_checked=is_crc_checked,
        columns=columns,
        has_views=has_views,
        on_fetched=on_fetched,
    )
    return RangeReader(source, wanted, options)
