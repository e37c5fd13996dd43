"""Run the statements of a chunk on its table, in the chunk's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from psycopg2 import sql

from makewhole.model.errors import ActionRefusedError
from makewhole.model.points import TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.postgres.canonical import comparable_expression
from makewhole.postgres.table import Table, cascading_references, key_texts, listed, match_key, quoted, statement
from makewhole.sql import PgConnection, named_rows, records, single_value
from makewhole.tables.receipts import ChunkId
from makewhole.tables.rows import TableRow


@dataclass(frozen=True, kw_only=True)
class TableChunk:
    """A chunk in its transaction, with the table as the catalogue has it.

    `holds_rows` is false in a dry run: rows are read without locks, others may write. `is_table_locked`: no other
    session writes the table; otherwise rows are locked before they are judged, and a unique index refuses second rows
    of a key.
    """

    session: PgConnection
    table: Table
    point: TablePoint
    id: ChunkId
    holds_rows: bool = True
    is_table_locked: bool = False

    def run(self, name: str, parameters: Mapping[str, Any] | None = None, **parts: sql.Composable) -> list[Any]:
        """Run a statement of target.sql on `{table}`; it may also name the chunk: `plan`, `target`, `chunk`."""
        query = statement(name, table=self.table.identifier, place=self.table.place, **parts)
        known = {"plan": self.id.plan, "target": self.id.target, "chunk": self.id.chunk}
        with self.session.cursor() as cursor:
            cursor.execute(query, {**known, **(parameters or {})})
            return named_rows(cursor)

    def lock_rows(self, key: str, *, is_exact: bool = True) -> list[TableRow]:
        """Return all rows of a key, in no order, with images and places.

        They are locked until the transaction ends, or only read where the chunk holds no rows.
        """
        match, parameters = match_key(self.table, self.point, key, is_exact=is_exact)
        rows = self.run("lock_rows_of_key", parameters, match=match, hold=self.lock_clause)
        return records(TableRow, rows)

    @property
    def lock_clause(self) -> sql.SQL:
        """End of a statement that reads rows of table `t`: locks them, unless the chunk holds no rows."""
        return sql.SQL("for update of t" if self.holds_rows else "")

    @property
    def settable(self) -> tuple[str, ...]:
        """Names of the columns that an update may set."""
        return tuple(name for name in self.table.writable if not self.table.columns[name].is_identity_always)

    @property
    def has_unique_keys(self) -> bool:
        """Whether the catalogue guarantees at most one row per key."""
        return self.table.has_one_row_per(self.point)

    @property
    def key_texts(self) -> sql.Composed:
        """Canonical texts of the key's columns of row `t`, as an array."""
        return key_texts(self.table, self.point)

    def compared_texts(self, columns: Sequence[tuple[str, str]], row: str = "t") -> sql.Composable:
        """Return the texts of a row's compared columns (name, declared type), as `UpsertRow.expected_texts` has them.

        Raises:
            RefusedError: the table lost one of them.
        """
        lost = [name for name, _ in columns if name not in self.table.columns]
        if lost:
            raise ActionRefusedError.of(RefusalCode.UNFIT, f"the table has no column {', '.join(lost)} any more")
        types = self.table.base_types
        texts = [comparable_expression(quoted(row, name), declared, types[name]) for name, declared in columns]
        return sql.SQL('array[{}]::text[] collate "C"').format(listed(texts))

    @cached_property
    def has_triggers_after(self) -> bool:
        """Whether a trigger may change a row after the statement that wrote it returned it."""
        return bool(single_value(self.run("triggers_after", {"schema": self.table.schema, "name": self.table.name})))

    @cached_property
    def cascades(self) -> tuple[str, ...]:
        """Foreign keys through which deleting a row would delete or change rows elsewhere."""
        return cascading_references(self.session, self.table)

    @cached_property
    def reaches(self) -> tuple[str, ...]:
        """Foreign keys, and triggers, through which moving a row aside may delete or change rows elsewhere."""
        return cascading_references(self.session, self.table, with_triggers=True)
