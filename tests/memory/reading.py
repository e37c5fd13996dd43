"""Read the rows of keys from tables in memory."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from makewhole.compute.canonical import canonical_text
from makewhole.compute.value_types import ColumnKind
from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.points import TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.tables.description import TableDescription
from makewhole.tables.rows import LedgerReading, LedgerRecord, TableRow, ValuedRow
from tests.memory.columns import kinds_of
from tests.memory.connection import MemoryConnection
from tests.memory.rows import Database
from tests.memory.values import rows_of_key, survivors_first


def refuse_ledger() -> NoReturn:
    """Refuse what only ledgers are asked for: a table in memory is none."""
    raise RefusedError("a table in memory cannot be a ledger")


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
    rows = rows_of_key(table, point, key, is_exact=is_exact)
    return [
        ValuedRow(
            row=table.row(row),
            place=row.place,
            values={name: canonical_text(row.values[name], declared) for name, declared in compare.items()},
        )
        for row in survivors_first(rows, point, is_latest_first=is_latest_first)
    ]


@dataclass(frozen=True, kw_only=True)
class MemoryTable:
    """A table of a point (`OpenTable`)."""

    connection: MemoryConnection
    point: TablePoint
    description: TableDescription

    locks_for_new_rows = False

    def rows_of_key(self, key: str, *, is_exact: bool = True, is_latest_first: bool = False) -> list[TableRow]:
        rows = self.valued_rows({}, key, is_exact=is_exact, is_latest_first=is_latest_first)
        return [row.row for row in rows]

    def valued_rows(
        self, compare: Mapping[str, str], key: str, *, is_exact: bool = True, is_latest_first: bool = False
    ) -> list[ValuedRow]:
        return self.connection.ask(
            find_rows, self.point, compare, key, is_exact=is_exact, is_latest_first=is_latest_first
        )

    def valued_rows_of_many(
        self, compare: Mapping[str, str], keys: Sequence[str], *, is_exact: bool = True
    ) -> Mapping[str, Sequence[ValuedRow]]:
        by_key = {key: self.valued_rows(compare, key, is_exact=is_exact) for key in keys}
        return {key: rows for key, rows in by_key.items() if rows}

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
        return kinds_of(self.column_types(point))

    def may_read(self, point: TablePoint, columns: Sequence[str]) -> bool:
        return True

    def missing_to_write(self, point: TablePoint, acts: Collection[str]) -> Sequence[str]:
        return ()
