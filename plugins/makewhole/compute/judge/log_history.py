"""Collect the incidents of a topic's log that verdicts depend on: truncated, expired, recreated, another leader."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import polars as pl

from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import PartitionRange, Window

_TRANSACTIONS = (IncidentKind.OPEN_TRANSACTION, IncidentKind.HANGING_TRANSACTION)


@dataclass(frozen=True, kw_only=True)
class Truncation:
    """A truncation of one partition: the records of lineages up to this one from offset `lo` on are gone."""

    topic_id: str
    partition: int
    lineage: int
    lo: int

    def reaches(self, part: PartitionRange) -> bool:
        """Return whether it took records of this range."""
        is_same_log = (part.topic_id, part.partition) == (self.topic_id, self.partition)
        return is_same_log and part.lineage <= self.lineage and part.hi > self.lo


@dataclass(frozen=True, kw_only=True)
class TimeSpan:
    """Moments `[start, end)`; None: no bound on that side."""

    start: datetime | None = None
    end: datetime | None = None

    def widened(self, *, before: timedelta = timedelta(), after: timedelta = timedelta()) -> "TimeSpan":
        """Return this span with its start earlier and its end later by these."""
        return TimeSpan(
            start=None if self.start is None else self.start - before,
            end=None if self.end is None else self.end + after,
        )

    def holds(self, moment: pl.Expr) -> pl.Expr:
        """Return whether a moment lies in it; a null moment may, so it does."""
        inside = pl.lit(True)
        if self.start is not None:
            inside = inside & (moment >= self.start)
        if self.end is not None:
            inside = inside & (moment < self.end)
        return inside.fill_null(True)


@dataclass(frozen=True, kw_only=True)
class LogHistory:
    """The history of one topic's log up to a window.

    `truncations`: every truncation that any window noticed; `truncated`: the incidents of those that this window
    noticed. `expired`: the time spans of earlier windows with offsets that could not be read; `dropped`: those of what
    the key index has dropped, with the time by which rows may be late; `is_partial`: this window, or one after it that
    was judged before, has offsets that could not be read. `begins_at`: from when on it has records, where older ones
    were deleted before the first window could read them; not known with `odd_stamps` (milliseconds by partition), those
    of its first records that cannot be. `is_whole`: windows have read it from its first offset on, and no record was
    lost before or after. The others are this window's incidents of their kind.
    """

    truncations: tuple[Truncation, ...] = ()
    truncated: tuple[Incident, ...] = ()
    expired: tuple[TimeSpan, ...] = ()
    dropped: tuple[TimeSpan, ...] = ()
    is_partial: bool = False
    begins_at: datetime | None = None
    odd_stamps: Mapping[str, int] = field(default_factory=dict)
    recreated: tuple[Incident, ...] = ()
    leader_changes: tuple[Incident, ...] = ()
    transactions: tuple[Incident, ...] = ()
    is_whole: bool = True

    @property
    def has_unread(self) -> bool:
        """Return whether offsets of any window were gone before they were read."""
        return self.is_partial or bool(self.expired)

    def truncated_from(self, parts: Iterable[PartitionRange]) -> dict[int, int]:
        """Return the first offset that truncations took from a window with these ranges, by partition."""
        first_offsets: dict[int, int] = {}
        for part in parts:
            for truncation in self.truncations:
                if truncation.reaches(part):
                    first_offsets[part.partition] = min(truncation.lo, first_offsets.get(part.partition, truncation.lo))
        return first_offsets


def log_history(window: Window, point: str, happened: Sequence[tuple[Window, Incident]], *, expired: int) -> LogHistory:
    """Return a topic's history from all windows' incidents; `expired`: number of this window's expired offsets."""
    ours = [(of, incident) for of, incident in happened if incident.point == point]
    beginnings = [incident for _, incident in ours if incident.kind is IncidentKind.BEGINNING_GONE]
    now = [incident for of, incident in ours if of.number == window.number]
    unread = [of for of, incident in ours if of.number < window.number and is_unread(incident)]
    return LogHistory(
        truncations=tuple(_truncation(incident) for _, incident in ours if _is_truncation(incident)),
        truncated=tuple(incident for incident in now if _is_truncation(incident)),
        expired=tuple(TimeSpan(start=of.start, end=of.end) for of in unread),
        is_partial=expired > 0 or any(of.number >= window.number and is_unread(incident) for of, incident in ours),
        begins_at=_latest_beginning(beginnings),
        odd_stamps={at: stamp for beginning in beginnings for at, stamp in beginning.detail.get("stamps", {}).items()},
        recreated=tuple(incident for incident in now if incident.kind is IncidentKind.TOPIC_RECREATED),
        leader_changes=tuple(incident for incident in now if incident.kind is IncidentKind.LEADER_CHANGED),
        transactions=tuple(incident for incident in now if incident.kind in _TRANSACTIONS),
        is_whole=not beginnings and not any(_loses(incident) for _, incident in ours),
    )


def is_unread(incident: Incident) -> bool:
    """Return whether offsets of the incident's window were gone before they could be read."""
    return incident.kind is IncidentKind.EXPIRED or bool(incident.detail.get("before_it_was_read"))


def _loses(incident: Incident) -> bool:
    return incident.kind in (IncidentKind.TRUNCATED, IncidentKind.TOPIC_RECREATED) or is_unread(incident)


def _latest_beginning(beginnings: Iterable[Incident]) -> datetime | None:
    """Return from when on a log that lost its beginning has its records, as far as the stamps of these say it."""
    known = (beginning.detail["begins_at"] for beginning in beginnings)
    return max((datetime.fromisoformat(moment) for moment in known if moment is not None), default=None)


def _is_truncation(incident: Incident) -> bool:
    return incident.kind is IncidentKind.TRUNCATED and not is_unread(incident)


def _truncation(incident: Incident) -> Truncation:
    assert incident.partition is not None and incident.lo is not None
    return Truncation(
        topic_id=incident.topic_id,
        partition=incident.partition,
        lineage=int(incident.detail.get("lineage", 0)),
        lo=incident.lo,
    )


def truncated_copies(copies: pl.DataFrame, limits: Mapping[int, int]) -> pl.DataFrame:
    """Return the copies (with `partition`, `offset`) that a truncation took: from the limit of their partition on."""
    return copies.filter(is_truncated(limits))


def remaining_copies(copies: pl.DataFrame, limits: Mapping[int, int]) -> pl.DataFrame:
    """Return the copies that no truncation took."""
    return copies.filter(~is_truncated(limits))


def is_truncated(limits: Mapping[int, int]) -> pl.Expr:
    """Return for a copy (with `partition`, `offset`) whether a truncation took it."""
    is_gone = pl.lit(False)
    for partition, limit in sorted(limits.items()):
        is_gone = is_gone | ((pl.col("partition") == partition) & (pl.col("offset") >= limit))
    return is_gone
