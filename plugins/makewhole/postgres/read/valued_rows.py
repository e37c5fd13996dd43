"""Read the rows of one key together with their compared values, as one statement sees them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg2 import sql

from makewhole.compute.canonical import column_text
from makewhole.model.errors import ActionRefusedError
from makewhole.model.points import TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.postgres.canonical import canonical_array
from makewhole.postgres.table import Table, key_lookup, match_key, statement, survivor_order
from makewhole.sql import PgConnection, named_rows
from makewhole.tables.rows import TableRow, ValuedRow


@dataclass(frozen=True, kw_only=True)
class ValuedTable:
    """A table as a point of a pipeline that compares these columns (name → declared type)."""

    session: PgConnection
    table: Table
    point: TablePoint
    compare: Mapping[str, str]

    def rows(self, key: str, *, is_exact: bool = True, is_latest_first: bool = False) -> list[ValuedRow]:
        """Return all rows of a key by (time column, ctid), or the latest version first.

        Raises:
            RefusedError: the table lacks a compared column, or cannot hold such a key.
        """
        match, parameters = match_key(self.table, self.point, key, is_exact=is_exact)
        query = statement("rows_with_values", match=match, **self.parts(is_latest_first=is_latest_first))
        with key_lookup(self.session, self.table, self.point) as cursor:
            cursor.execute(query, parameters)
            return [self.row(row) for row in named_rows(cursor)]

    def parts(self, *, is_latest_first: bool = False) -> dict[str, sql.Composable]:
        """Return the parts of a statement that reads rows with their values.

        Raises:
            RefusedError: the table lacks a compared column.
        """
        absent = sorted(name for name in self.compare if name not in self.table.columns)
        if absent:
            raise ActionRefusedError.of(
                RefusalCode.UNFIT,
                f"{self.point.table} has no column {', '.join(absent)} to compare with the source; "
                "the table changed, or the pipeline file is wrong",
            )
        return {
            "table": self.table.identifier,
            "place": self.table.place,
            "compared": canonical_array("t", list(self.compare.items()), self.table.base_types),
            "order": survivor_order(self.point, is_latest_first=is_latest_first),
        }

    def row(self, row: Any) -> ValuedRow:
        """Return what such a statement read of a row."""
        pairs = zip(self.compare.items(), row.compared, strict=True)
        values = {name: column_text(text, declared) for (name, declared), text in pairs}
        table_row = TableRow(table_oid=row.table_oid, ctid=row.ctid, text=row.text)
        return ValuedRow(row=table_row, place=row.place, values=values)
