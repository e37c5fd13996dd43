"""Read tables in memory: views that are held, rows as frames, and the rows of keys."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NoReturn

import polars as pl

from makewhole.compute.canonical import canonical_text
from makewhole.compute.frames import Schema
from makewhole.compute.value_types import ColumnKind
from makewhole.compute.versions import VERSION
from makewhole.model.errors import ActionRefusedError, ConfigurationError, Problem, RefusedError, TransientError
from makewhole.model.points import TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.model.window import TimeSlice
from makewhole.tables.columns import TableColumns
from makewhole.tables.description import TableDescription
from makewhole.tables.identities import TableIdentity
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.tables.reading import ReadBefore, ReadPlan, UnreadableFile
from makewhole.tables.rows import LedgerReading, LedgerRecord, TableRow, ValuedRow
from makewhole.tables.shape import RowsAhead, TableShape, TimeBounds
from tests.memory.connection import MemoryConnection
from tests.memory.rows import Database, StoredRow, StoredTable
from tests.memory.values import (
    excluded_by,
    exported_text,
    key_of_row,
    microseconds_of_row,
    moment_of,
    rows_of_key,
    survivors_first,
    version_of_row,
)

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


def refuse_ledger() -> NoReturn:
    """Refuse what only ledgers are asked for: a table in memory is none."""
    raise RefusedError("a table in memory cannot be a ledger")


# The columns of tables


def describe_columns(
    database: Database, shapes: Sequence[TableShape]
) -> tuple[Mapping[str, TableColumns], Sequence[Problem]]:
    """Return the columns of tables by point, and the tables and columns that do not exist."""
    found: dict[str, TableColumns] = {}
    problems: list[Problem] = []
    for shape in shapes:
        try:
            table = _existing(database, shape)
        except ConfigurationError as error:
            problems += error.problems
        else:
            found[shape.point.name] = _columns(database, table, shape.point)
    return found, problems


def _existing(database: Database, shape: TableShape) -> StoredTable:
    """Return the table of a shape.

    Raises:
        ConfigurationError: the table or a column does not exist.
    """
    point, table = shape.point, database.tables.get(shape.point.table)
    if table is None:
        raise ConfigurationError([_problem(point, "table", f"table {point.table} does not exist", "Correct its name")])
    known = f"It has: {', '.join(sorted(table.columns))}"
    unknown = sorted(shape.column_names() - set(table.columns))
    if unknown:
        raise ConfigurationError(
            [_problem(point, name, f"{point.table} has no column {name}", known) for name in unknown]
        )
    return table


def _problem(point: TablePoint, path: str, found: str, remedy: str) -> Problem:
    return Problem(file="pipeline file", path=f"points.{point.name}.{path}", found=found, remedy=remedy)


def _columns(database: Database, table: StoredTable, point: TablePoint) -> TableColumns:
    return TableColumns(
        types=tuple(table.columns[name].type for name in point.key),
        ids={name: f"{table.number}.{name}" for name in point.key},
        kinds=_kinds({name: column.type for name, column in table.columns.items()}),
        relation="r",
        identity=TableIdentity(
            server=database.identity, table=table.number, rows_in=frozenset({table.number}), is_row_by_row=True
        ),
    )


def _kinds(types: Mapping[str, str]) -> Mapping[str, ColumnKind]:
    return {name: ColumnKind.of(column_type, full_type=column_type) for name, column_type in types.items()}


# Views that are held


def hold(database: Database, shape: TableShape) -> tuple[str, str]:
    """Keep a copy of a table; return its name, and the number of the last change in it.

    Raises:
        ConfigurationError: the table or a column does not exist.
    """
    database.last_view += 1
    name = f"view {database.last_view}"
    database.views[name] = deepcopy(_existing(database, shape))
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
        return _existing(database, shape)
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
        _is_between(time, one.start, one.end) and (one.seen_before is None or not is_certain(row, one.seen_before))
        for one in bounds.earlier
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

    @property
    def size_bytes(self) -> int:
        return sum(len(row.image) for row in self._rows(None, (0, 1)))

    def leave_out(self, files: Sequence[UnreadableFile]) -> None:
        """Do nothing: no file of the table is read."""

    def plan(self, bounds: TimeBounds | None, parts: int) -> ReadPlan:
        return ReadPlan(view=self.view, seen=self.seen, parts=tuple((number, parts) for number in range(parts)))

    def count_rows(self, slices: Sequence[TimeSlice]) -> dict[int, int]:
        return {one.window: len(self._rows_of_slice(one)) for one in slices}

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

    def keys(self, keys: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Read the rows of these keys."""
        yield from self._frames(self._connection.ask(rows_of_keys, self._shape, self._view, frozenset(keys)))

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


# The rows of keys


def open_table(database: Database, point: TablePoint) -> TableDescription:
    """Return what is known of the table of a point.

    Raises:
        RefusedError: there is none, or it lacks a column that the point names.
    """
    return database.description(database.table(point))


def find_rows(
    database: Database,
    point: TablePoint,
    compare: Mapping[str, str],
    key: str,
    *,
    is_exact: bool,
    is_latest_first: bool,
) -> list[ValuedRow]:
    """Return the rows of a key in their order, with the values of these columns.

    Raises:
        RefusedError: the table lacks a compared column, or cannot hold such a key.
    """
    table = database.table(point)
    absent = sorted(set(compare) - set(table.columns))
    if absent:
        raise ActionRefusedError.of(RefusalCode.UNFIT, f"{table.name} has no column {', '.join(absent)} to compare")
    found = rows_of_key(table, point, key, is_exact=is_exact)
    return [
        ValuedRow(
            row=table.row(row),
            place=row.place,
            values={name: canonical_text(row.values[name], declared) for name, declared in compare.items()},
        )
        for row in survivors_first(found, point, is_latest_first=is_latest_first)
    ]


@dataclass(frozen=True, kw_only=True)
class MemoryTable:
    """A table of a point (`OpenTable`)."""

    connection: MemoryConnection
    point: TablePoint
    description: TableDescription

    locks_for_new_rows = False

    def rows_of_key(self, key: str, *, is_exact: bool = True, is_latest_first: bool = False) -> list[TableRow]:
        found = self.valued_rows({}, key, is_exact=is_exact, is_latest_first=is_latest_first)
        return [one.row for one in found]

    def valued_rows(
        self, compare: Mapping[str, str], key: str, *, is_exact: bool = True, is_latest_first: bool = False
    ) -> list[ValuedRow]:
        return self.connection.ask(
            find_rows, self.point, compare, key, is_exact=is_exact, is_latest_first=is_latest_first
        )

    def valued_rows_of_many(
        self, compare: Mapping[str, str], keys: Sequence[str], *, is_exact: bool = True
    ) -> Mapping[str, Sequence[ValuedRow]]:
        found = {key: self.valued_rows(compare, key, is_exact=is_exact) for key in keys}
        return {key: rows for key, rows in found.items() if rows}

    def ledger_record(self, key: str, reading: LedgerReading) -> LedgerRecord | None:
        refuse_ledger()

    def ledger_records(self, keys: Sequence[str], reading: LedgerReading) -> Mapping[str, LedgerRecord]:
        refuse_ledger()

    def erased(self, keys: Sequence[str]) -> set[str]:
        return set()

    def require_quarantine_possible(self) -> None:
        """Do nothing: no table reaches into another one."""


def types_of(database: Database, point: TablePoint) -> Mapping[str, str]:
    """Return the types of all columns of a table; empty: there is no such table."""
    table = database.tables.get(point.table)
    return {} if table is None else {name: column.type for name, column in table.columns.items()}


@dataclass(frozen=True, kw_only=True)
class MemorySession:
    """A session, of which nothing stays open between two requests (`TableSession`)."""

    connection: MemoryConnection

    def open_table(self, point: TablePoint) -> MemoryTable:
        description = self.connection.ask(open_table, point)
        return MemoryTable(connection=self.connection, point=point, description=description)

    def column_types(self, point: TablePoint) -> Mapping[str, str]:
        return self.connection.ask(types_of, point)

    def column_kinds(self, point: TablePoint) -> Mapping[str, ColumnKind]:
        return _kinds(self.column_types(point))

    def may_read(self, point: TablePoint, columns: Sequence[str]) -> bool:
        return True

    def missing_to_write(self, point: TablePoint, acts: Collection[str]) -> Sequence[str]:
        return ()
