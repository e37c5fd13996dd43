"""Keep the columns that hold one value, in every row of a file, out of its rows: their value stands beside the schema.

Of the columns of a key index most hold one value in a window's run, and each row group would cost time for each.
"""

from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from types import MappingProxyType
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from makewhole.compute.frames import HASH, are_empty_lists

_COLUMNS, _VALUES = b"makewhole.columns", b"makewhole.constants"
_SEPARATOR = "\n"
_MOST_KNOWN = 64
NO_CONSTANTS: Mapping[bytes, bytes] = MappingProxyType({})
"""The metadata of a file that has all its columns in its rows."""


class ParquetContent(NamedTuple):
    """Rows as a file holds them, with what stands beside its schema."""

    rows: pl.DataFrame
    metadata: dict[bytes, bytes]


def without_constants(rows: pl.DataFrame) -> ParquetContent:
    """Return the rows without the columns that hold one value, which are in the metadata. Those of the order of the
    rows, `HASH`, stay, and any of a frame without rows."""
    values = constants_of(rows)
    return ParquetContent(rows.drop(values.columns), metadata_of(rows.columns, values))


def constants_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the columns that hold one value in all rows, of which one column at least is none, with this value."""
    constant = [column.name for column in rows if column.name not in HASH and len(rows) and _is_constant(column)]
    return rows.select(constant[: rows.width - 1]).head(1)


def constants_among(rows: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Return those of the values that their columns hold in all of these rows."""
    same = [known.name for known in values if _has_only(rows[known.name], known)]
    return values.select(same)


def metadata_of(columns: Sequence[str], values: pl.DataFrame) -> dict[bytes, bytes]:
    """Return what stands beside the schema of a file of these columns, some of which hold one value each."""
    if not values.width:
        return {}
    content = BytesIO()
    values.write_ipc(content, compat_level=pl.CompatLevel.newest())
    return {_COLUMNS: _SEPARATOR.join(columns).encode(), _VALUES: b64encode(content.getvalue())}


def names_of_columns(schema: pa.Schema) -> list[str]:
    """Return all columns of a file of this schema, those among them that its rows do not have."""
    metadata = schema.metadata or {}
    return metadata[_COLUMNS].decode().split(_SEPARATOR) if _COLUMNS in metadata else schema.names


def columns_to_read(schema: pa.Schema, wanted: Collection[str]) -> list[str]:
    """Return the columns of a file to read for those that are wanted: one at least, which says how many rows there
    are."""
    names = [name for name in schema.names if name in wanted]
    is_of_constants = not names and any(name in wanted for name in names_of_columns(schema))
    return schema.names[:1] if is_of_constants else names


def with_constants(rows: pl.DataFrame, schema: pa.Schema, wanted: Collection[str] | None = None) -> pl.DataFrame:
    """Return rows that were read of a file of this schema, with the `wanted` ones of all its columns, in their order;
    None: with all."""
    names = [name for name in names_of_columns(schema) if wanted is None or name in wanted]
    metadata = schema.metadata or {}
    values = _values(metadata[_VALUES]) if _VALUES in metadata else pl.DataFrame()
    constant = (column.new_from_index(0, len(rows)) for column in values if column.name in names)
    return rows.with_columns(constant).select(names)


@lru_cache(maxsize=_MOST_KNOWN)
def _values(content: bytes) -> pl.DataFrame:
    """Return the values of constant columns, which the files of one snapshot often have in common."""
    return pl.read_ipc(b64decode(content))


def _has_only(column: pl.Series, known: pl.Series) -> bool:
    return _is_constant(column) and column.head(1).equals(known, check_dtypes=True, null_equal=True)


def _is_constant(column: pl.Series) -> bool:
    nulls = column.null_count()
    if nulls or column.dtype.is_nested():
        return nulls == len(column) or are_empty_lists(column)
    if column[0] != column[len(column) // 2] or column[0] != column[-1]:
        return False  # at once, of most that are not
    if column.dtype.is_float():
        return False  # zero has two signs, and NaN is none of its own
    return bool((column == column[0]).all())
