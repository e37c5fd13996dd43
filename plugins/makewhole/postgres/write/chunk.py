"""A chunk at work in its table: one transaction, in which the table stays as the catalogue has it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from psycopg2 import sql

from makewhole.model.pipeline import TablePoint
from makewhole.postgres.tables import Table, TableRow, cascading_references, listed, match_key, quoted, statement
from makewhole.postgres.write.receipts import ChunkId
from makewhole.sql import PgConnection

FoundRows = list[tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class OpenChunk:
    """The session in its transaction, the table, and which chunk it is. A dry run holds no rows: others may write."""

    session: PgConnection
    table: Table
    point: TablePoint
    id: ChunkId
    holds_rows: bool = True

    def run(self, name: str, parameters: Mapping[str, Any] | None = None, **parts: sql.Composable) -> FoundRows:
        """Run a statement of target.sql on `{table}`; it may also name the chunk: `plan`, `target`, `chunk`."""
        query = statement(name, table=self.table.identifier, place=self.table.place, **parts)
        known = {"plan": self.id.plan, "target": self.id.target, "chunk": self.id.chunk}
        with self.session.cursor() as cursor:
            cursor.execute(query, {**known, **(parameters or {})})
            return cursor.fetchall() if cursor.description else []

    def lock_rows(self, key: str, *, is_exact: bool = True) -> list[TableRow]:
        """All rows of a key, in no order, with images and places; held until the transaction ends, or only read."""
        match, parameters = match_key(self.table, self.point.key, key, is_exact=is_exact)
        found = self.run("lock_rows_of_key", parameters, match=match, hold=self.hold)
        return [TableRow(table_oid=row[0], ctid=row[1], text=row[2], image=row[3], place=row[4]) for row in found]

    @property
    def hold(self) -> sql.SQL:
        """The end of a statement that reads rows of table `t`: whether they are locked."""
        return sql.SQL("for update of t" if self.holds_rows else "")

    @property
    def settable(self) -> tuple[str, ...]:
        """The columns that an update may set."""
        return tuple(name for name in self.table.writable if not self.table.columns[name].is_identity_always)

    @property
    def has_unique_keys(self) -> bool:
        """Has a key one row at most, whatever happens?"""
        return any(names <= set(self.point.key) for names in self.table.unique)

    @property
    def key_texts(self) -> sql.Composed:
        """The texts of the key's columns of row `t`, as an array."""
        return sql.SQL("array[{}]").format(
            listed(sql.SQL("{}::text").format(quoted("t", name)) for name in self.point.key)
        )

    @cached_property
    def has_triggers_after(self) -> bool:
        """May a row be another than what the statement that wrote it returned?"""
        return bool(self.run("triggers_after", {"schema": self.table.schema, "name": self.table.name})[0][0])

    @cached_property
    def cascades(self) -> tuple[str, ...]:
        """The foreign keys through which deleting a row would delete or change rows elsewhere."""
        return cascading_references(self.session, self.table)
