"""Read the rows of one key together with their compared values, as one statement sees them."""

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg2 import sql

from makewhole.compute.canonical import float_text
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import TablePoint
from makewhole.postgres.read.expressions import compared_columns
from makewhole.postgres.tables import Table, TableRow, key_lookup, match_key, statement, survivor_order
from makewhole.sql import PgConnection

Values = Mapping[str, str | None]
"""Compared column → its value as text, in the column's declared type."""


@dataclass(frozen=True, kw_only=True)
class ValuedRow:
    """A row, its place as snapshots have it, and its compared values."""

    row: TableRow
    place: str
    values: Values


@dataclass(frozen=True, kw_only=True)
class ValuedTable:
    """A table as a point of a pipeline that compares these columns (name → declared type)."""

    session: PgConnection
    table: Table
    point: TablePoint
    compare: Mapping[str, str]

    def rows(self, key: str, *, is_latest_first: bool) -> list[ValuedRow]:
        """Return all rows of a key by (time column, ctid), or the latest version first.

        Raises:
            RefusedError: the table lacks a compared column, or cannot hold such a key.
        """
        absent = sorted(name for name in self.compare if name not in self.table.columns)
        if absent:
            raise RefusedError(
                f"unfit: {self.point.table} has no column {', '.join(absent)} to compare with the source; "
                "the table changed, or the pipeline file is wrong"
            )
        match, parameters = match_key(self.table, self.point, key, is_exact=True)
        query = statement(
            "rows_with_values",
            table=self.table.identifier,
            match=match,
            place=self.table.place,
            values=sql.SQL("").join(
                sql.SQL(", {}").format(column) for column in compared_columns(self.compare, self.table.base_types)
            ),
            order=survivor_order(self.point, is_latest_first=is_latest_first),
        )
        with key_lookup(self.session) as cursor:
            cursor.execute(query, parameters)
            return [self._row(*row) for row in cursor.fetchall()]

    def _row(self, table_oid: int, ctid: str, text: str, place: str, *texts: str | None) -> ValuedRow:
        values = dict(zip(self.compare, texts, strict=True))
        for name, declared in self.compare.items():
            if declared == "double" and (number := values[name]) is not None:
                values[name] = float_text(float(number))
        return ValuedRow(row=TableRow(table_oid=table_oid, ctid=ctid, text=text), place=place, values=values)
