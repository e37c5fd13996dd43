"""Do the items of a chunk on the rows of a dataset of files."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from makewhole.datasets.arrow_types import NestedColumn
from makewhole.datasets.files.describe import description_of
from makewhole.datasets.files.open_dataset import RowInParquet
from makewhole.datasets.files.write.chunk_rows import FileChunk, columns_of
from makewhole.datasets.files.write.column_values import unwritable, written_rows
from makewhole.datasets.files.write.kept_beside import RowBack
from makewhole.datasets.items_of_chunks import fields_of, is_newer, own_topic, require_as_expected
from makewhole.datasets.nested_values import rows_of_images
from makewhole.model.errors import ActionRefusedError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.guards import (
    BACK_ALREADY,
    CHANGED_SINCE_WRITTEN,
    GONE,
    NEWER,
    not_accounted_for,
    quarantine_refusal,
    require_insertable,
    row_as_left,
    survivor_image,
    upsert_refusal,
)
from makewhole.tables.items import QuarantineRows, RestoreRow, RowItem, UpsertRow
from makewhole.tables.rows import TableRow

ALTERED = Refusal(RefusalCode.UNFIT, "the dataset has other columns than when the plan wrote the row")


def do(chunk: FileChunk, item: RowItem) -> None:
    """Do an item as a whole.

    Raises:
        RefusedError: it is not done; nothing was changed.
    """
    match item:
        case UpsertRow():
            _upsert(chunk, item)
        case QuarantineRows():
            _move_aside(chunk, item)
        case RestoreRow():
            _restore(chunk, item)


def _table_rows(rows: Sequence[RowInParquet]) -> list[TableRow]:
    return [row.row for row in rows]


# A row that is written


def _upsert(chunk: FileChunk, item: UpsertRow) -> None:
    now = chunk.of_key(item.key, is_exact=False)
    description = description_of(chunk.schema, chunk.point)
    refusal = upsert_refusal(item, _table_rows(now)) or not_accounted_for(description, item)
    if refusal is not None:
        raise ActionRefusedError(refusal)
    fields = fields_of(item)
    old = now[0] if item.before else None
    if old is not None and is_newer(chunk.point, old, fields):
        raise ActionRefusedError(NEWER)
    values = _values(chunk, item, fields, old)
    require_as_expected(chunk.point, item, values)
    if old is None:
        chunk.insert(item.seq, values)
    else:
        has = old.values.column_names  # what its file has
        written = [name for name in item.columns if name in has or values.column(name).null_count == 0]
        new = _own_columns(chunk, old, columns_of(values, written))
        chunk.update(item.seq, old, _with(old.values, columns_of(values, item.columns)), new)


def _with(row: pa.Table, columns: Mapping[str, NestedColumn]) -> pa.Table:
    """Return a row with other values in some of its columns; all others stay what they are in its file."""
    names = row.column_names
    return pa.table({name: columns.get(name, row.column(name)) for name in names})


def _values(chunk: FileChunk, item: UpsertRow, fields: dict[str, Any], old: RowInParquet | None) -> pa.Table:
    """Return the row that an item writes, whole.

    Raises:
        RefusedError: a column does not hold its value.
    """
    topic = own_topic(chunk.point, item)
    parts = unwritable(chunk.schema, [*item.columns, *topic])
    if parts:
        raise ActionRefusedError.of(
            RefusalCode.UNFIT, f"{', '.join(parts)} would be written, and parts of columns are not"
        )
    values = {name: fields.get(name) for name in item.columns} | topic
    try:
        return written_rows(chunk.schema, values, None if old is None else old.values, item.moment)
    except ValueError as error:
        raise ActionRefusedError.of(RefusalCode.UNFIT, f"the dataset does not take it: {error}") from None


def _own_columns(chunk: FileChunk, row: RowInParquet, columns: dict[str, NestedColumn]) -> dict[str, NestedColumn]:
    """Return columns in the types that the row's own file has.

    Raises:
        RefusedError: it lacks one, or holds another type there.
    """
    own = chunk.source.schema_of(row.data)
    try:
        return {name: column.cast(_stored(own, row, name)) for name, column in columns.items()}
    except (KeyError, pa.ArrowException):
        raise ActionRefusedError.of(
            RefusalCode.UNFIT, f"{row.data.path} does not hold {', '.join(sorted(columns))} as the dataset does by now"
        ) from None


def _stored(own: pa.Schema, row: RowInParquet, name: str) -> Any:
    if name in row.data.folders:  # the row would have to go to another folder
        raise KeyError(name)
    return own.field(name).type


# Rows that are moved aside


def _move_aside(chunk: FileChunk, item: QuarantineRows) -> None:
    now = chunk.of_key(item.key, is_exact=True)
    refusal = quarantine_refusal(item, _table_rows(now))
    if refusal is not None:
        raise ActionRefusedError(refusal)
    stays = survivor_image(item, _table_rows(now))
    extras = [next(key_row for key_row in now if key_row.row == extra) for extra in item.extras]
    for row in extras:
        chunk.take(item.seq, EffectKind.MOVED, row, stays)


# Rows that are put back


def _restore(chunk: FileChunk, item: RestoreRow) -> None:
    now, effect = chunk.of_key(item.key, is_exact=False), item.effect
    if effect.kind in (EffectKind.INSERTED, EffectKind.UPDATED):
        row = _as_left(chunk, effect, now)
        if effect.kind is EffectKind.INSERTED:
            chunk.take(item.seq, EffectKind.DELETED, row)
            return
        values = _rows_of(chunk, effect.before)
        differing = [name for name in values.column_names if _differs(values, row.values, name)]
        chunk.update(item.seq, row, values, _own_columns(chunk, row, columns_of(values, differing)))
        return
    back = RowBack(plan=effect.plan, seq=effect.seq, place=effect.place, image=effect.before or "", by=item.seq)
    known = [row_back.image for row_back in chunk.back if (row_back.plan, row_back.seq) == (effect.plan, effect.seq)]
    require_insertable(effect, _table_rows(now), [*chunk.kept.images_back(effect.plan, effect.seq), *known])
    values = _rows_of(chunk, effect.before)
    if effect.kind is EffectKind.MOVED:
        if back.path in (row_back.path for row_back in chunk.back) or chunk.kept.is_back(back):
            raise ActionRefusedError(BACK_ALREADY)
        chunk.back.append(back)
    chunk.insert(item.seq, values)


def _differs(values: pa.Table, row: pa.Table, name: str) -> bool:
    return name not in row.column_names or not values.column(name).equals(row.column(name))


def _as_left(chunk: FileChunk, effect: Effect, now: Sequence[RowInParquet]) -> RowInParquet:
    left = row_as_left(effect, _table_rows(now))
    if left is not None:
        return next(row for row in now if row.row is left)
    if not now:
        raise ActionRefusedError(GONE)
    _rows_of(chunk, effect.after)
    raise ActionRefusedError(CHANGED_SINCE_WRITTEN)


def _rows_of(chunk: FileChunk, image: str | None) -> pa.Table:
    """Return the row of an image, with the columns that its file had.

    Raises:
        RefusedError: the dataset lacks one of them by now, or it has another type.
    """
    names = json.loads(image or "{}").keys()
    try:
        own = pa.schema([chunk.schema.field(name) for name in names])
        return rows_of_images([image or "{}"], own)
    except (KeyError, ValueError):
        raise ActionRefusedError(ALTERED) from None
