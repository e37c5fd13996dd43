"""Take back the effect of an action on a row, only where the row is still exactly what the action left."""

from collections.abc import Sequence
from typing import Any

import psycopg2
from psycopg2 import sql

from makewhole.model.errors import ActionRefusedError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.postgres.table import listed, quoted
from makewhole.postgres.write.chunk import TableChunk
from makewhole.postgres.write.write_row import RowWrite, write_row
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.guards import BACK_ALREADY, CHANGED_SINCE_WRITTEN, GONE, require_insertable, row_as_left
from makewhole.tables.items import RestoreRow
from makewhole.tables.rows import TableRow

KEPT = Refusal(RefusalCode.STALE, "the table did not let the row go (a trigger or a policy kept it)")
NOT_KEPT = Refusal(RefusalCode.ERASED, "the row is no longer in makewhole.quarantine")
ALTERED = Refusal(RefusalCode.UNFIT, "the table has other columns than when the plan wrote the row")


def restore(chunk: TableChunk, item: RestoreRow) -> None:
    """Take back one effect in the chunk's transaction, with the table opened by `apply`.

    Raises:
        RefusedError: the row is not as the plan left it, or the table does not take it as it was; the caller undoes it.
    """
    now = chunk.lock_rows(item.key, is_exact=False)
    row = row_to_undo(chunk, item.effect, now, images_put_back(chunk, item.effect))
    match item.effect.kind, row:
        case EffectKind.INSERTED, TableRow():
            _delete(chunk, item, row)
        case EffectKind.UPDATED, TableRow():
            _put_back(chunk, item, row)
        case EffectKind.MOVED, _:
            _release(chunk, item.effect)
            _insert_again(chunk, item)
        case _:
            _insert_again(chunk, item)


def row_to_undo(chunk: TableChunk, effect: Effect, now: Sequence[TableRow], back: Sequence[str]) -> TableRow | None:
    """Return the row that is to be deleted or put back; None where a row is to be inserted again, and may be.

    `now` are the rows of the key, `back` the images of those that the action moved aside and that were put back.

    Raises:
        RefusedError: the rows of the key do not allow it.
    """
    if effect.kind not in (EffectKind.INSERTED, EffectKind.UPDATED):
        require_insertable(effect, now, back)
        return None
    row = _row_as_left(chunk, effect, now)
    if effect.kind is EffectKind.INSERTED:
        _require_deletable(chunk)
    return row


def images_put_back(chunk: TableChunk, effect: Effect) -> Sequence[str]:
    """Return the images of the rows that the effect's action moved aside and that were put back."""
    if effect.kind is not EffectKind.MOVED:
        return ()
    return [image for (image,) in chunk.run("moved_beside", undone_parameters(effect))]


def require_kept(chunk: TableChunk, effect: Effect) -> None:
    """Check that a row that was moved aside is in quarantine and was not put back, and that its image is the same row
    by the names of the table's columns.

    Raises:
        RefusedError: it was put back already, or is not kept, or the table has other columns.
    """
    rows = chunk.run("is_in_quarantine", moved_parameters(effect))
    if not any(row.waits for row in rows):
        raise ActionRefusedError(BACK_ALREADY if rows else NOT_KEPT)
    if not any(row.waits and row.is_same for row in rows):
        raise ActionRefusedError(ALTERED)


def _row_as_left(chunk: TableChunk, effect: Effect, now: Sequence[TableRow]) -> TableRow:
    """Return the row that is exactly what the action left: of several equal ones, the one in its place.

    Raises:
        RefusedError: there is none.
    """
    row = row_as_left(effect, now)
    if row is not None:
        return row
    if not now:
        raise ActionRefusedError(GONE)
    raise ActionRefusedError(CHANGED_SINCE_WRITTEN if _is_readable(chunk, effect.after) else ALTERED)


def _require_deletable(chunk: TableChunk) -> None:
    """Check that deleting rows of the table does not reach into other tables.

    Raises:
        RefusedError: a foreign key on this table cascades.
    """
    if chunk.cascades:
        raise ActionRefusedError.of(
            RefusalCode.UNFIT,
            f"rows of {chunk.table.schema}.{chunk.table.name} cannot be deleted: that also changes other tables "
            f"through {', '.join(chunk.cascades)}",
        )


def undone_parameters(effect: Effect) -> dict[str, Any]:
    """Return the plan, action and place of an effect, as parameters."""
    return {"undone_plan": effect.plan, "undone_seq": effect.seq, "undone_place": effect.place}


def moved_parameters(effect: Effect) -> dict[str, Any]:
    """Return plan, action and place of an effect on a row that was moved aside, and the image of that."""
    return {**undone_parameters(effect), "image": effect.before}


def columns_of_image(chunk: TableChunk) -> dict[str, sql.Composable]:
    """Return the columns that an insert may name, their values in row `was.image`, and the assignments of an update."""

    def value(name: str) -> sql.Composable:
        return sql.SQL("(was.image).{}").format(quoted(name))

    return {
        "columns": listed(quoted(name) for name in chunk.table.writable),
        "values": listed(value(name) for name in chunk.table.writable),
        "assignments": listed(sql.SQL("{} = {}").format(quoted(name), value(name)) for name in chunk.settable),
    }


def _delete(chunk: TableChunk, item: RestoreRow, row: TableRow) -> None:
    """Delete a row that was inserted; the effect of this keeps its image."""
    if not chunk.run("delete_row", {"seq": item.seq, "ctid": row.ctid, "table_oid": row.table_oid}):
        raise ActionRefusedError(KEPT)


def _put_back(chunk: TableChunk, item: RestoreRow, row: TableRow) -> None:
    """Update a row to what it was."""
    write = RowWrite(seq=item.seq, key=item.key, before=row.image, image=item.effect.before)
    parameters = {"image": item.effect.before, "ctid": row.ctid, "table_oid": row.table_oid}
    write_row(chunk, write, "put_back", parameters, **columns_of_image(chunk))


def _release(chunk: TableChunk, effect: Effect) -> None:
    """Take a row out of quarantine, once."""
    if not chunk.run("release_from_quarantine", moved_parameters(effect)):
        require_kept(chunk, effect)
        raise ActionRefusedError(BACK_ALREADY)


def _insert_again(chunk: TableChunk, item: RestoreRow) -> None:
    """Insert a row that was moved aside or deleted, as it was."""
    write = RowWrite(seq=item.seq, key=item.key, image=item.effect.before)
    write_row(chunk, write, "bring_back", {"image": item.effect.before}, **columns_of_image(chunk))


def _is_readable(chunk: TableChunk, image: str | None) -> bool:
    """Return whether the image is still that of a row of this table, with these columns."""
    with chunk.session.cursor() as cursor:
        cursor.execute("savepoint readable")
        try:
            chunk.run("read_image", {"image": image})
        except psycopg2.DataError:
            return False
        finally:
            cursor.execute("rollback to savepoint readable; release savepoint readable")
    return True
