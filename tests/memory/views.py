"""Hold views of tables in memory, and read their rows as frames."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import polars as pl

from makewhole.compute.frames import Schema
from makewhole.compute.versions import VERSION
from makewhole.model.errors import TransientError
from makewhole.model.points import TablePoint
from makewhole.model.window import TimeSlice
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.tables.reading import ReadBefore, ReadPlan, UnreadableFile
from makewhole.tables.shape import RowsAhead, TableShape, TimeBounds
from tests.memory.columns import existing_table
from tests.memory.connection import MemoryConnection
from tests.memory.rows import Database, StoredRow, StoredTable
from tests.memory.values import excluded_by, exported_text, key_of_row, microseconds_of_row, moment_of, version_of_row

_DAY = timedelta(days=1)
_FRAME: Schema = {
    "key": pl.String,
    "place": pl.String,
    "time_us": pl.Int64,
    "version": VERSION,
    "excluded_by": pl.String,
}
Part = tuple[int, int]
"""A number, and the number of parts: the rows whose numbers leave it as their remainder."""


def hold(database: Database, shape: TableShape) -> tuple[str, str]:
    """Keep a copy of a table; return its name, and the number of the last change in it.

    Raises:
        ConfigurationError: the table or a column does not exist.
    """
    database.last_view += 1
    name = f"view {database.last_view}"
    database.views[name] = deepcopy(existing_table(database, shape))
    return name, str(database.changes)


def release(database: Database, view: str) -> None:
    """Keep the copy no longer."""
    del database.views[view]


def is_certain(row: StoredRow, seen: str) -> bool:
    """Return whether a row, as it is now, was there when `seen` was the number of the last change."""
    return row.changed <= int(seen)


def _source(database: Database, shape: TableShape, view: str | None) -> StoredTable:
    """Return a table as it is now, or as a view has it.

    Raises:
        ConfigurationError: the table or a column does not exist.
        TransientError: the view is held no longer.
    """
    if view is None:
        return existing_table(database, shape)
    if view not in database.views:
        raise TransientError(f"{view} of {shape.point.table} is gone; read again")
    return database.views[view]


def rows_of_part(
    database: Database, shape: TableShape, view: str | None, bounds: TimeBounds | None, part: Part
) -> list[StoredRow]:
    """Return the rows of a part that are inside the bounds."""
    number, parts = part
    rows = _source(database, shape, view).rows.values()
    return [row for row in rows if row.id % parts == number and _is_inside(row, shape.point, bounds)]


def rows_of_keys(database: Database, shape: TableShape, view: str | None, keys: frozenset[str]) -> list[StoredRow]:
    """Return the rows of these keys, whatever their times."""
    return [row for row in _source(database, shape, view).rows.values() if key_of_row(row.values, shape.point) in keys]


def _is_inside(row: StoredRow, point: TablePoint, bounds: TimeBounds | None) -> bool:
    if bounds is None or point.time is None:
        return True
    time = moment_of(row, point)
    if time is None:
        return bounds.start is None or bounds.seen_before is None or not is_certain(row, bounds.seen_before)
    return _is_between(time, bounds.start, bounds.end) or any(
        _is_between(time, earlier.start, earlier.end)
        and (earlier.seen_before is None or not is_certain(row, earlier.seen_before))
        for earlier in bounds.earlier
    )


def _is_between(time: datetime, start: datetime | None, end: datetime) -> bool:
    return (start is None or time >= start) and time < end


def rows_of_slice(database: Database, shape: TableShape, view: str, of: TimeSlice) -> list[StoredRow]:
    """Return the rows of a slice; those without a time are in none."""
    times = ((row, moment_of(row, shape.point)) for row in database.views[view].rows.values())
    return [row for row, time in times if time is not None and _is_between(time, of.start, of.end)]


def rows_ahead(database: Database, shape: TableShape, view: str) -> RowsAhead:
    """Count the rows with times more than a day after now."""
    column = shape.point.time or ""
    rows = database.views[view].rows.values()
    texts = [str(row.values[column]) for row in rows if _is_ahead(moment_of(row, shape.point))]
    return RowsAhead(rows=len(texts), oldest=min(texts, default=None), newest=max(texts, default=None), infinite=0)


def _is_ahead(time: datetime | None) -> bool:
    return time is not None and time > datetime.now(UTC) + _DAY


@dataclass(frozen=True, kw_only=True)
class HeldCopy:
    """A copy of a table that the server keeps (`TableView`)."""

    connection: MemoryConnection
    shape: TableShape
    view: str
    seen: str

    has_places = True
    has_time_index = True
    has_key_index = True
    reads_keys_by_parts = True

    @property
    def size_bytes(self) -> int:
        return sum(len(row.image) for row in self._rows(None, (0, 1)))

    def leave_out(self, files: Sequence[UnreadableFile]) -> None:
        """Do nothing: no file of the table is read."""

    def plan(self, bounds: TimeBounds | None, parts: int) -> ReadPlan:
        return ReadPlan(view=self.view, seen=self.seen, parts=tuple((number, parts) for number in range(parts)))

    def count_rows(self, slices: Sequence[TimeSlice]) -> dict[int, int]:
        return {part.window: len(self._rows_of_slice(part)) for part in slices}

    def count_rows_and_ahead(self, slices: Sequence[TimeSlice]) -> tuple[dict[int, int], RowsAhead]:
        return self.count_rows(slices), self.connection.ask(rows_ahead, self.shape, self.view)

    def count_new_rows(self, of: TimeSlice, seen: str) -> int:
        return sum(not is_certain(row, seen) for row in self._rows_of_slice(of))

    def mark(self, bounds: TimeBounds | None) -> str:
        return self.shape.point.table

    def why_not_same(self, bounds: TimeBounds | None, before: ReadBefore) -> str | None:
        """Return why not: any change of the database has a number, and may be of these rows."""
        rows = self._rows(bounds, (0, 1))
        if len(rows) != before.rows or any(not is_certain(row, before.seen) for row in rows):
            return "rows of it came, went or were changed"
        return None

    def _rows(self, bounds: TimeBounds | None, part: Part) -> list[StoredRow]:
        return self.connection.ask(rows_of_part, self.shape, self.view, bounds, part)

    def _rows_of_slice(self, of: TimeSlice) -> list[StoredRow]:
        return self.connection.ask(rows_of_slice, self.shape, self.view, of)


@contextmanager
def hold_view(connection: MemoryConnection, shape: TableShape) -> Iterator[HeldCopy]:
    """Hold a view of a table as it is now."""
    view, seen = connection.ask(hold, shape)
    try:
        yield HeldCopy(connection=connection, shape=shape, view=view, seen=seen)
    finally:
        connection.ask(release, view)


class MemoryReader:
    """A reader of rows as frames (`TableReader`)."""

    def __init__(self, connection: MemoryConnection, shape: TableShape, view: str | None) -> None:
        self._connection, self._shape, self._view = connection, shape, view
        self.counted = 0
        self.in_doubt: Sequence[TransactionInDoubt] = ()
        self.unreadable: Sequence[UnreadableFile] = ()

    def part(self, bounds: TimeBounds | None, part: Part) -> Iterator[pl.DataFrame]:
        """Read the rows of a part of the table."""
        yield from self._frames(self._connection.ask(rows_of_part, self._shape, self._view, bounds, part))

    def keys(self, keys: Sequence[str], since: str | None = None) -> Iterator[pl.DataFrame]:
        """Read the rows of these keys."""
        yield from self._frames(self._connection.ask(rows_of_keys, self._shape, self._view, frozenset(keys)))

    def keys_in_part(self, keys: pl.DataFrame, part: Part) -> Iterator[pl.DataFrame]:
        """Read the rows of these keys in a part of the table."""
        wanted = frozenset(keys["key"])
        rows = self._connection.ask(rows_of_part, self._shape, self._view, None, part)
        yield from self._frames([row for row in rows if key_of_row(row.values, self._shape.point) in wanted])

    def _frames(self, rows: list[StoredRow]) -> Iterator[pl.DataFrame]:
        self.counted += len(rows)
        if rows:
            yield frame_of_rows(rows, self._shape)


def frame_of_rows(rows: Sequence[StoredRow], shape: TableShape) -> pl.DataFrame:
    """Return rows as `makewhole.compute.normalise.table_frame` takes them."""
    point = shape.point
    compared: Schema = {f"c:{name}": pl.String for name in shape.compare}
    records = [
        {
            "key": key_of_row(row.values, point),
            "place": row.place,
            "time_us": microseconds_of_row(row, point),
            "version": version_of_row(row.values, point),
            "excluded_by": excluded_by(row, shape.filters),
            **{f"c:{name}": exported_text(row.values[name], kind) for name, kind in shape.compare.items()},
        }
        for row in rows
    ]
    return pl.DataFrame(records, schema=_FRAME | compared)
