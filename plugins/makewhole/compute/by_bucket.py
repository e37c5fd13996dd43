"""Copies of keys parted by their buckets: put in that order once, column by column, then cut without copying."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from makewhole.compute.keys import bucket_of
from makewhole.native.arrays import ArrowArray

_VIEW = np.dtype("V16")


def by_bucket(frame: pl.DataFrame, buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each bucket that has any, in their order; texts as Arrow's views. `key_hi` tells the bucket."""
    if not len(frame):
        return
    of_rows = frame.select(bucket_of(buckets)).to_series().to_numpy().astype(np.uint16)  # sorted by counting
    order = np.argsort(of_rows, kind="stable")
    ordered = pa.table({name: _ordered(column, order) for name, column in zip(frame.columns, frame, strict=True)})
    start = 0
    for bucket, size in enumerate(np.bincount(of_rows).tolist()):
        if size:
            yield bucket, ordered.slice(start, size)
        start += size


def _ordered(column: pl.Series, order: npt.NDArray[np.intp]) -> ArrowArray:
    if column.null_count() == len(column):
        return column.to_arrow(compat_level=pl.CompatLevel.newest())
    if column.dtype.is_nested():
        return column.gather(order).to_arrow(compat_level=pl.CompatLevel.newest())
    array: ArrowArray = column.to_arrow(compat_level=pl.CompatLevel.newest())
    return _views_ordered(array, order) if array.type == pa.string_view() else array.take(pa.array(order))


def _views_ordered(texts: ArrowArray, order: npt.NDArray[np.intp]) -> ArrowArray:
    """Arrow cannot take from views yet: the views are moved, the texts stay where they are."""
    views = np.frombuffer(texts.buffers()[1], dtype=_VIEW)[texts.offset :][order]
    validity = texts.is_valid().take(pa.array(order)).buffers()[1] if texts.null_count else None
    return pa.Array.from_buffers(texts.type, len(order), [validity, pa.py_buffer(views.data), *texts.buffers()[2:]])
