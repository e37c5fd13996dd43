"""Do the items of a chunk on the rows of a table in memory, and keep their effects."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from makewhole.compute.canonical import canonical_text
from makewhole.compute.versions import version_number
from makewhole.model.errors import ActionRefusedError
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.guards import (
    BACK_ALREADY,
    CHANGED_SINCE_WRITTEN,
    GONE,
    NEWER,
    OTHER_KEY,
    not_accounted_for,
    quarantine_refusal,
    require_insertable,
    row_as_left,
    survivor_image,
    upsert_refusal,
)
from makewhole.tables.items import QuarantineRows, RestoreRow, RowItem, UpsertRow, not_as_expected
from makewhole.tables.receipts import ChunkId
from makewhole.tables.rows import TableRow
from tests.memory.rows import Database, RowAside, RowValues, StoredRow, StoredTable
from tests.memory.values import key_of_row, rows_of_key, stored_text, text_of_now

NOT_KEPT = Refusal(RefusalCode.ERASED, "the row is no longer kept aside")
ALTERED = Refusal(RefusalCode.UNFIT, "the table has other columns than when the plan wrote the row")


@dataclass(frozen=True, kw_only=True)
class ChunkRows:
    """The rows of a table as a chunk of a plan sees and changes them."""

    database: Database
    table: StoredTable
    point: TablePoint
    id: ChunkId

    def of_key(self, key: str, *, is_exact: bool) -> list[TableRow]:
        """Return the rows of a key with images and places."""
        rows = rows_of_key(self.table, self.point, key, is_exact=is_exact)
        return [self.table.row(row, has_image=True) for row in rows]

    def do(self, item: RowItem) -> None:
        """Do an item as a whole.

        Raises:
            RefusedError: it is not done; nothing was changed.
        """
        match item:
            case UpsertRow():
                _upsert(self, item)
            case QuarantineRows():
                _move_aside(self, item)
            case RestoreRow():
                _restore(self, item)

    def write(self, seq: int, old: StoredRow | None, values: RowValues) -> None:
        """Insert a row, or write one again."""
        if old is None:
            new = self.database.insert(self.table, values)
            self._keep(seq, EffectKind.INSERTED, new, before=None, after=new.image)
        else:
            new = self.database.update(self.table, old, values)
            self._keep(seq, EffectKind.UPDATED, new, before=old.image, after=new.image)

    def take(self, seq: int, kind: EffectKind, row: StoredRow, stays: str | None = None) -> None:
        """Take a row away; `stays` is the image of the row of its key that stays."""
        self.database.delete(self.table, row)
        self._keep(seq, kind, row, before=row.image, after=stays)

    def _keep(self, seq: int, kind: EffectKind, row: StoredRow, *, before: str | None, after: str | None) -> None:
        effect = Effect(
            plan=self.id.plan,
            target=self.id.target,
            chunk=self.id.chunk,
            seq=seq,
            kind=kind,
            place=row.place,
            before=before,
            after=after,
        )
        self.database.effects.append(effect)


# A row that is written


def _upsert(chunk: ChunkRows, item: UpsertRow) -> None:
    now = chunk.of_key(item.key, is_exact=False)
    refusal = upsert_refusal(item, now) or not_accounted_for(chunk.database.description(chunk.table), item)
    if refusal is not None:
        raise ActionRefusedError(refusal)
    fields = _fields(item)
    old = chunk.table.at(now[0]) if item.before else None
    if old is not None and _is_newer(chunk.point, old, fields):
        raise ActionRefusedError(NEWER)
    kept = dict.fromkeys(chunk.table.columns) if old is None else old.values
    values = {**kept, **_values(chunk, item, fields)}
    _require_as_expected(chunk, item, values)
    chunk.write(item.seq, old, values)


def _fields(item: UpsertRow) -> dict[str, Any]:
    """Return the value over the key, numbers exact."""
    fields = json.loads(item.value, parse_float=Decimal)
    if not isinstance(fields, dict):
        raise ActionRefusedError.of(RefusalCode.UNFIT, "the table does not take it: its value is no JSON object")
    return {**dict(zip(item.key_columns, item.parts, strict=True)), **fields}


def _is_newer(point: TablePoint, row: StoredRow, fields: dict[str, Any]) -> bool:
    if point.version is None:
        return False
    own, record = (version_number(version.get(point.version)) for version in (row.values, fields))
    return own is not None and record is not None and own > record


def _values(chunk: ChunkRows, item: UpsertRow, fields: dict[str, Any]) -> RowValues:
    """Return the texts of the columns that an item writes.

    Raises:
        RefusedError: a column does not hold its value.
    """
    columns, now = chunk.table.columns, text_of_now()
    try:
        return {
            name: now if name == item.moment else stored_text(fields.get(name), columns[name]) for name in item.columns
        }
    except ValueError as error:
        raise ActionRefusedError.of(RefusalCode.UNFIT, f"the table does not take it: {error}") from None


def _require_as_expected(chunk: ChunkRows, item: UpsertRow, values: RowValues) -> None:
    """Check that a row has its own key, and holds what the item means.

    Raises:
        RefusedError: it does not.
    """
    if key_of_row(values, chunk.point) != item.key:
        raise ActionRefusedError(OTHER_KEY)
    differing = [name for name, declared, text in item.expected if canonical_text(values[name], declared) != text]
    if differing:
        raise ActionRefusedError(not_as_expected(differing))


# Rows that are moved aside


def _move_aside(chunk: ChunkRows, item: QuarantineRows) -> None:
    now = chunk.of_key(item.key, is_exact=True)
    refusal = quarantine_refusal(item, now)
    if refusal is not None:
        raise ActionRefusedError(refusal)
    stays = survivor_image(item, now)
    for extra in item.extras:
        row = chunk.table.at(extra)
        chunk.take(item.seq, EffectKind.MOVED, row, stays)
        chunk.database.aside[chunk.id.plan, item.seq, row.place] = RowAside(image=row.image)


# Rows that are put back


def _restore(chunk: ChunkRows, item: RestoreRow) -> None:
    now, effect = chunk.of_key(item.key, is_exact=False), item.effect
    if effect.kind in (EffectKind.INSERTED, EffectKind.UPDATED):
        row = _row_as_left(chunk, effect, now)
        if effect.kind is EffectKind.INSERTED:
            chunk.take(item.seq, EffectKind.DELETED, row)
        else:
            chunk.write(item.seq, row, _values_of(chunk, effect.before))
        return
    require_insertable(effect, now, _images_put_back(chunk, effect))
    values = _values_of(chunk, effect.before)
    if effect.kind is EffectKind.MOVED:
        _release(chunk, effect)
    chunk.write(item.seq, None, values)


def _row_as_left(chunk: ChunkRows, effect: Effect, now: Sequence[TableRow]) -> StoredRow:
    row = row_as_left(effect, now)
    if row is not None:
        return chunk.table.at(row)
    if not now:
        raise ActionRefusedError(GONE)
    _values_of(chunk, effect.after)
    raise ActionRefusedError(CHANGED_SINCE_WRITTEN)


def _values_of(chunk: ChunkRows, image: str | None) -> RowValues:
    """Return the values of an image.

    Raises:
        RefusedError: the table has other columns by now.
    """
    values: RowValues = json.loads(image or "{}")
    if values.keys() != chunk.table.columns.keys():
        raise ActionRefusedError(ALTERED)
    return values


def _images_put_back(chunk: ChunkRows, effect: Effect) -> list[str]:
    """Return the images of the rows that the effect's action moved aside and that were put back."""
    known = chunk.database.aside.items()
    return [
        image.image for (plan, seq, _), image in known if (plan, seq) == (effect.plan, effect.seq) and image.is_back
    ]


def _release(chunk: ChunkRows, effect: Effect) -> None:
    aside = chunk.database.aside.get((effect.plan, effect.seq, effect.place))
    if aside is None or aside.is_back:
        raise ActionRefusedError(NOT_KEPT if aside is None else BACK_ALREADY)
    aside.is_back = True
