"""Write one key into a store, never over newer data and never next to a row that appeared meanwhile."""

from collections.abc import Sequence

from psycopg2 import sql

from makewhole.model.refusal import Refusal
from makewhole.postgres.table import listed, match_key, quoted
from makewhole.postgres.write.chunk import TableChunk
from makewhole.postgres.write.new_row import values_to_insert
from makewhole.postgres.write.write_row import RowWrite, write_row
from makewhole.tables.guards import NEWER, not_accounted_for, upsert_refusal
from makewhole.tables.items import UpsertRow
from makewhole.tables.rows import TableRow


def upsert(chunk: TableChunk, item: UpsertRow) -> Refusal | None:
    """Write one key in the chunk's transaction, with the table opened by `apply`. Returns its refusal, if any."""
    now = chunk.lock_rows(item.key, is_exact=False)
    refusal = upsert_refusal(item, now) or not_accounted_for(chunk.table, item)
    if refusal is not None:
        return refusal
    if not item.before:
        _insert(chunk, item)
        return None
    if chunk.point.version and _is_older(chunk, item):
        return NEWER
    _update(chunk, item, now[0])
    return None


def _insert(chunk: TableChunk, item: UpsertRow) -> None:
    write_row(
        chunk,
        RowWrite(seq=item.seq, key=item.key, item=item),
        "insert_row",
        item.wanted,
        columns=listed(quoted(name) for name in item.columns),
        values=listed(values_to_insert(chunk.table, item.columns, item.moment)),
    )


def _update(chunk: TableChunk, item: UpsertRow, row: TableRow) -> None:
    write = RowWrite(seq=item.seq, key=item.key, before=row.image, item=item)
    parameters = {**item.wanted, "ctid": row.ctid, "table_oid": row.table_oid}
    write_row(chunk, write, "update_row", parameters, assignments=assignments(chunk, item.columns))


def assignments(chunk: TableChunk, columns: Sequence[str]) -> sql.Composed:
    """Return the assignment of each column that may be set, from row `wanted`."""
    settable = [name for name in columns if name in chunk.settable]
    return listed(sql.SQL("{} = {}").format(quoted(name), quoted("wanted", name)) for name in settable)


def _is_older(chunk: TableChunk, item: UpsertRow) -> bool:
    """Return whether some row's version is above the record's."""
    version = chunk.point.version or ""
    match, parameters = match_key(chunk.table, chunk.point, item.key, is_exact=False)
    verdict = sql.SQL("coalesce(bool_or({} > {}), false)").format(quoted("t", version), quoted("wanted", version))
    ((answer,),) = chunk.run("compare_version", {**parameters, **item.wanted}, match=match, verdict=verdict)
    return bool(answer)
