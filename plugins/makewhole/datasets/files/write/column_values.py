"""Turn the values of a record, as JSON has them, into values of a column."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from makewhole.datasets.arrow_types import ColumnType, NestedColumn
from makewhole.datasets.column_types import sql_type
from makewhole.datasets.nested_values import array_of
from makewhole.datasets.written_values import exact_now, exact_value


def written_rows(
    schema: pa.Schema, values: Mapping[str, Any], before: pa.Table | None, moment: str | None = None
) -> pa.Table:
    """Return a row with these values of columns and, of all other columns, what the row had `before`, or null.
    `moment`: the column that gets the moment of now.

    Raises:
        ValueError: a column does not hold its value; the text says which.
    """
    columns = [
        array_of([exact_now(field.type)], field.type)
        if field.name == moment
        else _column(field, values[field.name])
        if field.name in values
        else _kept(field, before)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def unwritable(schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    """Return those of the columns that are a part of another one: they are not written."""
    return [name for name in columns if name not in schema.names]


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
        return array_of([exact_value(value, field.type)], field.type)
    except (ValueError, TypeError, KeyError, ArithmeticError, pa.ArrowException):
        raise ValueError(f"{field.name} ({sql_type(field.type)}) does not hold this value") from None


def _nulls(kind: ColumnType) -> NestedColumn:
    return pa.nulls(1, kind)
