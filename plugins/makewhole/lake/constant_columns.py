"""Keep the columns that hold one value, in every row of a file, out of its rows: their value stands beside the schema.

Of the columns of a key index most hold one value in a window's run, and each row group would cost time for each.
"""

from base64 import b64decode, b64encode
from collections.abc import Collection
from io import BytesIO
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from makewhole.compute.frames import HASH, are_empty_lists

_COLUMNS, _VALUES = b"makewhole.columns", b"makewhole.constants"
_SEPARATOR = "\n"


class ParquetContent(NamedTuple):
    """Rows as a file holds them, with what stands beside its schema."""

    rows: pl.DataFrame
    metadata: dict[bytes, bytes]


def without_constants(rows: pl.DataFrame) -> ParquetContent:
    """Return the rows without the columns that hold one value, which are in the metadata. Those of the order of the
    rows, `HASH`, stay, and any of a frame without rows."""
    constant = [column.name for column in rows if column.name not in HASH and len(rows) and _is_constant(column)]
    if not constant or len(constant) == rows.width:
        return ParquetContent(rows, {})
    values = BytesIO()
    rows.select(constant).head(1).write_ipc(values, compat_level=pl.CompatLevel.newest())
    metadata = {_COLUMNS: _SEPARATOR.join(rows.columns).encode(), _VALUES: b64encode(values.getvalue())}
    return ParquetContent(rows.drop(constant), metadata)


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
    values = pl.read_ipc(b64decode(metadata[_VALUES])) if _VALUES in metadata else pl.DataFrame()
    constant = (column.new_from_index(0, len(rows)) for column in values if column.name in names)
    return rows.with_columns(constant).select(names)


def _is_constant(column: pl.Series) -> bool:
    nulls = column.null_count()
    if nulls or column.dtype.is_nested():
        return nulls == len(column) or are_empty_lists(column)
    if column[0] != column[len(column) // 2] or column[0] != column[-1]:
        return False  # at once, of most that are not
    if column.dtype.is_float():
        return False  # zero has two signs, and NaN is none of its own
    return bool((column == column[0]).all())
