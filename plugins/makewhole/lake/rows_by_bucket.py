"""Keep rows about keys by bucket: a few in memory, many in files of the storage."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from makewhole.compute.buckets import bucket_name, bucket_of, named_bucket, shares_keys
from makewhole.compute.frames import HASH, Schema, empty
from makewhole.lake.storage import Storage

_FEW = 10_000  # rows that travel with the tasks that need them
_ROWS_TOGETHER = 500_000  # in memory until they are written, a file for each bucket


@dataclass(frozen=True, kw_only=True)
class BucketRows:
    """The rows of some buckets, in memory (`few`, which has the columns) or in `files` of the storage."""

    few: pl.DataFrame
    files: tuple[str, ...] = ()
    number: int = 0

    @classmethod
    def none(cls, schema: Schema) -> "BucketRows":
        """Return no rows, of these columns."""
        return cls(few=empty(schema))

    @classmethod
    def of(cls, rows: pl.DataFrame) -> "BucketRows":
        """Return rows that stay in memory."""
        return cls(few=rows, number=len(rows))

    def read(self, storage: Storage) -> pl.DataFrame:
        """Return the rows in the order in which they were given.

        Raises:
            CorruptionError: a file does not exist.
        """
        stored = storage.read_parquet(self.files, self.few.columns)
        return self.few if stored is None else stored

    def read_hashes(self, storage: Storage) -> pl.DataFrame:
        """Return the key hashes of the rows.

        Raises:
            CorruptionError: a file does not exist.
        """
        stored = storage.read_parquet(self.files, list(HASH))
        return self.few.select(HASH) if stored is None else stored

    def read_keys(self, storage: Storage, keys: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of some keys (hashes); only as many as are read at once are in memory besides.

        Raises:
            CorruptionError: a file does not exist.
        """
        stored = storage.parquet_batches(self.files, self.few.columns)
        return pl.concat([part.join(keys, on=HASH, how="semi") for part in (self.few, *stored)])


@dataclass(frozen=True, kw_only=True)
class RowsByBucket:
    """Rows about keys, whose columns include both halves of the key hash, by the name of their bucket, one of so many
    `buckets`."""

    parts: Mapping[str, BucketRows]
    columns: pl.DataFrame
    buckets: int

    @property
    def number(self) -> int:
        """Number of rows in all buckets."""
        return sum(part.number for part in self.parts.values())

    def in_bucket(self, bucket: str) -> BucketRows:
        """Return the rows of a bucket; of a bucket of another number all that may be in it, and others."""
        if named_bucket(bucket)[1] == self.buckets:
            return self.parts.get(bucket, BucketRows(few=self.columns))
        return self._together([part for name, part in self.parts.items() if shares_keys(name, bucket)])

    def whole(self) -> BucketRows:
        """Return the rows of all buckets."""
        return self._together(self.parts.values())

    def _together(self, parts: Iterable[BucketRows]) -> BucketRows:
        listed = list(parts)
        return BucketRows(
            few=pl.concat([self.columns, *(part.few for part in listed)]),
            files=tuple(path for part in listed for path in part.files),
            number=sum(part.number for part in listed),
        )


def spread_rows(
    storage: Storage, folder: str, frames: Iterable[pl.DataFrame], schema: Schema, buckets: int
) -> RowsByBucket:
    """Spread rows over buckets. Few stay in memory; of more, each bucket has files of its own in the folder.

    `frames` have the columns of `schema`; no more of them are in memory than are written together.
    """
    columns, files, rows = empty(schema), dict[str, list[str]](), dict[str, int]()
    for together in _gathered(columns, frames):
        parts = _by_bucket(together, buckets)
        if not files and len(together) <= _FEW:
            few = {name: BucketRows.of(part) for name, part in parts.items()}
            return RowsByBucket(parts=few, columns=columns, buckets=buckets)
        for name, part in parts.items():
            files.setdefault(name, []).append(storage.write_parquet(folder, part))
            rows[name] = rows.get(name, 0) + len(part)
    stored = {
        name: BucketRows(few=columns, files=tuple(paths), number=rows[name]) for name, paths in sorted(files.items())
    }
    return RowsByBucket(parts=stored, columns=columns, buckets=buckets)


def _gathered(columns: pl.DataFrame, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield the rows of frames together, so many at a time."""
    gathered, number = [columns], 0
    for frame in frames:
        gathered.append(frame)
        number += len(frame)
        if number >= _ROWS_TOGETHER:
            yield pl.concat(gathered)
            gathered, number = [columns], 0
    if number:
        yield pl.concat(gathered)


def _by_bucket(rows: pl.DataFrame, buckets: int) -> dict[str, pl.DataFrame]:
    parts = rows.with_columns(bucket_of(buckets)).partition_by(
        "bucket", as_dict=True, include_key=False, maintain_order=True
    )
    return {bucket_name(number, buckets): part for (number,), part in sorted(parts.items())}
