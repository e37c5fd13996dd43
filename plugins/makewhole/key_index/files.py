"""Write the files of the key index, and ask them for keys: first the filter beside each file, then just those rows."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from makewhole.compute.frames import HASH, HASHES, NUMBERS, empty
from makewhole.compute.indexed_keys.filters import build_filter, maybe_in
from makewhole.compute.indexed_keys.former_readings import IS_RENUMBERED
from makewhole.compute.indexed_keys.stored_runs import (
    STORED,
    in_order_of_windows,
    run_of,
    with_whole_numbers,
)
from makewhole.compute.versions import UNREADABLE, VERSION, is_moment, joined_versions
from makewhole.lake.sorted_parquet import SortedRows
from makewhole.lake.storage import Storage
from makewhole.model.closing import ClosingContext
from makewhole.model.errors import CorruptionError
from makewhole.native.arrays import Bools, UInt64s
from makewhole.native.sort_hashes import sort_hashes

logger = logging.getLogger(__name__)
_ROWS_AT_ONCE = 500_000


@dataclass(frozen=True, kw_only=True)
class IndexFile:
    """A file of the key index, and the windows whose rows of it count.

    `numbered_by`: the field that the file of now reads versions from, as a number; None: that does not matter."""

    path: str
    windows: tuple[int, ...]
    numbered_by: int | None = None


class IndexFileWriter(ClosingContext):
    """A file of the index with the filter of its keys, for rows (`STORED`) whose keys ascend from part to part. A
    context manager; both are whole once it is closed."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage, self._file = storage, storage.sorted_parquet(folder)
        self._halves: list[pl.DataFrame] = [empty(HASHES)]
        self.path, self.rows = self._file.path, 0

    def append(self, part: pl.DataFrame, *, is_whole: bool = False) -> None:
        """Write rows; `is_whole`: all of the file."""
        write = self._file.append_all if is_whole else self._file.append
        write(part)
        self._halves.append(part.select(HASH).filter(_differs_from_before()))
        self.rows += len(part)

    def close(self) -> None:
        """Finish the file, and write the filter; nothing of a file without any part."""
        self._file.close()
        if len(self._halves) > 1:
            keys = pl.concat(self._halves)
            content = build_filter(*(keys[name].to_numpy() for name in HASH))
            self._storage.write_bytes(filter_path(self.path), named_filter(self.path, content))


def write_index_file(storage: Storage, folder: str, parts: Sequence[pl.DataFrame]) -> str:
    """Write rows (`STORED`), whose keys ascend from part to part, with the filter of their keys; return the path."""
    with IndexFileWriter(storage, folder) as file:
        for part in parts:
            file.append(part, is_whole=len(parts) == 1)
    return file.path


def filter_path(path: str) -> str:
    """Return the path of the filter beside a file."""
    return f"{path.removesuffix('.parquet')}.filter"


def named_filter(path: str, content: bytes) -> bytes:
    """Return the content of the filter of a file: its name, and the filter itself."""
    return _name(path) + content


def keys_by_filter(storage: Storage, path: str, keys: pl.DataFrame) -> pl.DataFrame | None:
    """Return those of some keys, in the order of their hashes, that a file may hold by the filter beside it; None: it
    has none. One that is left out is not in the file for certain."""
    content = storage.read_if_exists(filter_path(path))
    maybe = None if content is None else _asked(content, path, *(keys[half].to_numpy() for half in HASH))
    return None if maybe is None else keys.filter(pl.Series(maybe, dtype=pl.Boolean))


def rows_of_keys(storage: Storage, files: Sequence[IndexFile], keys: pl.DataFrame) -> pl.DataFrame:
    """Return what the files know of some keys (`HASHES`), as a run (see `makewhole.compute.indexed_keys.key_runs`),
    window by window.

    Raises:
        CorruptionError: a file of the index does not exist.
    """
    marked = pl.DataFrame(schema={**STORED, IS_RENUMBERED: pl.Boolean})
    parts = [marked, *_rows_by_file(storage, files, keys.select(HASH).unique())]
    return run_of(in_order_of_windows(pl.concat(parts)))


def known_keys(storage: Storage, files: Sequence[IndexFile], keys: pl.DataFrame) -> pl.DataFrame:
    """Return those of some keys (`HASHES`) that any of the files has, each once.

    Raises:
        CorruptionError: a file of the index does not exist.
    """
    parts = [rows.select(HASH) for _, rows in _hits_by_file(storage, files, keys.select(HASH).unique())]
    return pl.concat([empty(HASHES), *parts]).unique()


def highest_versions(storage: Storage, files: Sequence[IndexFile], keys: pl.DataFrame) -> pl.DataFrame:
    """Return the highest number of a version (`NUMBERS`) that the files have of each of some keys (`HASHES`); those of
    which they have none are not in it, nor those of another field than the file names now. Where numbers and moments
    are among them, which are not ordered, or a record without a version, which may be the latest, it is none.

    Raises:
        CorruptionError: a file of the index does not exist.
    """
    numbers = [joined_versions(name, f"{name}_rest") for name in ("version", "last_version")]
    is_tombstone = pl.coalesce("last_is_tombstone", "is_tombstone").fill_null(False)
    of_latest = pl.when(pl.col("is_latest")).then(numbers[0]).otherwise(numbers[1])
    is_bare = (of_latest.is_null() & ~is_tombstone).alias("is_bare")
    parts = [empty({**NUMBERS, "is_bare": pl.Boolean})]
    for rows in _rows_by_file(storage, files, keys.select(HASH).unique()):
        whole = with_whole_numbers(rows.filter(~pl.col(IS_RENUMBERED)))
        parts += [whole.select(*HASH, number.alias("version"), is_bare) for number in numbers]
    is_of_two_kinds = is_moment().any() & ~is_moment().all()
    unordered = pl.lit(UNREADABLE, dtype=VERSION)
    highest = pl.when(is_of_two_kinds | pl.col("is_bare").any()).then(unordered).otherwise(pl.col("version").max())
    of_key = pl.when(pl.col("version").is_not_null().any()).then(highest).alias("version")
    return pl.concat(parts).group_by(HASH).agg(of_key).drop_nulls("version")


def maybe_known(storage: Storage, files: Sequence[IndexFile], keys: pl.DataFrame) -> Bools:
    """Return for each key (`HASHES`) whether any of the files may know it, by their filters alone. False is certain."""
    flags = np.zeros(len(keys), dtype=np.bool_)
    if len(keys) and files:
        high, order = sort_hashes(keys["key_hi"].to_numpy())
        low = keys["key_lo"].to_numpy()[order]
        for file in files:
            flags |= _maybe_in(storage, file, high, low)
        flags[order] = flags.copy()
    return flags


def rows_of_file(file: IndexFile, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that were read from a file, without windows that do not count."""
    return rows.filter(pl.col("window").is_in(file.windows)).select(*STORED)


def rows_in_key_order(storage: Storage, files: Sequence[IndexFile]) -> Iterator[pl.DataFrame]:
    """Yield the rows that files have of the windows that count (`STORED`), in key order; some row groups of each are in
    memory at once.

    Raises:
        CorruptionError: a file of the index does not exist.
    """
    if not files:
        return
    readers = [storage.sorted_rows(file.path) for file in files]
    cuts = _cuts(readers)
    for lo, hi in zip(cuts, [*cuts[1:], None], strict=True):
        rows = (rows_of_file(file, reader.between(lo, hi)) for file, reader in zip(files, readers, strict=True))
        yield pl.concat(rows).sort(*HASH, "window", maintain_order=True)


def _rows_by_file(storage: Storage, files: Sequence[IndexFile], keys: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows (`STORED`) of the keys, with `IS_RENUMBERED`."""
    for file, rows in _hits_by_file(storage, files, keys):
        yield rows_of_file(file, rows).with_columns(_is_renumbered(file).alias(IS_RENUMBERED))


def _is_renumbered(file: IndexFile) -> pl.Expr:
    if file.numbered_by is None:
        return pl.lit(False)
    has_version = pl.any_horizontal(pl.col("version", "last_version").is_not_null())
    return ((pl.col("numbered_by") != pl.lit(file.numbered_by, dtype=pl.UInt64)) & has_version).fill_null(False)


def _hits_by_file(
    storage: Storage, files: Sequence[IndexFile], keys: pl.DataFrame
) -> Iterator[tuple[IndexFile, pl.DataFrame]]:
    """Yield the rows of the keys as each file has them; nothing of a file whose filter knows none."""
    keys = keys.sort(HASH)
    high, low = (keys[half].to_numpy() for half in HASH)
    for file in files:
        hits = keys.filter(pl.Series(_maybe_in(storage, file, high, low), dtype=pl.Boolean))
        if len(hits):
            yield file, storage.sorted_rows(file.path).of_keys(hits)


def _maybe_in(storage: Storage, file: IndexFile, key_hi: UInt64s, key_lo: UInt64s) -> Bools:
    """Ask the filter beside a file for keys in the order of their hashes. Where there is none that belongs to it, every
    key may be in it."""
    content = storage.read_if_exists(filter_path(file.path))
    maybe = None if content is None else _asked(content, file.path, key_hi, key_lo)
    return np.ones(len(key_hi), dtype=np.bool_) if maybe is None else maybe


def _asked(content: bytes, path: str, key_hi: UInt64s, key_lo: UInt64s) -> Bools | None:
    """Ask the filter of a file; None: it is of another one, or damaged."""
    name = _name(path)
    try:
        if not content.startswith(name):
            raise CorruptionError("it is the filter of another file")
        return maybe_in(memoryview(content)[len(name) :], key_hi, key_lo)
    except CorruptionError as error:
        logger.warning("the whole of %s is read instead of its filter: %s", path, error)
        return None


def _differs_from_before() -> pl.Expr:
    """Select the first row of each key among rows in key order."""
    is_same = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in HASH)
    return ~is_same.fill_null(False)


def _name(path: str) -> bytes:
    """Return the line with which the filter of a file begins."""
    return path.rsplit("/", 1)[1].encode() + b"\n"


def _cuts(readers: Sequence[SortedRows]) -> list[int]:
    """Return numbers (`key_hi`) that cut the rows of all readers into parts of about `_ROWS_AT_ONCE`, the least first:
    all rows of a key are in one part."""
    cuts, rows = [0], 0
    for first, number in sorted(group for reader in readers for group in reader.groups):
        if rows + number > _ROWS_AT_ONCE and first > cuts[-1]:
            cuts.append(first)
            rows = 0
        rows += number
    return cuts
