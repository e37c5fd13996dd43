"""Name the types of Arrow columns as SQL does, by which a pipeline's columns are read."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from makewhole.compute.canonical import PARTS
from makewhole.compute.value_types import ColumnKind
from makewhole.datasets.arrow_types import ColumnType
from makewhole.tables.description import Column, bare

_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.uint64(): "numeric(20,0)",
    pa.float16(): "real",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.string_view(): "text",
    pa.date32(): "date",
}
_JSON = "jsonb"


def is_uuid(kind: ColumnType) -> bool:
    """Return whether values are UUIDs."""
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.uuid"


def is_bytes(kind: ColumnType) -> bool:
    """Return whether values are bytes."""
    is_sized = pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind)
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or is_sized


def is_list(kind: ColumnType) -> bool:
    """Return whether values are lists."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def sql_type(kind: ColumnType) -> str:
    """Return the name of a type, with its modifier."""
    if pa.types.is_dictionary(kind):
        return sql_type(kind.value_type)
    if is_uuid(kind):
        return "uuid"
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return f"timestamp {'without' if kind.tz is None else 'with'} time zone"
    if pa.types.is_time(kind):
        return "time without time zone"
    if is_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return _JSON
    return "bytea" if is_bytes(kind) or pa.types.is_null(kind) else str(kind)


def _is_read(kind: ColumnType) -> bool:
    """Return whether values, and all that lie in them, are of types that have a name in SQL."""
    if is_list(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind):
        return all(_is_read(kind.field(at).type) for at in range(kind.num_fields))
    return sql_type(kind) != str(kind) or kind in _PLAIN


def column_kind(kind: ColumnType) -> ColumnKind:
    """Return what the values of a column are compared by."""
    full = sql_type(kind)
    if pa.types.is_dictionary(kind):
        return column_kind(kind.value_type)
    if not _is_read(kind):
        return ColumnKind(type=str(kind), nature=None)
    if pa.types.is_nested(kind):
        return replace(_nested_kind(kind), full_type=PARTS if _has_parts(kind) else "")
    return ColumnKind.of(bare(full), full_type=full)


def _nested_kind(kind: ColumnType) -> ColumnKind:
    if not is_list(kind) or pa.types.is_nested(kind.value_type):
        return ColumnKind.of(_JSON)
    element = bare(sql_type(kind.value_type))
    return ColumnKind.of(f"{element}[]", element=element)


def _has_parts(kind: ColumnType) -> bool:
    """Return whether values are moments, or have parts, wherever in them."""
    if pa.types.is_struct(kind) or pa.types.is_timestamp(kind):
        return True
    return pa.types.is_nested(kind) and any(_has_parts(kind.field(at).type) for at in range(kind.num_fields))


def column_kinds(types: Mapping[str, ColumnType]) -> dict[str, ColumnKind]:
    """Return what the values of columns are compared by."""
    return {name: column_kind(kind) for name, kind in types.items()}


def described_column(name: str, kind: ColumnType, *, is_required: bool, is_filled: bool) -> Column:
    """Return a column as what writes rows knows it. `is_filled`: a new row gets a value in it, whatever is written."""
    full = bare(sql_type(kind))
    return Column(
        name=name,
        type=full,
        base_type=full,
        is_generated=False,
        is_identity_always=False,
        is_required=is_required,
        has_default=is_filled,
    )
