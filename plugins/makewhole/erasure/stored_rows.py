"""Find the rows of a key in the Parquet files of a pipeline, and write those files again without them."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from makewhole.compute.buckets import bucket_name, shares_keys
from makewhole.compute.frames import HASH, HASHES
from makewhole.compute.indexed_keys.filters import build_filter
from makewhole.journal.retention.erasures import ErasedKey
from makewhole.key_index.files import filter_path, named_filter
from makewhole.lake.storage import Storage, StoredFile
from makewhole.model.errors import CorruptionError

_PARQUET = ".parquet"
_OF_POINT = re.compile(r"[^/]+/(?:window=[0-9]+/revision=[0-9]+|index)/(?P<point>[^/-]+)[^/]*/")
"""Path of a file of a point, or of the hop that leads from it."""
_FINEST = 65_536
_BUCKET = re.compile(r"/bucket=(?P<name>[0-9]+of[0-9]+)/")
_IN_INDEX = re.compile(r"[^/]+/index/")
_TEXTS = ("key", "business_key")
_OF_CHOICES = {"key", "partition", "offset"}
"""Columns of what a killed attempt to publish a window leaves."""


@dataclass(frozen=True, kw_only=True)
class RowsOfKey:
    """A file that has rows of a key: its path, and how many. `offsets`: of records, (partition, offset)."""

    path: str
    rows: int
    offsets: frozenset[tuple[int, int]] = frozenset()

    @property
    def is_index(self) -> bool:
        """Whether it is of the key index: sorted, with a filter that knows its keys."""
        return _IN_INDEX.match(self.path) is not None


@dataclass(frozen=True, kw_only=True)
class SearchedFiles:
    """Result of a search for a key: the files that have rows of it, and why others could not be read, by path."""

    rows: tuple[RowsOfKey, ...]
    unreadable: Mapping[str, CorruptionError]


def is_spared(path: str, spares: Collection[str]) -> bool:
    """Return whether a file is of one of some points, or of a hop from it."""
    matched = _OF_POINT.match(path)
    return matched is not None and matched["point"] in spares


def search_files(storage: Storage, files: Iterable[StoredFile], key: ErasedKey) -> SearchedFiles:
    """Find the files that have rows of a key, by its hash, or by its text where they have no hash."""
    own_bucket = bucket_name(int(key.hash[:16], 16), _FINEST)
    rows, unreadable = list[RowsOfKey](), dict[str, CorruptionError]()
    for file in files:
        bucket = _BUCKET.search(file.path)
        if not file.path.endswith(_PARQUET) or (bucket is not None and not shares_keys(bucket["name"], own_bucket)):
            continue
        if is_spared(file.path, key.spares):
            continue
        try:
            of_file = _rows_in(storage, file.path, key)
        except CorruptionError as error:
            unreadable[file.path] = error
        else:
            rows += [of_file] if of_file.rows else []
    return SearchedFiles(rows=tuple(rows), unreadable=unreadable)


def _rows_in(storage: Storage, path: str, key: ErasedKey) -> RowsOfKey:
    columns = storage.columns(path)
    where = _is_of_key(columns, key)
    if where is None:
        return RowsOfKey(path=path, rows=0)
    placed = "business_key" in columns and "place" in columns
    names = (*HASH, "key_hash", *_TEXTS, "partition", "offset", *(["place"] if placed else []))
    wanted = [name for name in names if name in columns]
    rows, offsets = 0, set[tuple[int, int]]()
    for part in storage.parquet_batches([path], wanted, 1 << 16):
        own = part.filter(where)
        rows += len(own)
        if {"partition", "offset"} <= set(wanted):
            offsets.update(own.select("partition", "offset").rows())
        elif placed:
            offsets.update(_positions(own["place"]))
    return RowsOfKey(path=path, rows=rows, offsets=frozenset(offsets))


def _positions(places: pl.Series) -> list[tuple[int, int]]:
    """Return the positions of records that could not be read and are known to be of the key; a row of a table has
    none."""
    parts = places.str.extract_groups(r"^([0-9]+):([0-9]+)$").struct.unnest().drop_nulls()
    return parts.cast(pl.Int64).rows()


def _is_of_key(columns: dict[str, bool], key: ErasedKey) -> pl.Expr | None:
    """Select the rows of a key in a file of these columns; None: it has no keys."""
    high, low = (int(half, 16) for half in (key.hash[:16], key.hash[16:]))
    conditions = []
    if set(HASH) <= set(columns):
        conditions.append((pl.col("key_hi") == pl.lit(high, pl.UInt64)) & (pl.col("key_lo") == pl.lit(low, pl.UInt64)))
    elif "key_hash" in columns:
        conditions.append(pl.col("key_hash") == key.hash)
    elif "key" in columns and ({"hop", "why"} & set(columns) or not set(columns) - _OF_CHOICES):
        conditions.append(pl.col("key") == key.text)
    if "business_key" in columns:
        conditions.append(pl.col("business_key") == key.text)
    return pl.any_horizontal(*(condition.fill_null(False) for condition in conditions)) if conditions else None


@dataclass(frozen=True, kw_only=True)
class WrittenInstead:
    """A file that was written beside another one, without the rows of a key, and is not in its place yet."""

    path: str
    instead_of: str
    sha256: str


def write_without(storage: Storage, rows: RowsOfKey, key: ErasedKey) -> WrittenInstead:
    """Write a file again without the rows of a key, beside it."""
    columns = storage.columns(rows.path)
    where = _is_of_key(columns, key)
    assert where is not None
    never_null = [name for name, may_be_null in columns.items() if not may_be_null]
    groups = storage.row_groups(rows.path)
    if rows.is_index:
        groups = iter([pl.concat(groups)])
    with storage.parquet_instead(rows.path, never_null, is_sorted=rows.is_index) as instead:
        empty: pl.DataFrame | None = None
        has_rows = False
        for group in groups:
            left = group.filter(~where)
            if len(left):
                instead.append(left)
                has_rows = True
            empty = left.clear()
        if not has_rows and empty is not None:
            instead.append(empty)
    return WrittenInstead(path=instead.path, instead_of=rows.path, sha256=instead.sha256)


def renew_filter(storage: Storage, rows: RowsOfKey) -> None:
    """Make the filter beside a file know its keys of now; that of a snapshot's file is made when it is asked for."""
    beside = filter_path(rows.path)
    if not rows.is_index:
        storage.remove(beside)
        return
    halves = storage.read_parquet([rows.path], list(HASH))
    keys = pl.DataFrame(schema=HASHES) if halves is None else halves
    content = build_filter(*(np.asarray(keys[name].to_numpy(), dtype=np.uint64) for name in HASH))
    storage.write_bytes(beside, named_filter(rows.path, content))
