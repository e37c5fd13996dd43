"""The rows of a key as they are, and as an action would leave them: for people to look at before they say yes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg2 import sql

from makewhole.postgres.tables import TableRow, listed, quoted
from makewhole.postgres.write.chunk import OpenChunk
from makewhole.postgres.write.effects import EffectKind
from makewhole.postgres.write.halving import RowItem
from makewhole.postgres.write.quarantine import QuarantineRows
from makewhole.postgres.write.restore import RestoreRow, moved_beside, written_row
from makewhole.postgres.write.upsert_row import UpsertRow


@dataclass(frozen=True, kw_only=True)
class RowChange:
    """Rows as JSON texts: `before` are all of the key, `after` those that would be left, `aside` those moved aside.

    A row that would be written has only the columns that are written; the table adds its defaults and what it computes.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    aside: tuple[str, ...] = ()


def row_change(chunk: OpenChunk, item: RowItem, *, is_refused: bool) -> RowChange:
    """What an item would do. What is refused changes nothing."""
    rows = chunk.lock_rows(item.key, is_exact=isinstance(item, QuarantineRows))
    before = tuple(row.text for row in rows)
    if is_refused:
        return RowChange(before=before, after=before)
    match item:
        case QuarantineRows():
            gone = set(item.extras)
            aside = tuple(row.text for row in rows if row in gone)
            return RowChange(before=before, after=_texts(row for row in rows if row not in gone), aside=aside)
        case UpsertRow():
            return RowChange(before=before, after=(_upserted(chunk, item, rows),))
        case RestoreRow():
            return RowChange(before=before, after=_restored(chunk, item, rows))


def _texts(rows: Iterable[TableRow]) -> tuple[str, ...]:
    return tuple(row.text for row in rows)


def _upserted(chunk: OpenChunk, item: UpsertRow, rows: Sequence[TableRow]) -> str:
    """The row that is written: over the one that is there, or a new one."""
    parameters: dict[str, Any] = dict(item.wanted)
    if not rows:
        values = listed(quoted("wanted", name) for name in item.columns)
        return _only(chunk.run("row_as_inserted", parameters, values=values))
    changed = set(item.columns) & set(chunk.settable)
    values = listed(quoted("wanted" if name in changed else "t", name) for name in chunk.table.writable)
    place = {"ctid": rows[0].ctid, "table_oid": rows[0].table_oid}
    return _only(chunk.run("row_as_updated", parameters | place, values=values))


def _restored(chunk: OpenChunk, item: RestoreRow, rows: Sequence[TableRow]) -> tuple[str, ...]:
    """The rows that are left when the effect is taken back."""
    written = written_row(chunk, item.effect, rows, moved_beside(chunk, item.effect))
    left = _texts(row for row in rows if row is not written)
    if item.effect.kind is EffectKind.INSERTED:
        return left
    return (*left, _image(chunk, item.effect.before or ""))


def _image(chunk: OpenChunk, image: str) -> str:
    values = listed(sql.SQL("(was.image).{0} as {0}").format(quoted(name)) for name in chunk.table.writable)
    return _only(chunk.run("row_as_it_was", {"image": image}, values=values))


def _only(found: Sequence[Sequence[Any]]) -> str:
    return str(found[0][0])
