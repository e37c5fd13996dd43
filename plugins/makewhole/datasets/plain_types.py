"""Read columns of views as plain ones, and write them as views again: Arrow filters no texts of views, polars takes no
lists of them, and a cast of such lists to plain ones is wrong (pyarrow 26)."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from makewhole.datasets.arrow_types import ColumnType, NestedColumn


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a file as they are read."""
    metadata: Any = schema.metadata
    return pa.schema([_plain_field(field) for field in schema], metadata=metadata)


def plain_type(kind: ColumnType) -> ColumnType:
    """Return a type whose texts, bytes and lists are no views."""
    types = pa.types
    if types.is_string_view(kind):
        return pa.string()
    if types.is_binary_view(kind):
        return pa.binary()
    if types.is_struct(kind):
        return pa.struct([_plain_field(part) for part in kind])
    if types.is_map(kind):
        maps: Any = pa.map_
        return maps(_plain_field(kind.key_field), _plain_field(kind.item_field), keys_sorted=kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if types.is_list(kind) or types.is_list_view(kind):
        return pa.list_(_plain_field(kind.value_field))
    if types.is_large_list(kind) or types.is_large_list_view(kind):
        return pa.large_list(_plain_field(kind.value_field))
    return kind


def _plain_field(field: "pa.Field[Any]") -> "pa.Field[Any]":
    return field.with_type(plain_type(field.type))


def with_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the same columns as plain ones, or as views."""
    if rows.schema.equals(schema):
        return rows
    columns = [
        pa.chunked_array([_as_type(chunk, field.type) for chunk in rows.column(at).chunks], field.type)
        for at, field in enumerate(schema)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _as_type(array: NestedColumn, kind: ColumnType) -> NestedColumn:
    if array.type.equals(kind):
        return array
    if pa.types.is_struct(kind):
        parts = [_as_type(part, own.type) for part, own in zip(array.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind):
        pairs = pa.list_(pa.struct([pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)]))
        lists = array.cast(pairs)
        keys, items = lists.flatten().flatten()
        ends = pc.if_else(lists.is_valid(), pa.array(_starts(lists)[:-1], pa.int32()), None)
        last = pa.array(_starts(lists)[-1:], pa.int32())
        maps: Any = pa.MapArray
        offsets = pa.concat_arrays([ends, last])
        return maps.from_arrays(offsets, _as_type(keys, kind.key_type), _as_type(items, kind.item_type), type=kind)
    if pa.types.is_fixed_size_list(kind):
        size, first = kind.list_size, array.offset
        values = array.values.slice(first * size, len(array) * size)
        sized: Any = pa.FixedSizeListArray
        return sized.from_arrays(_as_type(values, kind.value_type), type=kind, mask=array.is_null())
    if pa.types.is_nested(kind):
        return _lists(array, kind)
    return array.cast(kind)


def _starts(array: NestedColumn) -> Any:
    """Return where each list of a column begins in one of all items, and behind them where the last one ends."""
    lengths: Any = pc.list_value_length(array)
    lengths = pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)
    return np.append(0, np.cumsum(lengths, dtype=np.int64))


def _lists(array: NestedColumn, kind: ColumnType) -> NestedColumn:
    items, starts = _as_type(array.flatten(), kind.value_type), _starts(array)
    is_large = pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind)
    number = pa.int64() if is_large else pa.int32()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lists: Any = pa.LargeListArray if is_large else pa.ListArray
        return lists.from_arrays(pa.array(starts, number), items, type=kind, mask=array.is_null())
    views: Any = pa.LargeListViewArray if is_large else pa.ListViewArray
    firsts, sizes = pa.array(starts[:-1], number), pa.array(np.diff(starts), number)
    return views.from_arrays(firsts, sizes, items, type=kind, mask=array.is_null())
