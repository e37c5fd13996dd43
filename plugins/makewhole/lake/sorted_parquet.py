"""Write Parquet files of rows in key order, and read the rows of some keys: a few keys cost a few row groups."""

from collections.abc import Sequence
from typing import IO, Any, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from makewhole.compute.frames import HASH
from makewhole.lake.constant_columns import with_constants, without_constants
from makewhole.lake.parquet_writer import GrowingParquet, leaf_name
from makewhole.native.arrays import UInt64s

ROWS_OF_A_GROUP = 8192
_NUMBER = "key_hi"  # the first column of the order, whose least and greatest value each row group says
_RANDOM = {"key_lo", "row_hash", "last_row_hash"}
_DELTAS = {"key_hi", "offset", "sequence", "last_offset", "version", "last_version"}
_MOST_SHARE = 0.5  # of the row groups: beyond, reading all of them at once is less work


class SortedParquet(GrowingParquet):
    """A Parquet file of frames whose rows ascend by `key_hi` from the first to the last. A context manager."""

    rows_of_a_group = ROWS_OF_A_GROUP

    def append_all(self, rows: pl.DataFrame) -> None:
        """Write all rows of the file at once: columns that hold one value cost nothing."""
        left, self._metadata = without_constants(rows)
        self.append(left)

    def _writer_of(self, stream: Any, schema: pa.Schema) -> pq.ParquetWriter:
        names = [leaf_name(field) for field in schema]
        return pq.ParquetWriter(
            cast(IO[Any], stream),
            schema,
            compression="none",  # numbers that are packed already
            write_statistics=[_NUMBER],
            use_dictionary=[name for name in names if name not in _RANDOM | _DELTAS],  # type: ignore[arg-type]
            column_encoding={name: "DELTA_BINARY_PACKED" for name in names if name in _DELTAS},
        )


class SortedRows:
    """Reads a file of sorted rows."""

    def __init__(self, file: pq.ParquetFile) -> None:
        self._file = file
        self._least, self._greatest = _bounds(file)

    @property
    def groups(self) -> list[tuple[int, int]]:
        """The least `key_hi` of each row group with its number of rows."""
        groups = range(self._file.num_row_groups)
        return [(int(self._least[at]), self._file.metadata.row_group(at).num_rows) for at in groups]

    def of_keys(self, keys: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of some keys (`HASHES`), in their order."""
        numbers = keys[_NUMBER].unique().sort().to_numpy()
        groups = self._groups_of(numbers)
        if 0 < len(groups) <= self._file.num_row_groups * _MOST_SHARE:
            groups = [at for at in groups if self._has_any(at, numbers)]
        return self._read(groups).join(keys, on=HASH, how="semi", maintain_order="left")

    def between(self, lo: int, hi: int | None) -> pl.DataFrame:
        """Return the rows with `lo <= key_hi < hi`; `hi` None: all from `lo` on."""
        least = np.uint64(2**64 - 1 if hi is None else max(hi - 1, 0))
        groups = [
            at
            for at in range(self._file.num_row_groups)
            if self._greatest[at] >= np.uint64(lo) and self._least[at] <= least
        ]
        is_between = pl.col(_NUMBER) >= pl.lit(lo, dtype=pl.UInt64)
        if hi is not None:
            is_between &= pl.col(_NUMBER) < pl.lit(hi, dtype=pl.UInt64)
        return self._read(groups).filter(is_between)

    def _groups_of(self, numbers: UInt64s) -> list[int]:
        """Return the row groups in which any of these sorted numbers may be."""
        first = np.searchsorted(numbers, self._least, side="left")
        past = np.searchsorted(numbers, self._greatest, side="right")
        return [int(at) for at in np.flatnonzero(first < past)]

    def _has_any(self, group: int, numbers: UInt64s) -> bool:
        """Return whether a row group has any of these sorted numbers."""
        first = np.searchsorted(numbers, self._least[group], side="left")
        past = np.searchsorted(numbers, self._greatest[group], side="right")
        held = self._file.read_row_groups([group], columns=[_NUMBER]).column(0).to_numpy()
        return bool(np.isin(held, numbers[first:past]).any())

    def _read(self, groups: Sequence[int]) -> pl.DataFrame:
        frame = pl.from_arrow(self._file.read_row_groups(list(groups)))
        assert isinstance(frame, pl.DataFrame)
        return with_constants(frame, self._file.schema_arrow)


def _bounds(file: pq.ParquetFile) -> tuple[UInt64s, UInt64s]:
    """Return the least and the greatest number of each row group."""
    bounds = []
    for at in range(file.num_row_groups):
        group = file.metadata.row_group(at)
        columns = (group.column(number) for number in range(group.num_columns))
        known = next(column.statistics for column in columns if column.path_in_schema == _NUMBER)
        # A group without rows has no bounds.
        bounds.append((known.min, known.max) if known is not None and known.has_min_max else (0, 2**64 - 1))
    array = np.array(bounds, dtype=np.uint64).reshape(-1, 2)
    return array[:, 0], array[:, 1]
