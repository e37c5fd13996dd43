"""Count the rows of tables in the time slices of earlier windows: a slice that has grown is read with this window.

What comes later than `late` reaches back is found so, and what a restored table hides from its transaction ids. The
slices that `late` reaches are counted for every window, and the newest before them; the others in turns, so that a
window's cost does not grow with the number of windows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

import polars as pl

from makewhole.journal.results import slice_counts
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.points import TablePoint
from makewhole.model.window import CountedSlice, KnownSlice, TimeSlice, Window
from makewhole.sql import PgConnection
from makewhole.tables.reading import BYTES_WITHOUT_INDEX, TableView
from makewhole.tables.shape import EarlierRows, RowsAhead

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RECENT_SLICES = 7
_ROTATED_SLICES = 16
_ROWS_LEAST = 1_000_000
_SLICES_LISTED_MOST = 20


@dataclass(frozen=True, kw_only=True)
class Census:
    """The counts of slices, the rows of earlier slices that have to be read, and the incidents to tell."""

    counted: tuple[CountedSlice, ...]
    earlier: tuple[EarlierRows, ...]
    incidents: tuple[Incident, ...]


@dataclass(frozen=True, kw_only=True)
class _Change:
    """The rows of an earlier slice now (`rows`), and when it was counted last (`known`)."""

    known: KnownSlice
    rows: int
    new_rows: int

    @property
    def grown(self) -> int:
        return 0 if self.known.rows is None else self.rows - self.known.rows


@dataclass(frozen=True, kw_only=True)
class TableCensus:
    """A census of one table for a window, under the view of the data by which the window reads it.

    `has_versions`: rows are updated and deleted as a rule, and leave their slices.
    """

    journal: PgConnection
    view: TableView
    window: Window
    point: TablePoint
    late: timedelta
    has_versions: bool

    def take(self) -> Census:
        """Count the slices of earlier windows that are due. Its own the window counts while it is read."""
        window = self.window
        bounds = slice_counts.bounds(self.journal, window, self.point, reaches_from(window, self.late))
        numbers = slices_to_look_at(*bounds, window.number)
        known = slice_counts.counted_before(self.journal, window, self.point, numbers)
        due = slices_due(known, window, self.late)
        # All at once: without an index each call reads the whole table.
        now, ahead = self.view.count_rows_and_ahead([earlier.slice for earlier in due])
        changes = [self._change(earlier, now[earlier.slice.window]) for earlier in due]
        return Census(
            counted=tuple(CountedSlice(slice=change.known.slice, rows=change.rows) for change in changes),
            earlier=tuple(_rows_to_read(change) for change in changes if change.grown > 0 or change.new_rows),
            incidents=(*self._incidents(changes), *self._times_ahead(ahead)),
        )

    def _change(self, known: KnownSlice, rows: int) -> _Change:
        """Return what changed. Only where the number did, or was never counted, it is asked which rows are new: any of
        them may be, where the table stood in another place."""
        if rows == known.rows:
            return _Change(known=known, rows=rows, new_rows=0)
        if known.pg_snapshot is None:
            return _Change(known=known, rows=rows, new_rows=rows)
        return _Change(known=known, rows=rows, new_rows=self.view.count_new_rows(known.slice, known.pg_snapshot))

    def _incidents(self, changes: Sequence[_Change]) -> Iterable[Incident]:
        behind = (change for change in changes if self._is_behind(change))
        by_kind = {
            IncidentKind.SLICE_GROWN: [change for change in behind if not self._is_ours(change)],
            IncidentKind.SLICE_SHRUNK: [
                change for change in changes if change.grown < 0 and not self.has_versions and not self._is_ours(change)
            ],
            IncidentKind.SLICE_FIRST_COUNTED: [change for change in changes if change.known.rows is None],
        }
        for kind, ones in by_kind.items():
            if ones:
                yield self._incident(kind, ones)
        if self.view.size_bytes > BYTES_WITHOUT_INDEX and not self.view.has_time_index:
            yield Incident(
                kind=IncidentKind.NO_TIME_INDEX,
                point=self.point.name,
                topic=self.point.table,
                topic_id="",
                detail={"column": self.point.time},
            )

    def _times_ahead(self, ahead: RowsAhead) -> Iterable[Incident]:
        """Yield an incident where rows have times that no window reaches: they would never be counted."""
        if ahead.rows or ahead.infinite:
            yield Incident(
                kind=IncidentKind.TIMES_AHEAD,
                point=self.point.name,
                topic=self.point.table,
                topic_id="",
                detail={"column": self.point.time, **asdict(ahead)},
            )

    def _is_behind(self, change: _Change) -> bool:
        """Return whether a slice has grown by more rows than came to its part that `late` reaches."""
        known, from_when = change.known, reaches_from(self.window, self.late)
        if change.grown <= 0 or (known.slice.start is not None and known.slice.start >= from_when):
            return False
        if known.slice.end <= from_when or known.pg_snapshot is None:
            return True
        reached = replace(known.slice, start=from_when)
        return change.grown > self.view.count_new_rows(reached, known.pg_snapshot)

    def _is_ours(self, change: _Change) -> bool:
        """Return whether what compensation wrote since the count may be all of the change."""
        since = change.known.counted_at
        return abs(change.grown) <= slice_counts.written_since(self.journal, self.window, self.point, since)

    def _incident(self, kind: IncidentKind, changes: Sequence[_Change]) -> Incident:
        listed = [
            {"window": change.known.slice.window, "counted": change.known.rows, "rows": change.rows}
            for change in changes[:_SLICES_LISTED_MOST]
        ]
        detail = {
            "slices": listed,
            "windows": len(changes),
            "rows": sum(abs(change.grown) for change in changes),
            "new_rows": sum(change.new_rows for change in changes),
        }
        return Incident(kind=kind, point=self.point.name, topic=self.point.table, topic_id="", detail=detail)


def own_slice(window: Window) -> TimeSlice:
    """Return the time slice of a window."""
    return TimeSlice(window=window.number, start=window.start, end=window.end)


def rows_in_slice(times: pl.Series, of: TimeSlice) -> int | None:
    """Return the number of rows of a slice, by the times of all rows that were read for it (microseconds since 1970).

    None where they do not tell: one without a time may be of the infinite past, which a slice without a start has.
    """
    if of.start is None and times.has_nulls():
        return None
    start, end = (None if edge is None else _microseconds(edge) for edge in (of.start, of.end))
    within = times < end if start is None else (times >= start) & (times < end)
    return int(within.sum())


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _rows_to_read(change: _Change) -> EarlierRows:
    """Return the rows of a slice that came since it was counted; all of them, where transaction ids do not tell which.

    They do not where a table was restored or copied from a server whose ids were lower, or stands elsewhere now.
    """
    is_explained = change.new_rows >= change.grown
    return EarlierRows(
        start=change.known.slice.start,
        end=change.known.slice.end,
        seen_before=change.known.pg_snapshot if is_explained else None,
    )


def reaches_from(window: Window, late: timedelta) -> datetime:
    """Return from when on rows of earlier times are read with the window."""
    return (window.start or window.end) - late


def slices_to_look_at(first: int, reached: int, number: int) -> list[int]:
    """Return the windows of whose slices some are counted with window `number`: those from `reached` on, the newest
    before them, and of the others, which begin with `first`, those whose turn it is.

    Turns go by the remainder of a power of two, so that each window looks at some 16 to 32 of the others, and all of
    them have had their turn after an eighth of their number.
    """
    newest = max(first, reached - _RECENT_SLICES)
    turns = 1 << max(0, ((newest - first) // _ROTATED_SLICES).bit_length() - 1)
    return [*(earlier for earlier in range(first, newest) if earlier % turns == number % turns), *range(newest, number)]


def slices_due(known: Sequence[KnownSlice], window: Window, late: timedelta) -> list[KnownSlice]:
    """Return the slices to count with a window, in order: of those that are looked at the ones that `late` reaches, the
    newest before them, and of the others those that were not counted for longest.

    A large slice waits so many windows that the rows counted in one stay in proportion to the newest window's.
    """
    reached = [earlier for earlier in known if earlier.slice.end > reaches_from(window, late)]
    most = max(_ROWS_LEAST, 4 * ((known[-1].rows if known else None) or 0))
    others = [earlier for earlier in known if earlier not in reached]
    recent = others[-_RECENT_SLICES:][::-1]
    is_due = {other.slice.window: (other.rows or 0) <= most * (window.number - other.counted_by) for other in others}
    rotated = sorted(others[:-_RECENT_SLICES], key=lambda other: (other.counted_by, other.slice.window))
    chosen = list(reached)
    for ones, number in ((recent, _RECENT_SLICES), (rotated, _ROTATED_SLICES)):
        chosen += _first_of([other for other in ones if is_due[other.slice.window]][:number], most)
    return sorted(chosen, key=lambda earlier: earlier.slice.window)


def _first_of(slices: Sequence[KnownSlice], most: int) -> list[KnownSlice]:
    """Return the first slices, together with at most so many rows; one at least, which may have more."""
    chosen, rows = list[KnownSlice](), 0
    for known in slices:
        rows += known.rows or 0
        if chosen and rows > most:
            break
        chosen.append(known)
    return chosen
