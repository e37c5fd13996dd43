"""Name buckets, find the files of a bucket, and split a frame of copies by bucket.

A bucket is what the low bits of `key_hi` say, and the number of buckets is a power of two: so a bucket of few is a
union of buckets of many, and files that were written with different numbers fit each other.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from makewhole.compute.frames import are_empty_lists
from makewhole.native.arrays import ArrowArray

_VIEW = np.dtype("V16")


FINEST = 65_536
"""A number of buckets at least as great as any other: the bucket of a single key."""
_MOST = 256  # a task writes to a file of each bucket at once
_ROWS_OF_A_BUCKET = 1_000_000
_FEW_ROWS = 5_000  # a bucket takes as long as some thousand rows in it


def number_of_buckets(rows: int) -> int:
    """Return the number of buckets for so many rows: the power of two with which a bucket holds a million or less, but
    not more than `_MOST`; one for few rows, and for others two at least, which keep two cores busy."""
    wanted = max(1 if rows <= _FEW_ROWS else 2, -(-rows // _ROWS_OF_A_BUCKET))
    return min(_MOST, 1 << (wanted - 1).bit_length())


def bucket_of(buckets: int) -> pl.Expr:
    """Return the bucket of each row: `key_hi` modulo the number of buckets."""
    return (pl.col("key_hi") % buckets).cast(pl.Int32).alias("bucket")


def bucket_name(high: int, buckets: int) -> str:
    """Return the name of the bucket of a key, by the upper half of its hash; of a bucket, by its number."""
    return f"{high % buckets:0{max(2, len(str(buckets - 1)))}d}of{buckets}"


@lru_cache(maxsize=4096)
def named_bucket(name: str) -> tuple[int, int]:
    """Return the number of a bucket, and of how many it is one."""
    number, _, buckets = name.partition("of")
    return int(number), int(buckets)


def buckets_of(names: Iterable[str]) -> int:
    """Return the least number of buckets that any of these names says; without names, that of `FINEST`."""
    return min((named_bucket(name)[1] for name in names), default=FINEST)


def shares_keys(name: str, other: str) -> bool:
    """Return whether a key can be in both of two buckets, of whatever numbers."""
    (number, buckets), (other_number, other_buckets) = named_bucket(name), named_bucket(other)
    fewer = min(buckets, other_buckets)
    return number % fewer == other_number % fewer


def files_of_bucket(by_bucket: Mapping[str, Sequence[str]], bucket: str) -> tuple[str, ...]:
    """Return the files that hold the keys of a bucket. Where they are of fewer buckets, they hold others, too."""
    return tuple(path for name, paths in by_bucket.items() if shares_keys(name, bucket) for path in paths)


def names_within(name: str, buckets: int) -> Iterator[str]:
    """Yield the names of the buckets, of so many, that share keys with a bucket of another number."""
    number, named = named_bucket(name)
    for at in range(number % min(named, buckets), buckets, min(named, buckets)):
        yield bucket_name(at, buckets)


def is_hash_in_bucket(high: int, bucket: str) -> bool:
    """Return whether a key is in a bucket, by the upper half of its hash, or the low sixteen bits of that."""
    number, buckets = named_bucket(bucket)
    return high % buckets == number


def is_in_bucket(bucket: str) -> pl.Expr:
    """Select the rows of a bucket."""
    number, buckets = named_bucket(bucket)
    return pl.col("key_hi") % buckets == number


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
    if column.null_count() == len(column) or are_empty_lists(column):
        return column.to_arrow(compat_level=pl.CompatLevel.newest())
    if column.dtype.is_nested():
        return column.gather(order).to_arrow(compat_level=pl.CompatLevel.newest())
    array: ArrowArray = column.to_arrow(compat_level=pl.CompatLevel.newest())
    return _take_views(array, order) if array.type == pa.string_view() else array.take(pa.array(order))


def _take_views(texts: ArrowArray, order: npt.NDArray[np.intp]) -> ArrowArray:
    """Take from a column of views, which Arrow itself cannot: move the 16-byte views and leave the texts in place."""
    views = np.frombuffer(texts.buffers()[1], dtype=_VIEW)[texts.offset :][order]
    validity = texts.is_valid().take(pa.array(order)).buffers()[1] if texts.null_count else None
    return pa.Array.from_buffers(texts.type, len(order), [validity, pa.py_buffer(views.data), *texts.buffers()[2:]])
