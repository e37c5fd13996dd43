"""Move extra rows aside into quarantine, one key or many, only where they are as the plan saw them.

A row is kept whole, with the statement that puts it back.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from psycopg2 import sql

from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.postgres.table import Table, cascading_references, listed, quoted, statement
from makewhole.postgres.write.array_parameter import (
    CannotRunTogether,
    items_parameter,
    lock_rows_of_items,
    recordset_of_items,
)
from makewhole.postgres.write.chunk import TableChunk
from makewhole.sql import PgConnection
from makewhole.tables.guards import quarantine_refusal, survivor_image
from makewhole.tables.items import QuarantineRows
from makewhole.tables.rows import TableRow

KEPT = Refusal(RefusalCode.STALE, "the table did not let an extra row go (a trigger or a policy kept it)")

_ExtraRow = tuple[str, dict[str, Any]]
"""A key and the fields of one of its extra rows, as a statement of many reads them."""


def require_quarantine_possible(session: PgConnection, table: Table) -> None:
    """Check that deleting rows of the table does not reach into other tables.

    Raises:
        RefusedError: a foreign key on this table cascades, or a trigger runs after a row of it is deleted.
    """
    _require_no_cascade(table, cascading_references(session, table, with_triggers=True))


def move_aside(chunk: TableChunk, item: QuarantineRows) -> Refusal | None:
    """Move the extra rows of one key, all or none, in the chunk's transaction. Returns its refusal, if any.

    The rows of the key are locked first, so what is compared is what is deleted.
    """
    _require_no_cascade(chunk.table, chunk.reaches)
    now = chunk.lock_rows(item.key)
    refusal = quarantine_refusal(item, now)
    if refusal is None:
        stays = survivor_image(item, now)
        for row in item.extras:
            _move(chunk, item.seq, row, stays)
    return refusal


def move_aside_many(chunk: TableChunk, items: Sequence[QuarantineRows]) -> dict[int, Refusal]:
    """Move the extra rows of many keys by one read and one write. Returns the refusals by action number.

    Raises:
        CannotRunTogether: the items have to be done one by one; the caller takes back what was written.
        RefusedError: rows of this table cannot be moved.
    """
    _require_disjoint(items)
    now, refused = _compare(chunk, items)
    extras = [extra for item in items if item.seq not in refused for extra in _extras(item, now[item.seq])]
    if extras and _move_many(chunk, extras) != len(extras):
        raise CannotRunTogether
    return refused


def refusals(chunk: TableChunk, items: Sequence[QuarantineRows]) -> dict[int, Refusal]:
    """Return the refusals by action number, each item judged as if nothing before it had been done. Writes nothing.

    Raises:
        RefusedError: rows of this table cannot be moved.
    """
    return _compare(chunk, items)[1]


def _move(chunk: TableChunk, seq: int, row: TableRow, stays: str | None) -> None:
    place = {"ctid": row.ctid, "table_oid": row.table_oid}
    known = {"seq": seq, "source_table": _source_table(chunk), "stays": stays}
    if not chunk.run("move_to_quarantine", {**place, **known, "how_to_restore": _how_to_restore(chunk)}):
        raise ActionRefusedError(KEPT)


def _compare(
    chunk: TableChunk, items: Sequence[QuarantineRows]
) -> tuple[Mapping[int, list[TableRow]], dict[int, Refusal]]:
    """Return the rows of each item's key, and the refusals, both by action number."""
    _require_no_cascade(chunk.table, chunk.reaches)
    now = lock_rows_of_items(chunk, ((item.seq, item.key) for item in items), is_exact=True)
    answers = {item.seq: quarantine_refusal(item, now.get(item.seq, [])) for item in items}
    return now, {seq: refusal for seq, refusal in answers.items() if refusal is not None}


def _require_disjoint(items: Sequence[QuarantineRows]) -> None:
    """Check that no two items name the same row: one would have to see what the other did."""
    rows = [(row.table_oid, row.ctid) for item in items for row in (item.survivor, *item.extras) if row is not None]
    if len(rows) != len(set(rows)):
        raise CannotRunTogether


def _extras(item: QuarantineRows, now: Sequence[TableRow]) -> Iterator[_ExtraRow]:
    stays = survivor_image(item, now)
    for row in item.extras:
        yield item.key, {"seq": item.seq, "stays": stays, "table_oid": row.table_oid, "ctid": row.ctid}


def _move_many(chunk: TableChunk, extras: Sequence[_ExtraRow]) -> int:
    known = {"source_table": _source_table(chunk), "how_to_restore": _how_to_restore(chunk)}
    ((count,),) = chunk.run(
        "move_rows_to_quarantine",
        {**items_parameter(chunk, extras), **known},
        items=recordset_of_items(chunk, "seq", "stays", "table_oid", "ctid"),
    )
    return int(count)


def _source_table(chunk: TableChunk) -> str:
    """Return the table's name for people."""
    return f"{chunk.table.schema}.{chunk.table.name}"


def _how_to_restore(chunk: TableChunk) -> str:
    """Return the statement that puts a row back, for format() with plan, action and place: percent signs doubled."""
    table = chunk.table
    return statement(
        "restore_row",
        table=table.identifier,
        columns=listed(quoted(name) for name in table.writable),
        values=listed(sql.SQL("(back.image).{}").format(quoted(name)) for name in table.writable),
    ).as_string(chunk.session)


def _require_no_cascade(table: Table, reaches: Sequence[str]) -> None:
    if reaches:
        raise RefusedError(
            f"rows of {table.schema}.{table.name} cannot be quarantined: deleting one also changes other tables "
            f"through {', '.join(reaches)}; repair these duplicates by hand"
        )
