"""Read some rows of a Parquet file by marks: a few row groups, or the rows alone where they are all over the file."""

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from makewhole.native.arrays import Bools

_FEW_GROUPS = 0.25
_FEW_ROWS = 0.05
_ROW = "row of the file"


def marked_rows(file: pq.ParquetFile, marks: Bools, read_whole: Callable[[], bytes]) -> Iterator[pl.DataFrame]:
    """Yield the marked rows of a file in their order; nothing where no row is marked. `read_whole` returns the file."""
    edges = np.cumsum([0, *(file.metadata.row_group(at).num_rows for at in range(file.num_row_groups))])
    groups = [at for at in range(file.num_row_groups) if marks[edges[at] : edges[at + 1]].any()]
    is_scattered = len(groups) > file.num_row_groups * _FEW_GROUPS and marks.mean() < _FEW_ROWS
    if groups and is_scattered:
        # Of columns that are texts, only the wanted values are decoded.
        rows = pl.Series(np.flatnonzero(marks), dtype=pl.get_index_type()).implode()
        scanned = pl.scan_parquet(read_whole(), row_index_name=_ROW)
        yield scanned.filter(pl.col(_ROW).is_in(rows)).drop(_ROW).collect()
        return
    for at in groups:
        frame = pl.from_arrow(file.read_row_group(at))
        assert isinstance(frame, pl.DataFrame)
        yield frame.filter(pl.Series(marks[edges[at] : edges[at + 1]]))
