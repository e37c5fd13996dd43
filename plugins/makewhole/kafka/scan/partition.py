"""Scan a partition by its batch headers alone: what every offset was, who wrote it, when, in what batches.

No record is opened, so a scan is as fast as the bytes come. The rules are those of the log reader
(`makewhole.kafka.log.reader`); what only opened records show (a single damaged record in a sound batch) it cannot
see.
"""

from dataclasses import dataclass, replace
from typing import Final

from makewhole.kafka.log.aborted_transactions import AbortFilter
from makewhole.kafka.log.account import OffsetAccount
from makewhole.kafka.log.batches import ABORT_MARKER, COMMIT_MARKER, Batch, clip, marker_type
from makewhole.kafka.log.page import Isolation, LogPage, LogSource
from makewhole.kafka.log.page_walk import checked_batches
from makewhole.kafka.scan.batch_statistics import CODECS, BatchStatistics
from makewhole.kafka.scan.transaction_history import TransactionHistory
from makewhole.kafka.sequences.audit import SequenceAudit
from makewhole.model.errors import TransientError
from makewhole.model.window import PartitionRange

_COMMITTED: Final[Isolation] = "committed"
_UNCOMMITTED: Final[Isolation] = "uncommitted"


@dataclass(frozen=True, kw_only=True)
class LogBounds:
    """A partition's offsets at one moment: its first, its last stable one, and its end; ends are exclusive."""

    log_start: int
    stable: int
    end: int


@dataclass(kw_only=True)
class Tail:
    """Offsets `[start, end)` behind the stable one: an open transaction holds them back from committed readers."""

    start: int
    end: int
    records: int = 0
    control: int = 0
    empty: int = 0
    undecodable: int = 0


@dataclass(frozen=True, kw_only=True)
class UnopenedSpan:
    """Part of a compacted batch, whose header counts the records of the whole batch only."""

    start: int
    end: int


class PartitionScan:
    """Scan of one partition from a source, page by page: first up to the stable offset, then the tail behind it.

    Its results can be asked for at any time; `accounting` is complete when `is_done`. `failure` says why it never
    will be.
    """

    def __init__(
        self, source: LogSource, wanted: PartitionRange, bounds: LogBounds, *, is_crc_checked: bool = True
    ) -> None:
        self.range = wanted
        self.bounds = bounds
        self.account = OffsetAccount(range=wanted)
        self.sequences = SequenceAudit(starts_at_zero=wanted.lo == 0)
        self.transactions = TransactionHistory()
        self.statistics = BatchStatistics()
        self.tail = Tail(start=wanted.hi, end=max(wanted.hi, bounds.end))
        self.unopened: list[UnopenedSpan] = []
        self.position = wanted.lo
        self.size_bytes = 0
        self.failure: str | None = None
        self._source = source
        self._tail_range = replace(wanted, lo=self.tail.start, hi=self.tail.end)
        self._is_crc_checked = is_crc_checked
        self._aborted = AbortFilter(())
        self._seen_to = 0

    def step(self) -> None:
        """Read the next page.

        Raises:
            TransientError: the source does not get further now, or the log was cut back in the middle of the scan.
        """
        before = self.position
        page = self._source.fetch(*self._next_fetch())
        if page.log_start > self.position:
            self._expire(page.log_start)
        if page.truncated_end is not None:
            raise TransientError(f"{self}: the log was truncated before offset {page.truncated_end}. Scan it again")
        if page.hole_end is not None:
            self._add_hole(page.hole_end)
        if page.broken_end is not None:
            self._add_hole(page.broken_end, "no whole batch stands at these offsets")
        self._aborted = AbortFilter(page.aborted)
        self._walk(page)
        if self.position <= before:
            raise TransientError(f"{self}: nothing was read at offset {before}. Scan it again")

    def _next_fetch(self) -> tuple[PartitionRange, int, Isolation]:
        if self.is_in_tail:
            return self._tail_range, self.position, _UNCOMMITTED
        return self.range, self.position, _COMMITTED

    def open_rest(self) -> None:
        """Open the batches of which the range has a part only and whose headers do not show how many records it holds.

        Raises:
            TransientError: they cannot be read now.
        """
        if not self.unopened:
            return
        from makewhole.kafka.log.reader import read_range  # slow to import, and rarely needed

        for part in self.unopened:
            reader = read_range(
                self._source,
                replace(self.range, lo=part.start, hi=part.end),
                include_aborted=True,
                is_crc_checked=self._is_crc_checked,
            )
            for _ in reader.batches():
                pass
            accounting = reader.accounting
            self.account.data += accounting.data
            self.account.aborted += accounting.aborted
            self.account.compacted += accounting.compacted
            self.account.add_salvaged(reader.undecodable, accounting.undecodable)
        self.unopened.clear()

    @property
    def is_in_tail(self) -> bool:
        return self.position >= self.range.hi

    @property
    def _end(self) -> int:
        return self.tail.end if self.is_in_tail else self.range.hi

    @property
    def is_done(self) -> bool:
        return self.position >= self.tail.end

    def _expire(self, log_start: int) -> None:
        """Account for the offsets before `log_start`, where the log begins now."""
        start = min(log_start, self._end)
        if self.is_in_tail:
            self.tail.empty += start - self.position
        else:
            self.account.expire(self.position, start)
        self._skip(start)

    def _add_hole(self, end: int, reason: str | None = None) -> None:
        """Account for offsets up to `end` that no batch holds, for the given reason or the source's."""
        end = min(end, self._end)
        if end <= self.position:
            return
        if not self.is_in_tail:
            reason = reason or self._source.hole_reason(self.range, self.position, end)
            self.account.add_hole(self.position, end, reason)
        elif reason is None:
            self.tail.empty += end - self.position
        else:
            self.tail.undecodable += end - self.position
        self._skip(end)

    def _skip(self, end: int) -> None:
        self.sequences.skip(end - self.position)
        self.position = end

    def _walk(self, page: LogPage) -> None:
        """Take the page's whole batches in order, from the one that holds the position on."""
        data, end = page.data, self._end
        for batch, reason, resume in checked_batches(page, is_crc_checked=self._is_crc_checked):
            if self.position >= end:
                return
            if reason is None:
                self._take_sound(batch, data, end)
                continue
            if resume is None:
                wanted, position, isolation = self._next_fetch()
                resume = self._source.next_batch(wanted, position, batch.end_offset, isolation)
            if resume > self.position:
                self._add_unreadable(min(resume, end), reason)

    def _add_unreadable(self, end: int, reason: str) -> None:
        if self.is_in_tail:
            self.tail.undecodable += end - self.position
        else:
            self.account.add_unreadable(self.position, end, reason)
        self._skip(end)

    def _take_sound(self, batch: Batch, data: bytes, limit: int) -> None:
        marker = marker_type(batch, data) if batch.is_control else None
        if marker == ABORT_MARKER:
            self._aborted.end_transaction(batch.base_offset, batch.producer_id)
        if batch.end_offset <= self.position:
            return
        start, end = clip(batch, self.position, limit)
        if start > self.position:
            self._add_hole(start)
        if end <= start:
            return
        is_in_tail = self.is_in_tail
        if not is_in_tail:
            self.account.add_leader_epoch(batch.leader_epoch, start, end)
        if batch.is_control:
            self._count_control(batch, end - start, marker, is_in_tail=is_in_tail)
        else:
            self._take_data(batch, start, end, is_in_tail=is_in_tail)
        self.position = end

    def _count_control(self, batch: Batch, offsets: int, marker: int | None, *, is_in_tail: bool) -> None:
        records = min(offsets, batch.record_count)
        if is_in_tail:
            self.tail.control += records
            self.tail.empty += offsets - records
        else:
            self.account.control += records
            self.account.compacted += offsets - records
            self.account.commit_markers += marker == COMMIT_MARKER
            self.account.abort_markers += marker == ABORT_MARKER
        if marker is not None:
            self.transactions.add_marker(batch, is_commit=marker == COMMIT_MARKER)

    def _take_data(self, batch: Batch, start: int, end: int, *, is_in_tail: bool) -> None:
        if batch.base_offset >= self._seen_to:  # otherwise its first part was read before
            self._seen_to = batch.end_offset
            self.size_bytes += batch.end - batch.start
            self.statistics.add(batch)
            self.sequences.observe(batch)
            if batch.is_transactional and batch.record_count:
                self.transactions.add_data(batch)
        if is_in_tail:
            self._count_in_tail(batch, end - start)
        else:
            self._count_in_range(batch, start, end)

    def _count_in_tail(self, batch: Batch, offsets: int) -> None:
        records = min(offsets, batch.record_count)
        self.tail.records += records
        self.tail.empty += offsets - records

    def _count_in_range(self, batch: Batch, start: int, end: int) -> None:
        offsets, account = end - start, self.account
        is_aborted = self._aborted.is_aborted(batch.end_offset - 1, batch.producer_id, batch.is_transactional)
        if batch.is_dense or offsets == batch.last_offset_delta + 1:
            records = offsets if batch.is_dense else batch.record_count
        elif batch.record_count:
            self.unopened.append(UnopenedSpan(start=start, end=end))
            return
        else:
            records = 0
        account.compacted += offsets - records
        if batch.codec >= len(CODECS) and records and not is_aborted:
            account.add_unreadable(start, start + records, f"unknown compression codec {batch.codec}")
        elif is_aborted:
            account.aborted += records
        else:
            account.data += records

    def __str__(self) -> str:
        wanted = self.range
        return f"{wanted.topic} partition {wanted.partition} [{wanted.lo}, {wanted.hi})"
