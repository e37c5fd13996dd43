"""Render Arrow columns as the texts that frames of rows have in the declared types of a pipeline."""

from collections.abc import Callable, Mapping

import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import (
    ARRAY,
    FLOATING,
    canonical_text,
    column_text,
    decimal_scale,
    is_own_text,
    moment_digits,
)
from makewhole.compute.moments import MICROSECOND_DIGITS
from makewhole.datasets.arrow_types import ColumnType, NestedColumn
from makewhole.datasets.nested_columns import column_at
from makewhole.datasets.nested_values import json_texts, readable_values
from makewhole.datasets.own_texts import distant_moments, microseconds, scalar_texts

_INTEGERS = ("int", "bigint")


def own_texts(array: NestedColumn) -> pl.Series:
    """Return the texts of a column in its own type: scalars as SQL writes them, lists and parts as JSON."""
    if pa.types.is_nested(array.type):
        return pl.Series(json_texts(array), dtype=pl.String)
    return scalar_texts(array)


def declared_texts(array: NestedColumn, declared: str) -> pl.Series:
    """Return the texts of a column for `table_frame`: in its declared type, or else its own behind `!`, which
    `makewhole.compute.canonical.column_text` reads."""
    if is_own_text(declared):
        return own_texts(array)
    if declared.endswith(ARRAY) and pa.types.is_nested(array.type):
        return pl.Series([canonical_text(value, declared) for value in readable_values(array)], dtype=pl.String)
    if _is_canonical(array.type, declared):
        return own_texts(array)
    if moment_digits(declared) == MICROSECOND_DIGITS and _is_whole_microseconds(array.type):
        return _moments(array)
    return "!" + own_texts(array)


def _moments(array: NestedColumn) -> pl.Series:
    """Return moments as the texts of their microseconds; one that has too many of them as its own text behind `!`."""
    texts = microseconds(array).cast(pl.String)
    if texts.null_count() == array.null_count:
        return texts
    return pl.DataFrame({"a": texts, "b": "!" + distant_moments(array)}).select(pl.coalesce("a", "b")).to_series()


def _is_canonical(kind: ColumnType, declared: str) -> bool:
    """Return whether the own texts of a column are those of the declared type."""
    if pa.types.is_boolean(kind):
        return declared == "boolean"
    if pa.types.is_integer(kind):
        return declared in _INTEGERS
    if pa.types.is_floating(kind):
        return declared in FLOATING
    if pa.types.is_decimal(kind):
        return bool(decimal_scale(declared) == kind.scale)
    return False


def _is_whole_microseconds(kind: ColumnType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.unit != "ns"


def mapped(texts: pl.Series, convert: Callable[[str], object], dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    """Return what texts are converted to, each different one once; null stays null."""
    known = texts.drop_nulls().unique()
    if not len(known):
        return pl.Series(texts.name, [None] * len(texts), dtype=dtype)
    read = pl.Series([convert(text) for text in known], dtype=dtype)
    return texts.replace_strict(known, read, default=None, return_dtype=dtype)


def compared_texts(row: pa.Table, compare: Mapping[str, str]) -> dict[str, str | None]:
    """Return the canonical texts of columns of one row."""
    return {
        name: column_text(declared_texts(column_at(row, name), declared)[0], declared)
        for name, declared in compare.items()
    }
