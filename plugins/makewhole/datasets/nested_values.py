"""Turn Arrow columns into values of JSON and back: readably for people, and exactly for images of rows."""

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from makewhole.datasets.arrow_types import ColumnType, NestedColumn
from makewhole.datasets.column_types import is_bytes, is_list, is_uuid
from makewhole.datasets.own_texts import NOT_FINITE, scalar_texts

ReadColumn = Callable[[NestedColumn], list[Any]]
_NUMBERS = msgspec.json.Encoder(decimal_format="number")


def _nested(array: NestedColumn, leaf: ReadColumn, has_objects: bool) -> list[Any]:
    """Return values by those of their leaves. `has_objects`: maps are objects, and no pairs."""
    kind = array.type
    if is_uuid(kind):
        return leaf(array)
    if pa.types.is_dictionary(kind):
        return _nested(array.dictionary_decode(), leaf, has_objects)
    if pa.types.is_map(kind):
        pairs = pa.list_(pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)]))
        maps = _nested(array.cast(pairs), leaf, has_objects)
        return [_object(pairs) for pairs in maps] if has_objects else maps
    if pa.types.is_struct(kind):
        parts = [_nested(part, leaf, has_objects) for part in array.flatten()]
        names = [part.name for part in kind]
        rows = zip(*parts, strict=True) if parts else [()] * len(array)
        known = array.is_valid().to_pylist()
        return [dict(zip(names, row, strict=True)) if is_known else None for row, is_known in zip(rows, known)]  # noqa: B905
    if is_list(kind):
        items = iter(_nested(array.flatten(), leaf, has_objects))
        lengths = pc.list_value_length(array).to_pylist()
        return [None if length is None else list(islice(items, length)) for length in lengths]
    return leaf(array)


def _object(pairs: list[dict[str, Any]] | None) -> Any:
    """Return the object that a map is; the pairs of one that has a key twice, which is no object."""
    if pairs is None:
        return None
    members = {_member_name(pair["key"]): pair["value"] for pair in pairs}
    return members if len(members) == len(pairs) else pairs


def _member_name(key: Any) -> str:
    """Return the key of a map as the name of a member."""
    return key if isinstance(key, str) else _NUMBERS.encode(key).decode()


# For people, and for comparisons of JSON


def readable_values(array: NestedColumn) -> list[Any]:
    """Return values as JSON has them: numbers exactly, moments and everything else that JSON lacks as texts."""
    return _nested(array, _readable, has_objects=True)


def _readable(array: NestedColumn) -> list[Any]:
    kind = array.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return list(array.to_pylist())
    texts = scalar_texts(array).to_list()
    if pa.types.is_floating(kind):
        return [text if text is None or text in NOT_FINITE.values() else Decimal(text) for text in texts]
    return texts


def json_texts(array: NestedColumn) -> list[str | None]:
    """Return values as texts of JSON."""
    return [None if value is None else _NUMBERS.encode(value).decode() for value in readable_values(array)]


def row_texts(rows: pa.Table) -> list[str]:
    """Return rows as texts of JSON objects."""
    columns = [readable_values(_whole(rows, name)) for name in rows.column_names]
    named = (dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True))
    return [_NUMBERS.encode(row).decode() for row in named]


# Exactly


def exact_values(array: NestedColumn) -> list[Any]:
    """Return values of which `array_of` makes the same column again: moments as numbers, bytes in hexadecimal."""
    return _nested(array, _exact, has_objects=False)


def _exact(array: NestedColumn) -> list[Any]:
    kind = array.type
    if is_uuid(kind):
        array, kind = array.storage, array.type.storage_type
    if is_bytes(kind):
        return [None if value is None else value.hex() for value in array.to_pylist()]
    if pa.types.is_decimal(kind):
        return [None if value is None else str(value) for value in array.to_pylist()]
    if pa.types.is_floating(kind):
        return list(array.view(_bits_of(kind)).to_pylist())
    if pa.types.is_temporal(kind):
        return list(array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist())
    return list(array.to_pylist())


def _bits_of(kind: ColumnType) -> ColumnType:
    """Return the type of the bits of numbers with a fraction."""
    return {16: pa.uint16(), 32: pa.uint32()}.get(kind.bit_width, pa.uint64())


def array_of(values: Sequence[Any], kind: ColumnType) -> NestedColumn:
    """Return the column that `exact_values` was made of."""
    if is_uuid(kind):
        return pa.ExtensionArray.from_storage(kind, array_of(values, kind.storage_type))
    if pa.types.is_dictionary(kind):
        coded = array_of(values, kind.value_type).dictionary_encode()
        numbers = coded.indices.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(numbers, coded.dictionary, ordered=kind.ordered)
    if pa.types.is_map(kind):
        pairs = [None if row is None else [(pair["key"], pair["value"]) for pair in row] for row in values]
        return _map_of(pairs, kind)
    if pa.types.is_struct(kind):
        known, names = pa.array([value is None for value in values], pa.bool_()), {part.name for part in kind}
        if any(value is not None and not value.keys() <= names for value in values):
            raise KeyError("the values have parts that the column does not have")
        parts = [array_of([_part(value, part) for value in values], part.type) for part in kind]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=known)
    if pa.types.is_fixed_size_list(kind):
        return _list_of(values, pa.list_(kind.value_field)).cast(kind)
    if is_list(kind):
        return _list_of(values, kind)
    return _scalars_of(values, kind)


def _part(value: Any, part: "pa.Field[Any]") -> Any:
    """Return a part of a value; null: the file of its row had no such part."""
    if value is None or (part.nullable and part.name not in value):
        return None
    return value[part.name]


def _offsets(values: Sequence[Any]) -> list[int | None]:
    """Return where each list begins in one of all; None: it is null."""
    at, offsets = 0, list[int | None]()
    for value in values:
        offsets.append(None if value is None else at)
        at += len(value or ())
    return [*offsets, at]


def _list_of(values: Sequence[Any], kind: ColumnType) -> NestedColumn:
    items = array_of([item for value in values for item in value or ()], kind.value_type)
    is_large = pa.types.is_large_list(kind)
    offsets = pa.array(_offsets(values), pa.int64() if is_large else pa.int32())
    lists: Any = pa.LargeListArray if is_large else pa.ListArray
    return lists.from_arrays(offsets, items, type=kind)


def _map_of(pairs: Sequence[Any], kind: ColumnType) -> NestedColumn:
    keys = array_of([key for row in pairs for key, _ in row or ()], kind.key_type)
    items = array_of([item for row in pairs for _, item in row or ()], kind.item_type)
    maps: Any = pa.MapArray
    return maps.from_arrays(pa.array(_offsets(pairs), pa.int32()), keys, items, type=kind)


def _scalars_of(values: Sequence[Any], kind: ColumnType) -> NestedColumn:
    if is_bytes(kind):
        return pa.array([None if value is None else bytes.fromhex(value) for value in values], kind)
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else Decimal(value) for value in values], kind)
    if pa.types.is_floating(kind):
        return pa.array(values, _bits_of(kind)).view(kind)
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return pa.array(values, kind)


def row_images(rows: pa.Table) -> list[str]:
    """Return rows as texts that hold them exactly."""
    columns = [exact_values(_whole(rows, name)) for name in rows.column_names]
    named = (dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True))
    return [json.dumps(row, ensure_ascii=True, separators=(",", ":")) for row in named]


def rows_of_images(images: Sequence[str], schema: pa.Schema) -> pa.Table:
    """Return the rows of images.

    Raises:
        ValueError: they have other columns than the schema, or values that these do not hold.
    """
    rows = [json.loads(image) for image in images]
    if any(row.keys() != set(schema.names) for row in rows):
        raise ValueError("the rows have other columns")
    try:
        columns = [array_of([row[field.name] for row in rows], field.type) for field in schema]
    except (pa.ArrowException, TypeError, KeyError, OverflowError) as error:
        raise ValueError("a column does not hold the values of the rows") from error
    return pa.Table.from_arrays(columns, schema=schema)


def _whole(rows: pa.Table, name: str) -> NestedColumn:
    column = rows.column(name)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
