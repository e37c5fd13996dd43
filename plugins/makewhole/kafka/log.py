"""One reader for the raw log, from brokers and from archives alike.

`read_range` walks a partition range batch by batch and accounts for every offset of it: data, control, aborted,
compacted, expired or undecodable. It ends with the whole range or with an error, never in between.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from makewhole.kafka.archive import ArchiveLog, SegmentWriter
from makewhole.kafka.batches import ABORT_MARKER, COMMIT_MARKER, HEADER_BYTES, Batch, clip, defect, marker_type
from makewhole.kafka.broker import BrokerLog
from makewhole.kafka.compression import CodecError, decompress
from makewhole.kafka.damaged import Undecodable
from makewhole.kafka.page import Isolation, LogSource, Page
from makewhole.kafka.records import SCHEMA, Decoded, Item, decode
from makewhole.kafka.sequences import ProducerState, SequenceAudit
from makewhole.kafka.transactions import AbortedLedger, AbortedTransaction, AbortFilter
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
FetchedCallback = Callable[[int, bytes], None]


class LeaderEpoch(NamedTuple):
    """Offsets `[start_offset, end_offset)` of the range were written under `epoch`."""

    epoch: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, kw_only=True)
class TransactionCounts:
    """Transactions that ended in the range, by their markers."""

    committed: int = 0
    aborted: int = 0


@dataclass(frozen=True, kw_only=True)
class _Options:
    max_records: int
    include_aborted: bool
    include_replayed: bool
    isolation: Isolation
    on_fetched: FetchedCallback | None


@dataclass(kw_only=True)
class _Tally:
    data: int = 0
    control: int = 0
    aborted: int = 0
    compacted: int = 0
    expired: int = 0
    undecodable: int = 0
    commit_markers: int = 0
    abort_markers: int = 0


@dataclass(kw_only=True)
class _Group:
    """Data batches that are decoded together; bounded in records and bytes."""

    items: list[Item] = field(default_factory=list)
    records: int = 0
    size_bytes: int = 0

    def has_room(self, item: Item, max_records: int) -> bool:
        return not self.items or (
            self.records + item.batch.record_count <= max_records and self.size_bytes + len(item.data) <= _GROUP_BYTES
        )

    def add(self, item: Item) -> None:
        self.items.append(item)
        self.records += item.batch.record_count
        self.size_bytes += len(item.data)


class RangeReader:
    """Reads one partition range once. Iterate over it (or over `batches()`), then ask for what it learned.

    `undecodable`, `leader_epochs`, `expired` and `sequences` grow while reading; `accounting` exists when it is
    exhausted.
    """

    def __init__(
        self, source: LogSource, wanted: PartitionRange, options: _Options, producers: Iterable[ProducerState] = ()
    ) -> None:
        self.range = wanted
        self.undecodable: list[Undecodable] = []
        self.leader_epochs: list[LeaderEpoch] = []
        self.expired: list[tuple[int, int]] = []
        self.sequences = SequenceAudit(producers)
        self._source = source
        self._options = options
        self._tally = _Tally()
        self._ledger = AbortedLedger()
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
        return self._account()

    @property
    def transactions(self) -> TransactionCounts:
        return TransactionCounts(committed=self._tally.commit_markers, aborted=self._tally.abort_markers)

    @property
    def aborted(self) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions that touch the range, with their markers where seen."""
        return self._ledger.listed()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The records of the range in offset order, in record batches of `SCHEMA`.

        Raises:
            TransientError: the source did not get to the end of the range, or offsets are left unexplained.
            RefusedError: the topic was made again under the same name.
        """
        self._source.check(self.range)
        group = _Group()
        for item in self._items():
            if not group.has_room(item, self._options.max_records):
                yield from self._decoded(group)
                group = _Group()
            group.add(item)
        if group.items:
            yield from self._decoded(group)
        self._finish()

    def _finish(self) -> None:
        accounting = self._account()
        if not accounting.is_complete:
            raise TransientError(
                f"{_name(self.range)}: only {accounting.accounted} of {accounting.span} offsets are accounted for; "
                "the read was short. Read it again"
            )
        self._is_exhausted = True

    def _account(self) -> Accounting:
        tally = self._tally
        return Accounting(
            span=self.range.span,
            data=tally.data,
            control=tally.control,
            aborted=tally.aborted,
            compacted=tally.compacted,
            expired=tally.expired,
            undecodable=tally.undecodable,
        )

    def _items(self) -> Iterator[Item]:
        """Every data batch that has to be decoded; all else is tallied on the way."""
        position = self.range.lo
        while position < self.range.hi:
            page = self._source.fetch(self.range, position, self._options.isolation)
            before, position = position, self._past_nothing(page, position)
            walk = _PageWalk(page=page, position=position, aborted=AbortFilter(page.aborted))
            self._ledger.add(page.aborted)
            yield from self._walk(walk)
            self._pass_on(walk)
            position = walk.position
            if position <= before:
                raise TransientError(f"{_name(self.range)}: nothing was read at offset {before}. Read it again")

    def _past_nothing(self, page: Page, position: int) -> int:
        """Step over what is expired or proven empty before the page's batches."""
        start = min(page.log_start, self.range.hi)
        if start > position:
            self._tally.expired += start - position
            self.sequences.skip(start - position)
            self.expired.append((position, start))
            position = start
        if page.hole_end is not None:
            position = self._hole(position, min(page.hole_end, self.range.hi))
        if page.broken_end is not None:
            position = self._unreadable(position, page.broken_end, "batch length leaves the segment")
        return position

    def _hole(self, position: int, end: int) -> int:
        if end > position:
            self._tally.compacted += end - position
            self.sequences.skip(end - position)
        return max(position, end)

    def _walk(self, walk: "_PageWalk") -> Iterator[Item]:
        last = len(walk.page.batches) - 1
        for index, batch in enumerate(walk.page.batches):
            if walk.position >= self.range.hi:
                return
            following = walk.page.batches[index + 1] if index < last else None
            reason = defect(batch, walk.page.data)
            if reason is not None:
                if following is None and index > 0:
                    return  # where it ends is only known from the batch behind it: fetched again, both come
                walk.touched.append(batch)
                self._damaged(walk, batch, following, reason)
            elif (item := self._sound(walk, batch)) is not None:
                yield item

    def _damaged(self, walk: "_PageWalk", batch: Batch, following: Batch | None, reason: str) -> None:
        """A batch that cannot be trusted takes everything up to the next one, or up to where it claims to end."""
        claimed = following.base_offset if following is not None else batch.end_offset
        walk.position = self._unreadable(walk.position, max(claimed, walk.position + 1), reason)

    def _unreadable(self, start: int, end: int, reason: str) -> int:
        end = min(end, self.range.hi)
        self._tally.undecodable += end - start
        self.sequences.skip(end - start)
        self.undecodable.append(Undecodable(self.range.partition, start, end, reason))
        return end

    def _sound(self, walk: "_PageWalk", batch: Batch) -> Item | None:
        """Tally a batch; an item when its records are to be decoded."""
        marker = marker_type(batch, walk.page.data) if batch.is_control else None
        if marker == ABORT_MARKER:
            walk.aborted.abort_marker(batch.base_offset, batch.producer_id)
            self._ledger.abort_marker(batch.base_offset, batch.producer_id)
        start, end = clip(batch, walk.position, self.range.hi)
        if batch.end_offset <= walk.position:
            return None
        self._hole(walk.position, start)
        walk.position = end
        if end <= start:
            return None
        walk.touched.append(batch)
        self._note_epoch(batch.leader_epoch, start, end)
        if batch.is_control:
            self._control(batch, end - start, marker)
            return None
        self.sequences.observe(batch)
        last_offset = batch.end_offset - 1
        is_aborted = walk.aborted.is_aborted(last_offset, batch.producer_id, batch.is_transactional)
        return self._data(walk.page, batch, (start, end), is_aborted)

    def _note_epoch(self, epoch: int, start: int, end: int) -> None:
        if self.leader_epochs and self.leader_epochs[-1].epoch == epoch:
            self.leader_epochs[-1] = self.leader_epochs[-1]._replace(end_offset=end)
        else:
            self.leader_epochs.append(LeaderEpoch(epoch, start, end))

    def _control(self, batch: Batch, offsets: int, marker: int | None) -> None:
        records = min(offsets, batch.record_count)
        self._tally.control += records
        self._tally.compacted += offsets - records
        self._tally.commit_markers += marker == COMMIT_MARKER
        self._tally.abort_markers += marker == ABORT_MARKER

    def _data(self, page: Page, batch: Batch, part: tuple[int, int], is_aborted: bool) -> Item | None:
        start, end = part
        is_whole = end - start == batch.last_offset_delta + 1
        if batch.record_count == 0:
            self._tally.compacted += end - start
            return None
        if is_aborted and not self._options.include_aborted and (batch.is_dense or is_whole):
            records = end - start if batch.is_dense else batch.record_count
            self._tally.aborted += records
            self._tally.compacted += end - start - records
            return None
        try:
            data = decompress(batch.codec, memoryview(page.data)[batch.start + HEADER_BYTES : batch.end])
        except CodecError as error:
            self._unreadable(start, end, str(error))
            return None
        return Item(batch, data, start, end, is_aborted)

    def _pass_on(self, walk: "_PageWalk") -> None:
        """Give the batches that were walked and touch the range to the callback. A page's are contiguous in it."""
        if self._options.on_fetched is not None and walk.touched:
            first, last = walk.touched[0], walk.touched[-1]
            self._options.on_fetched(first.base_offset, walk.page.data[first.start : last.end])

    def _decoded(self, group: _Group) -> Iterator[pa.RecordBatch]:
        for part in decode(self.range.partition, group.items):
            self._settle(part)
            columns = part.columns
            if not self._options.include_aborted:
                columns = _without(columns, "is_aborted")
            if not self._options.include_replayed:
                columns = _without(columns, "is_replayed")
            for start in range(0, columns.num_rows, self._options.max_records):
                yield columns.slice(start, self._options.max_records)

    def _settle(self, part: Decoded) -> None:
        """Tally what decoding showed of each batch."""
        self.undecodable.extend(part.undecodable)
        for item, count in zip(part.items, part.counts, strict=True):
            left = item.hi - item.lo - count
            bad = 0
            if part.undecodable:
                bad = left if item.batch.is_dense else min(left, item.batch.record_count - count)
            self._tally.undecodable += bad
            self._tally.compacted += left - bad
            if item.is_aborted:
                self._tally.aborted += count
            else:
                self._tally.data += count


@dataclass(kw_only=True)
class _PageWalk:
    """Where the walk through one page stands."""

    page: Page
    position: int
    aborted: AbortFilter
    touched: list[Batch] = field(default_factory=list)


def _without(columns: pa.RecordBatch, flag: str) -> pa.RecordBatch:
    flags = columns.column(SCHEMA.get_field_index(flag))
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
    producers: Iterable[ProducerState] = (),
    on_fetched: FetchedCallback | None = None,
) -> RangeReader:
    """A reader of `wanted` from a broker or an archive.

    Rows of aborted transactions are left out unless `include_aborted` (then marked); rows of replays come too unless
    `include_replayed` is off: they count as data either way. `isolation="uncommitted"` reads up to the high watermark
    and marks nothing as aborted. `producers` are the producer states at `wanted.lo`, where known. `on_fetched` gets
    (base offset, bytes) of every whole batch that touches the range, verbatim, each once, several at a time, in order.
    """
    options = _Options(
        max_records=max_records,
        include_aborted=include_aborted,
        include_replayed=include_replayed,
        isolation=isolation,
        on_fetched=on_fetched,
    )
    return RangeReader(source, wanted, options, producers)
