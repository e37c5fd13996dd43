"""Write a Parquet file frame by frame: only the frame that is being written is in memory.

The SHA-256 of the file is taken of the bytes on their way to the storage, so that it says what was written there.
"""

import hashlib
from collections.abc import Collection, Mapping
from typing import IO, Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from makewhole.lake.constant_columns import NO_CONSTANTS
from makewhole.model.closing import ClosingContext

# The encoding of a column follows its content; a dictionary of values that differ costs work and space for nothing.
_HASHES = {"key_hi", "key_lo", "row_hash"}
_RARELY_REPEATED = {"key", "place"}
_VALUES_LOOKED_AT = 256
_SEARCHED = {"time"}
_ASCENDING_OR_SAME = {
    "offset",
    "sequence",
    "time",
    "partition",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "place_number",
}


class _HashedStream:
    """An output stream that hashes what passes; a file for pyarrow."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()
        self.closed = False

    def write(self, content: bytes) -> int:
        """Write on and hash."""
        self.digest.update(content)
        self._stream.write(content)
        return len(content)

    def flush(self) -> None:
        """Write on what is buffered."""
        self._stream.flush()

    def close(self) -> None:
        """Close the stream behind. Safe to call twice."""
        self.closed = True
        self._stream.close()


class GrowingParquet(ClosingContext):
    """A Parquet file of frames of one schema, each a row group, or several of `rows_of_a_group`. A context manager; the
    file is whole once closed."""

    rows_of_a_group: int | None = None

    def __init__(
        self,
        path: str,
        system: fs.FileSystem,
        full: str,
        never_null: Collection[str] = (),
        metadata: Mapping[bytes, bytes] = NO_CONSTANTS,
    ) -> None:
        """`path` is the file's path in its storage, `full` its path in the file system. Columns that are never null are
        not checked for nulls value by value. `metadata` stand beside the schema."""
        self.path = path
        self._system = system
        self._full = full
        self._never_null = never_null
        self._metadata = metadata
        self._with_dictionary: list[str] = []
        self._writer: pq.ParquetWriter | None = None
        self._stream: _HashedStream | None = None

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file in hex, once it is closed."""
        return (hashlib.sha256() if self._stream is None else self._stream.digest).hexdigest()

    def append(self, rows: pl.DataFrame | pa.Table) -> None:
        """Write the rows, none of which shares a row group with those of another call."""
        table = rows if isinstance(rows, pa.Table) else rows.to_arrow(compat_level=pl.CompatLevel.newest())
        fields = [field.with_nullable(field.name not in self._never_null) for field in table.schema]
        schema = pa.schema(fields).with_metadata(dict(self._metadata))
        if self._writer is None:
            self._with_dictionary = [name for name in table.column_names if _has_dictionary(name, table.column(name))]
            self._writer = self._open(schema)
        self._writer.write_table(pa.Table.from_arrays(table.columns, schema=schema), self.rows_of_a_group)

    def close(self) -> None:
        """Finish the file. Safe to call twice."""
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            if self._stream is not None:
                self._stream.close()

    def _open(self, schema: pa.Schema) -> pq.ParquetWriter:
        self._stream = _HashedStream(self._system.open_output_stream(self._full, compression=None))
        return self._writer_of(self._stream, schema)

    def _writer_of(self, stream: Any, schema: pa.Schema) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            cast(IO[Any], stream),
            schema,
            compression={leaf_name(field): "none" if field.name in _HASHES else "snappy" for field in schema},
            write_statistics=[name for name in schema.names if name in _SEARCHED] or False,
            use_dictionary=self._with_dictionary,  # type: ignore[arg-type]
            column_encoding={name: "DELTA_BINARY_PACKED" for name in schema.names if name in _ASCENDING_OR_SAME},
        )


class PackedParquet(GrowingParquet):
    """A Parquet file for people's own tools: packed tightly, with the statistics by which a reader skips row groups."""

    def _writer_of(self, stream: Any, schema: pa.Schema) -> pq.ParquetWriter:
        return pq.ParquetWriter(cast(IO[Any], stream), schema, compression="zstd")


def leaf_name(field: "pa.Field[Any]") -> str:
    """Return the name that Parquet gives to the values of a column."""
    return f"{field.name}.list.element" if pa.types.is_nested(field.type) else field.name


def _has_dictionary(name: str, values: "pa.ChunkedArray[Any]") -> bool:
    """Return whether a dictionary saves space, by the first values: of texts that repeat, and of hashes that are all
    the same, as those of rows are where nothing is compared. Repeated numbers are small enough without."""
    if values.type != pa.string_view() and name not in _HASHES:
        return False
    first = values.slice(0, _VALUES_LOOKED_AT).to_pylist()
    different = len(set(first))
    if name in _HASHES:
        return different == 1 < len(first)
    return name not in _RARELY_REPEATED and different <= len(first) // 2
