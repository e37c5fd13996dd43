"""Moves extra rows aside: kept whole, with how to put them back, and only when they are as the plan saw them."""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg2 import sql

from makewhole.model.errors import RefusedError
from makewhole.postgres.tables import Table, TableRow, cascading_references, listed, quoted, statement
from makewhole.postgres.write.chunk import OpenChunk
from makewhole.sql import PgConnection

KEPT = "stale: the table did not let an extra row go (a trigger or a policy kept it)"


@dataclass(frozen=True, kw_only=True)
class QuarantineRows:
    """One action: `extras` go, `survivor` (none when the whole key is unexpected) stays."""

    seq: int
    key: str
    survivor: TableRow | None
    extras: tuple[TableRow, ...]

    @property
    def size_bytes(self) -> int:
        """About what it comes to as part of a statement."""
        return len(self.key) + sum(len(row.text) for row in self.extras)


def require_quarantine_possible(connection: PgConnection, table: Table) -> None:
    """Deleting here must not reach into other tables.

    Raises:
        RefusedError: a foreign key on this table cascades.
    """
    require_no_cascade(table, cascading_references(connection, table))


def move_aside(chunk: OpenChunk, item: QuarantineRows) -> str | None:
    """Move the extra rows, all or none, in the chunk's transaction. Returns the reason when it is refused.

    The rows of the key are locked first, so what is compared is what is deleted.
    """
    require_no_cascade(chunk.table, chunk.cascades)
    now = chunk.lock_rows(item.key)
    refusal = difference(now, item)
    if refusal is None:
        stays = image_of(item.survivor, now)
        for row in item.extras:
            _move(chunk, item.seq, row, stays)
    return refusal


def difference(now: Sequence[TableRow], item: QuarantineRows) -> str | None:
    """Why what is there is not what the plan saw, if so."""
    seen = {row for row in (item.survivor, *item.extras) if row is not None}
    current = set(now)
    if seen <= current:
        return None
    if item.survivor is not None and item.survivor not in current and not current - seen:
        return "erased: the row that was to stay is gone, so the extra rows may be the only copy left"
    if current - seen:
        return "stale: rows of this key changed after the plan was made"
    return "erased: an extra row of this key is gone already"


def image_of(row: TableRow | None, now: Sequence[TableRow]) -> str | None:
    """The image of the row that stays, from the rows as they are now."""
    return next((found.image for found in now if found == row), None)


def _move(chunk: OpenChunk, seq: int, row: TableRow, stays: str | None) -> None:
    place = {"ctid": row.ctid, "table_oid": row.table_oid}
    known = {"seq": seq, "source_table": source_table(chunk), "stays": stays}
    if not chunk.run("move_to_quarantine", {**place, **known, "how_to_restore": how_to_restore(chunk)}):
        raise RefusedError(KEPT)


def source_table(chunk: OpenChunk) -> str:
    """The table's name, for people."""
    return f"{chunk.table.schema}.{chunk.table.name}"


def how_to_restore(chunk: OpenChunk) -> str:
    """The statement that puts a row back, for format() with plan, action and place: it doubles percent signs."""
    table = chunk.table
    return statement(
        "restore_row",
        table=table.identifier,
        columns=listed(quoted(name) for name in table.writable),
        values=listed(sql.SQL("(back.image).{}").format(quoted(name)) for name in table.writable),
    ).as_string(chunk.session)


def require_no_cascade(table: Table, cascades: Sequence[str]) -> None:
    """The same, of what is known of the table already."""
    if cascades:
        raise RefusedError(
            f"rows of {table.schema}.{table.name} cannot be quarantined: deleting one also changes other tables "
            f"through {', '.join(cascades)}; repair these duplicates by hand"
        )
