"""Keep the columns that hold one value, in every row of a file, out of its rows: their value stands beside the schema.

Of the columns of a key index most hold one value in a window's run, and each row group would cost time for each.
"""

from base64 import b64decode, b64encode
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


def with_constants(rows: pl.DataFrame, schema: pa.Schema) -> pl.DataFrame:
    """Return rows of a file of this schema with all their columns, in their order."""
    metadata = schema.metadata or {}
    if _VALUES not in metadata:
        return rows
    values = pl.read_ipc(b64decode(metadata[_VALUES]))
    return rows.with_columns(column.new_from_index(0, len(rows)) for column in values).select(
        metadata[_COLUMNS].decode().split(_SEPARATOR)
    )


def _is_constant(column: pl.Series) -> bool:
    nulls = column.null_count()
    if nulls or column.dtype.is_nested():
        return nulls == len(column) or are_empty_lists(column)
    if column[0] != column[len(column) // 2] or column[0] != column[-1]:
        return False  # at once, of most that are not
    if column.dtype.is_float():
        return False  # zero has two signs, and NaN is none of its own
    return bool((column == column[0]).all())
