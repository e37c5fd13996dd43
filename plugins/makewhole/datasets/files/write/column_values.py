"""Turn the values of a record, as JSON has them, into values of a column."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from makewhole.compute.canonical import canonical_text
from makewhole.datasets.arrow_types import ColumnType, NestedColumn
from makewhole.datasets.column_types import sql_type

_PER_MICROSECOND = {"us": (1, 1), "ms": (1, 1_000), "s": (1, 1_000_000), "ns": (1_000, 1)}


def written_rows(
    schema: pa.Schema, values: Mapping[str, Any], before: pa.Table | None, moment: str | None = None
) -> pa.Table:
    """Return a row with these values of columns and, of all other columns, what the row had `before`, or null.
    `moment`: the column that gets the moment of now.

    Raises:
        ValueError: a column does not hold its value; the text says which.
    """
    columns = [
        _now(field.type)
        if field.name == moment
        else _column(field, values[field.name])
        if field.name in values
        else _kept(field, before)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def unwritable(schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    """Return those of the columns that are a part of another one, or nested: they are not written."""
    return [name for name in columns if name not in schema.names or bool(pa.types.is_nested(schema.field(name).type))]


def _kept(field: "pa.Field[Any]", before: pa.Table | None) -> NestedColumn:
    if before is not None and field.name in before.column_names:
        return before.column(field.name)
    return _column(field, None)


def _column(field: "pa.Field[Any]", value: Any) -> NestedColumn:
    if value is None:
        if not field.nullable:
            raise ValueError(f"{field.name} takes no null")
        return _nulls(field.type)
    try:
        return pa.array([_value(value, field.type)], field.type)
    except (ValueError, TypeError, KeyError, InvalidOperation, OverflowError, pa.ArrowException):
        raise ValueError(f"{field.name} ({sql_type(field.type)}) does not hold this value") from None


def _nulls(kind: ColumnType) -> NestedColumn:
    return pa.nulls(1, kind)


def _now(kind: ColumnType) -> NestedColumn:
    now = datetime.now(UTC)
    if pa.types.is_date(kind):
        return pa.array([now.date()], kind)
    return pa.array([_moment(str(int(now.timestamp() * 1_000_000)), kind)], pa.int64()).view(kind)


def _value(value: Any, kind: ColumnType) -> Any:
    if pa.types.is_dictionary(kind):
        return _value(value, kind.value_type)
    if pa.types.is_boolean(kind):
        return _text(value, "boolean") == "true"
    if pa.types.is_integer(kind):
        return int(_text(value, "int"))
    if pa.types.is_decimal(kind):
        return Decimal(_text(value, "int")).quantize(Decimal(1).scaleb(-kind.scale), rounding=ROUND_HALF_UP)
    if pa.types.is_floating(kind):
        return float(_text(value, "double"))
    if pa.types.is_timestamp(kind):
        return pa.scalar(_moment(_text(value, "timestamp"), kind), pa.int64()).cast(kind).as_py()
    if pa.types.is_date(kind):
        return date.fromisoformat(_text(value, "date"))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text(value, "json" if isinstance(value, dict | list) else "string")
    raise TypeError("no such column is written")


def _moment(microseconds: str, kind: ColumnType) -> int:
    times, parts = _PER_MICROSECOND[kind.unit]
    number, rest = divmod(int(microseconds) * times, parts)
    if rest:
        raise ValueError("finer than the column")
    return number


def _text(value: Any, declared: str) -> str:
    """Return the canonical text of a value.

    Raises:
        ValueError: it is none of the type.
    """
    text = canonical_text(value, declared)
    if text is None or (text.startswith("!") and declared != "string"):
        raise ValueError(declared)
    return text
