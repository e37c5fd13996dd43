"""A Parquet file that grows by frames: no more of it is in memory than the frame that is being written."""

from types import TracebackType
from typing import Any, Self

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

# How a column is written follows from what it holds; a dictionary of values that differ is work and space for nothing.
_HASHES = {"key_hi", "key_lo", "row_hash"}
_HARDLY_REPEATED = {"key", "key_hi", "key_lo", "row_hash", "place"}
_ASCENDING = {"offset", "sequence", "time"}


class GrowingParquet:
    """Frames of one schema, each a row group. A context manager; the file is whole once it is closed."""

    def __init__(self, path: str, system: fs.FileSystem, full: str) -> None:
        """`path` is what it is called in its storage, `full` where it is in the file system."""
        self.path = path
        self._system = system
        self._full = full
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, frame: pl.DataFrame) -> None:
        """Write the rows of a frame."""
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        if self._writer is None:
            self._writer = self._opened(table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Finish the file. Safe to call twice."""
        if self._writer is not None:
            self._writer.close()

    def _opened(self, schema: pa.Schema) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            self._full,
            schema,
            filesystem=self._system,
            compression={_leaf(field): "none" if field.name in _HASHES else "zstd" for field in schema},
            write_statistics=False,  # nothing is looked for by its range
            use_dictionary=[name for name in schema.names if name not in _HARDLY_REPEATED | _ASCENDING],  # type: ignore[arg-type]
            column_encoding={name: "DELTA_BINARY_PACKED" for name in schema.names if name in _ASCENDING},
        )


def _leaf(field: "pa.Field[Any]") -> str:
    """What Parquet calls the values of a column."""
    return f"{field.name}.list.element" if pa.types.is_nested(field.type) else field.name
