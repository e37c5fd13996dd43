"""Write a table of people's as compensation does: chunks applied, effects read, all without a plan around them."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from psycopg2 import sql

from makewhole.model.connection import PostgresConnection
from makewhole.model.points import PointKind, TablePoint
from makewhole.postgres.connect import connect
from makewhole.postgres.table import describe_table, rows_of_key
from makewhole.postgres.write.apply import apply_chunk
from makewhole.postgres.write.effects import effects
from makewhole.postgres.write.receipts import ensure_schema
from makewhole.tables.effects import Effect
from makewhole.tables.items import ExpectedValue, RowItem, UpsertRow
from makewhole.tables.receipts import ChunkId, ReceiptRow
from makewhole.tables.rows import TableRow
from tests.world.sql import Rows, run_sql

PLAN = "shop-1-0123456789ab"
EMPTY = ("amount", "hits", "note", "part_of", "seen", "version")
"""Columns of these tables that a new row leaves empty on purpose."""


class Store:
    """One table, by default `store` with the key `id`."""

    def __init__(self, dsn: str, *, table: str = "store", key: tuple[str, ...] = ("id",), **columns: Any) -> None:
        self.connection = PostgresConnection(id="people", dsn=dsn)
        self.point = TablePoint(
            name="store", kind=PointKind.STORE, connection="people", table=table, key=key, **columns
        )

    def sql(self, statement: str, *values: Any) -> Rows:
        """Run plain SQL as another writer, committed."""
        return run_sql(self.connection.dsn, statement, *values)

    def apply(self, *items: RowItem, chunk: int = 0, plan: str = PLAN) -> ReceiptRow:
        """Apply one chunk of a plan."""
        number = ChunkId(plan=plan, plan_sha256="0" * 64, target=self.point.name, chunk=chunk, lease_epoch=1)
        with connect(self.connection) as session:
            ensure_schema(session)
            return apply_chunk(session, self.point, number, items)

    def rows(self, key: str, *, is_exact: bool = True) -> tuple[TableRow, ...]:
        """Return what a plan would see of a key."""
        with connect(self.connection) as session:
            table = describe_table(session, self.point)
            return tuple(rows_of_key(session, table, self.point, key, is_exact=is_exact))

    def missing(
        self, seq: int, key: str, value: str, columns: Sequence[str], expected: tuple[ExpectedValue, ...] = ()
    ) -> UpsertRow:
        return UpsertRow(
            seq=seq,
            key=key,
            key_columns=self.point.key,
            value=value,
            columns=tuple(columns),
            before=(),
            expected=expected,
            left=EMPTY,
        )

    def mismatched(self, seq: int, key: str, value: str, columns: Sequence[str]) -> UpsertRow:
        before = self.rows(key, is_exact=False)
        return UpsertRow(
            seq=seq, key=key, key_columns=self.point.key, value=value, columns=tuple(columns), before=before
        )

    def effects(self, plan: str = PLAN) -> list[Effect]:
        with connect(self.connection) as session:
            return list(chain(*effects(session, plan, self.point.name)))

    def images(self) -> list[str]:
        """Return every row of the table as an exact text, sorted."""
        name = sql.Identifier(*self.point.table.split("."))
        with connect(self.connection) as session, session.cursor() as cursor:
            cursor.execute(sql.SQL("select (t.*)::text from {} as t order by 1").format(name))
            return [row[0] for row in cursor.fetchall()]
