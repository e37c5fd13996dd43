"""Takes back what an action did to a row: only where the row is still exactly what the action left."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2 import sql

from makewhole.model.errors import RefusedError
from makewhole.postgres.tables import TableRow, listed, quoted
from makewhole.postgres.write.chunk import OpenChunk
from makewhole.postgres.write.effects import Effect, EffectKind
from makewhole.postgres.write.write_row import Write, write_row

CHANGED = "stale: the row was changed after the plan wrote it"
GONE = "erased: the row that the plan wrote is gone"
KEPT = "stale: the table did not let the row go (a trigger or a policy kept it)"
STAYED_GONE = "erased: the row of this key that stayed is gone; whoever removed it may have meant this one too"
BESIDE_CHANGED = "stale: the rows of this key changed after the plan moved this one aside"
BACK_ALREADY = "stale: the row was put back already"
NOT_KEPT = "erased: the row is no longer in makewhole.quarantine"
APPEARED = "stale: a row of this key appeared after the plan was done"
ALTERED = "unfit: the table has other columns than when the plan wrote the row"


@dataclass(frozen=True, kw_only=True)
class RestoreRow:
    """One action of an undo: the business key, and the effect that is taken back."""

    seq: int
    key: str
    effect: Effect

    @property
    def size_bytes(self) -> int:
        """About what it comes to as part of a statement."""
        return len(self.effect.before or "") + len(self.effect.after or "")


def restore(chunk: OpenChunk, item: RestoreRow) -> None:
    """Put one row back in the chunk's transaction, which holds the table's lock.

    Raises:
        RefusedError: it is not as the plan left it, or the table does not take it as it was; the caller undoes it.
    """
    row = written_row(chunk, item.effect, chunk.lock_rows(item.key, is_exact=False), moved_beside(chunk, item.effect))
    match item.effect.kind, row:
        case EffectKind.INSERTED, TableRow():
            _take_out(chunk, item, row)
        case EffectKind.UPDATED, TableRow():
            _put_back(chunk, item, row)
        case EffectKind.MOVED, _:
            _release(chunk, item.effect)
            _bring_back(chunk, item)
        case _:
            _bring_back(chunk, item)


def written_row(chunk: OpenChunk, effect: Effect, now: Sequence[TableRow], moved: Collection[str]) -> TableRow | None:
    """The row that is taken out or put back; None where one is brought back, and there is room for it. `now` are the
    rows of the key, `moved` the images of those that went with it.

    Raises:
        RefusedError: what is there does not let it be done.
    """
    if effect.kind not in (EffectKind.INSERTED, EffectKind.UPDATED):
        require_room(effect, now, moved)
        return None
    row = as_left(chunk, effect, now)
    if effect.kind is EffectKind.INSERTED:
        require_deletable(chunk)
    return row


def moved_beside(chunk: OpenChunk, effect: Effect) -> Collection[str]:
    """The images of the rows that the action moved aside, this one with them; none where it moved none."""
    if effect.kind is not EffectKind.MOVED:
        return ()
    return {image for (image,) in chunk.run("moved_beside", undone(effect))}


def require_kept(chunk: OpenChunk, effect: Effect) -> None:
    """A row that was moved aside waits to be put back.

    Raises:
        RefusedError: it was put back already, or is not kept.
    """
    found = chunk.run("is_in_quarantine", undone(effect))
    if not any(waits for (waits,) in found):
        raise RefusedError(BACK_ALREADY if found else NOT_KEPT)


def as_left(chunk: OpenChunk, effect: Effect, now: Sequence[TableRow]) -> TableRow:
    """The row that is exactly what the action left: of several that are alike, the one in its place.

    Raises:
        RefusedError: there is none.
    """
    alike = [row for row in now if row.image == effect.after]
    if alike:
        return next((row for row in alike if row.place == effect.place), alike[0])
    if not now:
        raise RefusedError(GONE)
    raise RefusedError(CHANGED if _is_readable(chunk, effect.after) else ALTERED)


def require_room(effect: Effect, now: Sequence[TableRow], moved: Collection[str]) -> None:
    """A row that is brought back finds the row that stayed, if one did, and none but those that went with it.

    Raises:
        RefusedError: it would come to others.
    """
    if effect.kind is not EffectKind.MOVED and now:
        raise RefusedError(APPEARED)
    if any(row.image not in moved and row.image != effect.after for row in now):
        raise RefusedError(BESIDE_CHANGED)
    if effect.after is not None and all(row.image != effect.after for row in now):
        raise RefusedError(STAYED_GONE)


def require_deletable(chunk: OpenChunk) -> None:
    """Deleting here must not reach into other tables.

    Raises:
        RefusedError: a foreign key on this table cascades.
    """
    if chunk.cascades:
        raise RefusedError(
            f"unfit: rows of {chunk.table.schema}.{chunk.table.name} cannot be deleted: that also changes other tables "
            f"through {', '.join(chunk.cascades)}"
        )


def undone(effect: Effect) -> dict[str, Any]:
    """The action whose effect it was, as parameters."""
    return {"undone_plan": effect.plan, "undone_seq": effect.seq, "undone_place": effect.place}


def columns_of_image(chunk: OpenChunk) -> dict[str, sql.Composable]:
    """The columns that an insert may name, their values in row `was.image`, and as assignments those of an update."""

    def value(name: str) -> sql.Composable:
        return sql.SQL("(was.image).{}").format(quoted(name))

    return {
        "columns": listed(quoted(name) for name in chunk.table.writable),
        "values": listed(value(name) for name in chunk.table.writable),
        "assignments": listed(sql.SQL("{} = {}").format(quoted(name), value(name)) for name in chunk.settable),
    }


def _take_out(chunk: OpenChunk, item: RestoreRow, row: TableRow) -> None:
    """Delete what was inserted; its image stays in the effect of this."""
    if not chunk.run("delete_row", {"seq": item.seq, "ctid": row.ctid, "table_oid": row.table_oid}):
        raise RefusedError(KEPT)


def _put_back(chunk: OpenChunk, item: RestoreRow, row: TableRow) -> None:
    """Write the row as it was over the row as it is."""
    write = Write(seq=item.seq, key=item.key, before=row.image, image=item.effect.before)
    parameters = {"image": item.effect.before, "ctid": row.ctid, "table_oid": row.table_oid}
    write_row(chunk, write, "put_back", parameters, **columns_of_image(chunk))


def _release(chunk: OpenChunk, effect: Effect) -> None:
    """Take a row out of quarantine, once."""
    if not chunk.run("release_from_quarantine", undone(effect)):
        require_kept(chunk, effect)
        raise RefusedError(BACK_ALREADY)


def _bring_back(chunk: OpenChunk, item: RestoreRow) -> None:
    """Insert the row as it was."""
    write = Write(seq=item.seq, key=item.key, image=item.effect.before)
    write_row(chunk, write, "bring_back", {"image": item.effect.before}, **columns_of_image(chunk))


def _is_readable(chunk: OpenChunk, image: str | None) -> bool:
    """Whether it is still a row of this table, with these columns."""
    with chunk.session.cursor() as cursor:
        cursor.execute("savepoint readable")
        try:
            chunk.run("read_image", {"image": image})
        except psycopg2.DataError:
            return False
        finally:
            cursor.execute("rollback to savepoint readable; release savepoint readable")
    return True
