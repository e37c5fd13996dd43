"""Account for every offset of a partition range: what it was, and where whatever could not be read stands."""

from dataclasses import dataclass, field
from typing import NamedTuple

from makewhole.kafka.log.salvage import Undecodable
from makewhole.model.window import Accounting, PartitionRange

OffsetSpan = tuple[int, int]


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


@dataclass(kw_only=True)
class OffsetAccount:
    """Account of the offsets of a range, which grows while the range is read. Spans are half-open, in offset order.

    `expired`: gone before they could be read, by retention, DeleteRecords or truncation; `truncated`: those of them
    that a truncation took. `undecodable` holds the `unexplained` holes too: no batch stands there, and the topic is
    not compacted.
    """

    range: PartitionRange
    data: int = 0
    control: int = 0
    aborted: int = 0
    compacted: int = 0
    commit_markers: int = 0
    abort_markers: int = 0
    expired: list[OffsetSpan] = field(default_factory=list)
    truncated: list[OffsetSpan] = field(default_factory=list)
    undecodable: list[Undecodable] = field(default_factory=list)
    unexplained: list[Undecodable] = field(default_factory=list)
    leader_epochs: list[LeaderEpoch] = field(default_factory=list)
    _undecodable: int = 0

    def expire(self, start: int, end: int) -> None:
        """Add offsets `[start, end)` that are gone from the log's beginning."""
        self.expired.append((start, end))

    def truncate(self, start: int, end: int) -> None:
        """Add offsets `[start, end)` that were cut off the log's end after the range was frozen."""
        self.expired.append((start, end))
        self.truncated.append((start, end))

    def add_hole(self, start: int, end: int, reason: str | None) -> None:
        """Add offsets `[start, end)` that no batch holds: compacted, unless there is a reason to doubt it."""
        if reason is None:
            self.compacted += end - start
            return
        self.add_unreadable(start, end, reason)
        self.unexplained.append(self.undecodable[-1])

    def add_unreadable(self, start: int, end: int, reason: str) -> None:
        """Add offsets `[start, end)` that exist and cannot be read."""
        self._undecodable += end - start
        self.undecodable.append(Undecodable(self.range.partition, start, end, reason))

    def add_salvaged(self, places: list[Undecodable], bad: int) -> None:
        """Add `bad` unreadable records of one batch; in a compacted batch their places are not exactly known."""
        self._undecodable += bad
        self.undecodable.extend(places)

    def add_leader_epoch(self, epoch: int, start: int, end: int) -> None:
        """Add offsets `[start, end)` of a batch of this leader epoch."""
        if self.leader_epochs and self.leader_epochs[-1].epoch == epoch:
            self.leader_epochs[-1] = self.leader_epochs[-1]._replace(end_offset=end)
        else:
            self.leader_epochs.append(LeaderEpoch(epoch, start, end))

    @property
    def transactions(self) -> TransactionCounts:
        return TransactionCounts(committed=self.commit_markers, aborted=self.abort_markers)

    @property
    def accounting(self) -> Accounting:
        """Sums of the account; complete once the range was read to its end."""
        return Accounting(
            span=self.range.span,
            data=self.data,
            control=self.control,
            aborted=self.aborted,
            compacted=self.compacted,
            expired=sum(end - start for start, end in self.expired),
            undecodable=self._undecodable,
        )
