"""Read the rows of keys in a table that a session has open."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from makewhole.compute.value_types import ColumnKind
from makewhole.model.points import TablePoint
from makewhole.postgres.read.erased import erased_in
from makewhole.postgres.read.expressions import table_columns
from makewhole.postgres.read.key_columns import column_kinds
from makewhole.postgres.read.ledger import ledger_record
from makewhole.postgres.read.many_keys import ledger_records, rows_of_many_keys
from makewhole.postgres.read.progress import may_read
from makewhole.postgres.read.valued_rows import ValuedTable
from makewhole.postgres.table import Table, describe_table, rows_of_key
from makewhole.postgres.write.quarantine import require_quarantine_possible
from makewhole.postgres.write.write_rights import missing_to_write
from makewhole.sql import PgConnection
from makewhole.tables.rows import LedgerReading, LedgerRecord, TableRow, ValuedRow


@dataclass(frozen=True, kw_only=True)
class PostgresTable:
    """A table as the catalogue has it (`OpenTable`)."""

    session: PgConnection
    point: TablePoint
    description: Table

    @property
    def locks_for_new_rows(self) -> bool:
        return not self.description.has_one_row_per(self.point)

    def rows_of_key(self, key: str, *, is_exact: bool = True, is_latest_first: bool = False) -> list[TableRow]:
        return rows_of_key(
            self.session, self.description, self.point, key, is_exact=is_exact, is_latest_first=is_latest_first
        )

    def valued_rows(
        self, compare: Mapping[str, str], key: str, *, is_exact: bool = True, is_latest_first: bool = False
    ) -> list[ValuedRow]:
        return self._valued(compare).rows(key, is_exact=is_exact, is_latest_first=is_latest_first)

    def valued_rows_of_many(
        self, compare: Mapping[str, str], keys: Sequence[str], *, is_exact: bool = True
    ) -> Mapping[str, Sequence[ValuedRow]]:
        return rows_of_many_keys(self._valued(compare), keys, is_exact=is_exact)

    def _valued(self, compare: Mapping[str, str]) -> ValuedTable:
        return ValuedTable(session=self.session, table=self.description, point=self.point, compare=compare)

    def ledger_record(self, key: str, reading: LedgerReading) -> LedgerRecord | None:
        return ledger_record(self.session, self.description, self.point, key, reading)

    def ledger_records(self, keys: Sequence[str], reading: LedgerReading) -> Mapping[str, LedgerRecord]:
        return ledger_records(self.session, self.description, self.point, keys, reading)

    def erased(self, keys: Sequence[str]) -> set[str]:
        return erased_in(self.session, self.point, keys)

    def require_quarantine_possible(self) -> None:
        require_quarantine_possible(self.session, self.description)


@dataclass(frozen=True, kw_only=True)
class PostgresSession:
    """A session at a database (`TableSession`)."""

    session: PgConnection

    def open_table(self, point: TablePoint) -> PostgresTable:
        return PostgresTable(session=self.session, point=point, description=describe_table(self.session, point))

    def column_types(self, point: TablePoint) -> Mapping[str, str]:
        return table_columns(self.session, point)

    def column_kinds(self, point: TablePoint) -> Mapping[str, ColumnKind]:
        return column_kinds(self.session, point)

    def may_read(self, point: TablePoint, columns: Sequence[str]) -> bool:
        return may_read(self.session, point, columns)

    def missing_to_write(self, point: TablePoint, acts: Collection[str]) -> Sequence[str]:
        return missing_to_write(self.session, point, acts)
