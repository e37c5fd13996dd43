"""Read a partition range of the raw log, from brokers and archives alike.

`read_range` walks a partition range batch by batch and accounts for every offset of it: data, control, aborted,
compacted, expired or undecodable. It ends with the whole range or with an error, never in between.

Holes. A batch with fewer records than offsets was compacted: a broker takes none such from a producer. Offsets that no
batch holds are `compacted` where the topic is compacted. Where it is not, nothing in Kafka leaves them behind (a lost
or removed segment does): they count as `undecodable` and are placed, with the present policy as the reason. If the
policy was changed since, a person may know it; the log does not show it.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from makewhole.kafka.log.aborted_transactions import AbortedTransaction, AbortedTransactions, AbortFilter
from makewhole.kafka.log.account import LeaderEpoch, OffsetAccount, OffsetSpan, TransactionCounts
from makewhole.kafka.log.archive import ArchiveLog, SegmentWriter
from makewhole.kafka.log.batches import ABORT_MARKER, COMMIT_MARKER, HEADER_BYTES, Batch, clip, marker_type
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.compression import CodecError, decompress
from makewhole.kafka.log.page import Isolation, LogPage, LogSource
from makewhole.kafka.log.page_walk import checked_batches
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
class _ReadOptions:
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
        """Columns that are wanted, and the flags by which rows are left out."""
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
    """Reader of one partition range, once. Iterate over it (or over `batches()`), then ask for what it found.

    `account` and `sequences` grow while reading; `accounting` exists when it is exhausted.
    """

    def __init__(self, source: LogSource, wanted: PartitionRange, options: _ReadOptions) -> None:
        self.range = wanted
        self.account = OffsetAccount(range=wanted)
        self.sequences = SequenceAudit(starts_at_zero=wanted.lo == 0)
        self._source = source
        self._options = options
        self._aborted = AbortedTransactions()
        self._end = wanted.hi
        self._is_exhausted = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches()

    @property
    def accounting(self) -> Accounting:
        """Account of every offset of the range.

        Raises:
            MakewholeError: asked before the range was read to its end.
        """
        if not self._is_exhausted:
            raise MakewholeError(f"{_name(self.range)} is not read to its end yet: exhaust the reader first")
        return self.account.accounting

    @property
    def undecodable(self) -> list[Undecodable]:
        """Offsets that could not be read, holes that compaction does not explain included."""
        return self.account.undecodable

    @property
    def expired(self) -> list[OffsetSpan]:
        """Offsets that were gone before they could be read, by whatever cause."""
        return self.account.expired

    @property
    def truncated(self) -> tuple[OffsetSpan, ...]:
        """Spans of the `expired` ones that a truncation took after the range was frozen."""
        return tuple(self.account.truncated)

    @property
    def leader_epochs(self) -> list[LeaderEpoch]:
        """Leader epochs under which the batches of the range were written, in offset order."""
        return self.account.leader_epochs

    @property
    def transactions(self) -> TransactionCounts:
        return self.account.transactions

    @property
    def aborted(self) -> tuple[AbortedTransaction, ...]:
        """Aborted transactions that touch the range, with their markers where seen."""
        return self._aborted.listed()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the records of the range in offset order, in record batches of `SCHEMA`.

        Raises:
            TransientError: the source did not get to the end of the range, or offsets are left unexplained, or the
                log was truncated in the middle of the read.
            RefusedError: the topic was made again under the same name.
        """
        self._source.check(self.range)
        self._end = self._intact_end()
        group = _Group()
        for item in self._batches_to_decode():
            if not group.has_room(item, self._options.max_records):
                yield from self._decoded(group)
                group = _Group()
            group.add(item)
        if group.items:
            yield from self._decoded(group)
        self._finish()

    def _intact_end(self) -> int:
        """Return the end of the part of the range that still is as it was frozen."""
        return max(self.range.lo, self._source.intact_end(self.range))

    def _finish(self) -> None:
        if self._intact_end() != self._end:
            raise TransientError(f"{_name(self.range)}: the log was truncated while it was read. Read it again")
        if self._end < self.range.hi:
            self._add_truncated(self._end, self.range.hi)
        accounting = self.account.accounting
        if not accounting.is_complete:
            raise TransientError(
                f"{_name(self.range)}: only {accounting.accounted} of {accounting.span} offsets are accounted for; "
                "the read was short. Read it again"
            )
        self._is_exhausted = True

    def _batches_to_decode(self) -> Iterator[BatchToDecode]:
        """Yield every data batch that has to be decoded; all else is counted on the way."""
        position = self.range.lo
        while position < self._end:
            page = self._source.fetch(self.range, position, self._options.isolation)
            before, position = position, self._skip_empty(page, position)
            walk = _PageWalk(page=page, position=position, aborted=AbortFilter(page.aborted))
            self._aborted.add(page.aborted, touching=before if page.batches else None)
            yield from self._walk(walk)
            self._report_fetched(walk)
            position = walk.position
            if position <= before:
                raise TransientError(f"{_name(self.range)}: nothing was read at offset {before}. Read it again")

    def _skip_empty(self, page: LogPage, position: int) -> int:
        """Account for what is expired, truncated or empty before the page's batches; return where these begin."""
        start = min(page.log_start, self._end)
        if start > position:
            self.account.expire(position, start)
            self.sequences.skip(start - position)
            position = start
        if page.truncated_end is not None:
            position = self._add_truncated(position, min(page.truncated_end, self._end))
        if page.hole_end is not None:
            position = self._add_hole(position, min(page.hole_end, self._end))
        if page.broken_end is not None:
            position = self._add_hole(
                position, min(page.broken_end, self._end), "no whole batch stands at these offsets"
            )
        return position

    def _add_truncated(self, start: int, end: int) -> int:
        self.account.truncate(start, end)
        self.sequences.skip(end - start)
        return end

    def _add_hole(self, start: int, end: int, reason: str | None = None) -> int:
        """Account for offsets that no batch holds, for the given reason or the source's; return their end."""
        if end > start:
            self.account.add_hole(start, end, reason or self._source.hole_reason(self.range, start, end))
            self.sequences.skip(end - start)
        return max(start, end)

    def _add_unreadable(self, start: int, end: int, reason: str) -> int:
        end = min(end, self._end)
        self.account.add_unreadable(start, end, reason)
        self.sequences.skip(end - start)
        return end

    def _walk(self, walk: "_PageWalk") -> Iterator[BatchToDecode]:
        for batch, reason, resume in checked_batches(walk.page, is_crc_checked=self._options.is_crc_checked):
            if walk.position >= self._end:
                return
            if reason is not None:
                walk.touched.append(batch)
                if resume is None:
                    likely, isolation = batch.end_offset, self._options.isolation
                    resume = self._source.next_batch(self.range, walk.position, likely, isolation)
                before, walk.position = walk.position, self._skip_damaged(walk.position, resume, reason)
                if walk.page.aborted and walk.position > before:
                    return  # it may have been the marker of one of these: the next page lists those that are still open
            elif (item := self._take_sound(walk, batch)) is not None:
                yield item

    def _skip_damaged(self, position: int, resume: int, reason: str) -> int:
        """Count everything from a damaged batch up to the next sound one, in this page or behind it, as unreadable."""
        return self._add_unreadable(position, resume, reason) if resume > position else position

    def _take_sound(self, walk: "_PageWalk", batch: Batch) -> BatchToDecode | None:
        """Count a sound batch; return it when its records are to be decoded."""
        marker = marker_type(batch, walk.page.data) if batch.is_control else None
        if marker == ABORT_MARKER:
            walk.aborted.end_transaction(batch.base_offset, batch.producer_id)
            self._aborted.end_transaction(batch.base_offset, batch.producer_id)
        start, end = clip(batch, walk.position, self._end)
        if batch.end_offset <= walk.position:
            return None
        self._add_hole(walk.position, start)
        walk.position = end
        if end <= start:
            return None
        walk.touched.append(batch)
        self.account.add_leader_epoch(batch.leader_epoch, start, end)
        if batch.is_control:
            self._count_control(batch, end - start, marker)
            return None
        if batch.base_offset >= self.range.lo or self._begins_behind_expired(batch):
            self.sequences.observe(batch)  # a batch across `lo` belongs to the piece before
        last_offset = batch.end_offset - 1
        is_aborted = walk.aborted.is_aborted(last_offset, batch.producer_id, batch.is_transactional)
        return self._take_data(walk.page, batch, (start, end), is_aborted)

    def _begins_behind_expired(self, batch: Batch) -> bool:
        """Return whether the log start lies inside the batch, which no piece before has seen then."""
        expired = self.account.expired
        return bool(expired) and batch.base_offset < expired[-1][1] < batch.end_offset

    def _count_control(self, batch: Batch, offsets: int, marker: int | None) -> None:
        records = min(offsets, batch.record_count)
        self.account.control += records
        self.account.compacted += offsets - records
        self.account.commit_markers += marker == COMMIT_MARKER
        self.account.abort_markers += marker == ABORT_MARKER

    def _take_data(self, page: LogPage, batch: Batch, part: OffsetSpan, is_aborted: bool) -> BatchToDecode | None:
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
            self.account.add_unreadable(start, end, f"more than {_BATCH_LIMIT_RECORDS} records in one batch")
            return None
        try:
            data = decompress(batch.codec, memoryview(page.data)[batch.start + HEADER_BYTES : batch.end])
        except CodecError as error:
            self.account.add_unreadable(start, end, str(error))
            return None
        return BatchToDecode(batch, data, start, end, is_aborted)

    def _report_fetched(self, walk: "_PageWalk") -> None:
        """Give the walked batches that touch the range to the callback. Those of a page are contiguous in it."""
        if self._options.on_fetched is not None and walk.touched:
            first, last = walk.touched[0], walk.touched[-1]
            self._options.on_fetched(first.base_offset, walk.page.data[first.start : last.end])

    def _decoded(self, group: _Group) -> Iterator[pa.RecordBatch]:
        options = self._options
        has_views = options.has_views and options.include_aborted and options.include_replayed
        for part in decode(self.range.partition, group.items, options.decoded_columns, has_views=has_views):
            self._count_decoded(part)
            columns = part.columns
            if not options.include_aborted:
                columns = _without(columns, "is_aborted")
            if not options.include_replayed:
                columns = _without(columns, "is_replayed")
            if options.columns is not None:
                columns = columns.select(list(options.columns))
            for start in range(0, columns.num_rows, options.max_records):
                yield columns.slice(start, options.max_records)

    def _count_decoded(self, part: Decoded) -> None:
        """Count the decoded and the unreadable records of each batch."""
        places = list(part.undecodable)
        for item, count in zip(part.items, part.counts, strict=True):
            left = item.hi - item.lo - count
            bad = 0
            if places:
                bad = left if item.batch.is_dense else min(left, item.batch.record_count - count)
                self.account.add_salvaged(places, bad)
            self.account.compacted += left - bad
            if item.is_aborted:
                self.account.aborted += count
            else:
                self.account.data += count


@dataclass(kw_only=True)
class _PageWalk:
    """State of the walk through one page."""

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
    """Return a reader of `wanted` from a broker or an archive.

    Rows of aborted transactions are left out unless `include_aborted` (then marked); rows of replays come too unless
    `include_replayed` is off: they count as data either way. `isolation="uncommitted"` reads up to the high watermark
    and marks nothing as aborted. With the leader epochs of `wanted`, what a truncation has taken since it was frozen
    counts as expired; without them, a log that ends before `wanted.hi` is a transient error. `columns` are those of
    `SCHEMA` that are wanted, in that order. With `has_views`, where no row is left out, `value` comes as `binary_view`
    into the bytes of some MB of batches, uncopied and kept as long as a row of it. `on_fetched` gets (base offset,
    bytes) of every whole batch that touches the range, verbatim, each once, several at a time, in order.
    """
    options = _ReadOptions(
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
