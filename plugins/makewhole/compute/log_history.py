"""What happened to a topic's log, as far as verdicts depend on it: what is gone, and what can no longer be known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import PartitionRange, Window

_TRANSACTIONS = (IncidentKind.OPEN_TRANSACTION, IncidentKind.HANGING_TRANSACTION)


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A truncation: whatever lineages up to this one held from offset `lo` on is gone."""

    topic_id: str
    partition: int
    lineage: int
    lo: int

    def reaches(self, part: PartitionRange) -> bool:
        """Whether records of this range are gone by it."""
        is_same_log = (part.topic_id, part.partition) == (self.topic_id, self.partition)
        return is_same_log and part.lineage <= self.lineage and part.hi > self.lo


@dataclass(frozen=True, kw_only=True)
class TimeSpan:
    """Moments `[start, end)`; None is without bound on that side."""

    start: datetime | None = None
    end: datetime | None = None

    def around(self, *, before: timedelta = timedelta(), after: timedelta = timedelta()) -> "TimeSpan":
        """This span with room on its sides."""
        return TimeSpan(
            start=None if self.start is None else self.start - before,
            end=None if self.end is None else self.end + after,
        )

    def holds(self, moment: pl.Expr) -> pl.Expr:
        """Whether a moment lies in it; of an unknown moment that is not known, so it may."""
        inside = pl.lit(True)
        if self.start is not None:
            inside = inside & (moment >= self.start)
        if self.end is not None:
            inside = inside & (moment < self.end)
        return inside.fill_null(True)


@dataclass(frozen=True, kw_only=True)
class LogHistory:
    """One topic as a window sees it.

    `cuts`: every truncation that any window noticed; `truncated`: those that this one did. `expired`: the labels of
    earlier windows with offsets that nobody could read; `is_partial`: this one has such. The others are this window's
    incidents of their kind.
    """

    cuts: tuple[Cut, ...] = ()
    truncated: tuple[Incident, ...] = ()
    expired: tuple[TimeSpan, ...] = ()
    is_partial: bool = False
    recreated: tuple[Incident, ...] = ()
    leader_changes: tuple[Incident, ...] = ()
    transactions: tuple[Incident, ...] = ()

    def cut_offsets(self, parts: Iterable[PartitionRange]) -> dict[int, int]:
        """Of a window with these ranges: from which offset on its records are gone, by partition."""
        found: dict[int, int] = {}
        for part in parts:
            for cut in self.cuts:
                if cut.reaches(part):
                    found[part.partition] = min(cut.lo, found.get(part.partition, cut.lo))
        return found


def log_history(window: Window, point: str, found: Sequence[tuple[Window, Incident]], *, expired: int) -> LogHistory:
    """The history of a topic from the incidents of all windows; `expired` is this window's count of such offsets."""
    ours = [(of, incident) for of, incident in found if incident.point == point]
    now = [incident for of, incident in ours if of.number == window.number]
    unread = [of for of, incident in ours if of.number < window.number and _is_unread(incident)]
    cuts = [_cut(incident) for _, incident in ours if _is_cut(incident)]
    return LogHistory(
        cuts=tuple(cuts),
        truncated=tuple(incident for incident in now if _is_cut(incident)),
        expired=tuple(TimeSpan(start=of.start, end=of.end) for of in unread),
        is_partial=expired > 0 or any(_is_unread(incident) for incident in now),
        recreated=tuple(incident for incident in now if incident.kind is IncidentKind.TOPIC_RECREATED),
        leader_changes=tuple(incident for incident in now if incident.kind is IncidentKind.LEADER_CHANGED),
        transactions=tuple(incident for incident in now if incident.kind in _TRANSACTIONS),
    )


def _is_unread(incident: Incident) -> bool:
    """Offsets of the window that were gone before they could be read."""
    return incident.kind is IncidentKind.EXPIRED or bool(incident.detail.get("before_it_was_read"))


def _is_cut(incident: Incident) -> bool:
    return incident.kind is IncidentKind.TRUNCATED and not _is_unread(incident)


def _cut(incident: Incident) -> Cut:
    assert incident.partition is not None and incident.lo is not None
    return Cut(
        topic_id=incident.topic_id,
        partition=incident.partition,
        lineage=int(incident.detail.get("lineage", 0)),
        lo=incident.lo,
    )


def gone(copies: pl.DataFrame, limits: Mapping[int, int]) -> pl.DataFrame:
    """The copies (with `partition`, `offset`) that a truncation took: at or after the limit of their partition."""
    return copies.filter(_is_gone(limits))


def still_there(copies: pl.DataFrame, limits: Mapping[int, int]) -> pl.DataFrame:
    """The copies that no truncation took."""
    return copies.filter(~_is_gone(limits))


def _is_gone(limits: Mapping[int, int]) -> pl.Expr:
    is_gone = pl.lit(False)
    for partition, limit in sorted(limits.items()):
        is_gone = is_gone | ((pl.col("partition") == partition) & (pl.col("offset") >= limit))
    return is_gone
