"""Read tables of any kind by the names that a pipeline's file has for their columns."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from makewhole.compute.value_types import ColumnKind
from makewhole.model.points import TablePoint
from makewhole.tables.description import TableDescription
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.tables.named.names import (
    by_name,
    in_table,
    named_description,
    named_frame,
    named_record,
    named_row,
    reading_in_table,
)
from makewhole.tables.reading import OpenTable, TableReader, TableSession, UnreadableFile
from makewhole.tables.rows import LedgerReading, LedgerRecord, TableRow, ValuedRow
from makewhole.tables.shape import TableShape, TimeBounds


@dataclass(frozen=True, kw_only=True)
class NamedReader:
    """A reader whose frames have the compared columns by name (`TableReader`)."""

    shape: TableShape
    reader: TableReader

    @property
    def counted(self) -> int:
        return self.reader.counted

    @property
    def in_doubt(self) -> Sequence[TransactionInDoubt]:
        return self.reader.in_doubt

    @property
    def unreadable(self) -> Sequence[UnreadableFile]:
        return self.reader.unreadable

    def part(self, bounds: TimeBounds | None, part: Any) -> Iterator[pl.DataFrame]:
        return (named_frame(self.shape, frame) for frame in self.reader.part(bounds, part))

    def keys(self, keys: Sequence[str], since: str | None = None) -> Iterator[pl.DataFrame]:
        return (named_frame(self.shape, frame) for frame in self.reader.keys(keys, since))

    def keys_in_part(self, keys: pl.DataFrame, part: Any) -> Iterator[pl.DataFrame]:
        return (named_frame(self.shape, frame) for frame in self.reader.keys_in_part(keys, part))


@dataclass(frozen=True, kw_only=True)
class NamedTable:
    """A table whose columns have the names of the file (`OpenTable`)."""

    point: TablePoint
    table: OpenTable

    @cached_property
    def description(self) -> TableDescription:
        return named_description(self.point, self.table.description)

    @property
    def locks_for_new_rows(self) -> bool:
        return self.table.locks_for_new_rows

    def rows_of_key(self, key: str, *, is_exact: bool = True, is_latest_first: bool = False) -> list[TableRow]:
        return self.table.rows_of_key(key, is_exact=is_exact, is_latest_first=is_latest_first)

    def valued_rows(
        self, compare: Mapping[str, str], key: str, *, is_exact: bool = True, is_latest_first: bool = False
    ) -> list[ValuedRow]:
        columns = in_table(self.point, compare)
        rows = self.table.valued_rows(columns, key, is_exact=is_exact, is_latest_first=is_latest_first)
        return [named_row(self.point, row) for row in rows]

    def valued_rows_of_many(
        self, compare: Mapping[str, str], keys: Sequence[str], *, is_exact: bool = True
    ) -> Mapping[str, Sequence[ValuedRow]]:
        rows_by_key = self.table.valued_rows_of_many(in_table(self.point, compare), keys, is_exact=is_exact)
        return {key: [named_row(self.point, row) for row in rows] for key, rows in rows_by_key.items()}

    def ledger_record(self, key: str, reading: LedgerReading) -> LedgerRecord | None:
        record = self.table.ledger_record(key, reading_in_table(self.point, reading))
        return None if record is None else named_record(self.point, record)

    def ledger_records(self, keys: Sequence[str], reading: LedgerReading) -> Mapping[str, LedgerRecord]:
        records = self.table.ledger_records(keys, reading_in_table(self.point, reading))
        return {key: named_record(self.point, record) for key, record in records.items()}

    def erased(self, keys: Sequence[str]) -> set[str]:
        return self.table.erased(keys)

    def require_quarantine_possible(self) -> None:
        self.table.require_quarantine_possible()


@dataclass(frozen=True, kw_only=True)
class NamedSession:
    """A session that opens tables whose columns have the names of the file (`TableSession`)."""

    session: TableSession

    def open_table(self, point: TablePoint) -> OpenTable:
        table = self.session.open_table(point.in_table)
        return NamedTable(point=point, table=table) if point.columns else table

    def column_types(self, point: TablePoint) -> Mapping[str, str]:
        return by_name(point, self.session.column_types(point.in_table))

    def column_kinds(self, point: TablePoint) -> Mapping[str, ColumnKind]:
        return by_name(point, self.session.column_kinds(point.in_table))

    def may_read(self, point: TablePoint, columns: Sequence[str]) -> bool:
        return self.session.may_read(point.in_table, [point.column_place(name) for name in columns])

    def missing_to_write(self, point: TablePoint, acts: Collection[str]) -> Sequence[str]:
        return self.session.missing_to_write(point.in_table, acts)
