"""Split a frame of copies by bucket: sort it by bucket once, column by column, then slice it without copying."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from makewhole.native.arrays import ArrowArray

_VIEW = np.dtype("V16")


def bucket_of(buckets: int) -> pl.Expr:
    """Return the bucket of each row: `key_hi` modulo the pipeline's number of buckets."""
    return (pl.col("key_hi") % buckets).cast(pl.Int32).alias("bucket")


def bucket_name(high: int, buckets: int) -> str:
    """Return the name of the bucket of a key, by the upper half of its hash."""
    return f"{high % buckets:02d}"


def split_by_bucket(frame: pl.DataFrame, buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield each bucket that has rows, ascending, with its rows in their order; texts as Arrow's views."""
    if not len(frame):
        return
    # As 16-bit integers, which numpy sorts in linear time.
    bucket_numbers = frame.select(bucket_of(buckets)).to_series().to_numpy().astype(np.uint16)
    order = np.argsort(bucket_numbers, kind="stable")
    ordered = pa.table({name: _take(column, order) for name, column in zip(frame.columns, frame, strict=True)})
    start = 0
    for bucket, size in enumerate(np.bincount(bucket_numbers).tolist()):
        if size:
            yield bucket, ordered.slice(start, size)
        start += size


def _take(column: pl.Series, order: npt.NDArray[np.intp]) -> ArrowArray:
    if column.null_count() == len(column) or _are_empty_lists(column):
        return column.to_arrow(compat_level=pl.CompatLevel.newest())
    if column.dtype.is_nested():
        return column.gather(order).to_arrow(compat_level=pl.CompatLevel.newest())
    array: ArrowArray = column.to_arrow(compat_level=pl.CompatLevel.newest())
    return _take_views(array, order) if array.type == pa.string_view() else array.take(pa.array(order))


def _are_empty_lists(column: pl.Series) -> bool:
    """Tell whether every value is a list without elements, as where no hop has a filter."""
    return column.dtype == pl.List and not column.has_nulls() and column.list.len().sum() == 0


def _take_views(texts: ArrowArray, order: npt.NDArray[np.intp]) -> ArrowArray:
    """Take from a column of views, which Arrow itself cannot: move the 16-byte views and leave the texts in place."""
    views = np.frombuffer(texts.buffers()[1], dtype=_VIEW)[texts.offset :][order]
    validity = texts.is_valid().take(pa.array(order)).buffers()[1] if texts.null_count else None
    return pa.Array.from_buffers(texts.type, len(order), [validity, pa.py_buffer(views.data), *texts.buffers()[2:]])
