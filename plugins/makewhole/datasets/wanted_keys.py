"""Find the rows of many keys: by numbers where keys are positions in a log, by the hashes of their texts otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.keys import key_of_numbers, with_hash
from makewhole.datasets.nested_columns import column_at
from makewhole.datasets.row_keys import key_texts
from makewhole.model.points import TablePoint
from makewhole.native.arrays import Bools, Int64s
from makewhole.native.offset_runs import among_runs, marked, numbers_by_partition

_FEW = 1_000
"""Keys that are compared as texts, whatever they are."""
_OFFSET_BITS = 47
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
_MOST_OFFSET, _MOST_PARTITION = _OFFSET_MASK - 1, (1 << 16) - 1  # so no run meets the next partition
_DENSE = 32
"""Offsets between the first and the last for each that is there, up to which all of them are marked in one array."""
_POSITION = r'^\["(0|[1-9][0-9]{0,14})","(0|[1-9][0-9]{0,14})"\]$'
_BIGINT = r"^-?[0-9]{1,18}$"


@dataclass(frozen=True, kw_only=True)
class OffsetRuns:
    """Positions in a log: `partitions` ascending, and runs of codes without a gap, each from its `first` to its `last`.
    A code is the number of the partition among them, and the offset behind it."""

    partitions: Int64s
    first: Int64s
    last: Int64s

    @classmethod
    def of(cls, partitions: Int64s, offsets: Int64s) -> "OffsetRuns | None":
        """Return these positions; None: their numbers are such as no log has."""
        if not len(offsets) or min(partitions.min(), offsets.min()) < 0 or offsets.max() > _MOST_OFFSET:
            return None
        if partitions.max() > _MOST_PARTITION:
            return None
        known = np.flatnonzero(np.bincount(partitions))
        by_partition, least = numbers_by_partition(known), int(offsets.min())
        width = int(offsets.max()) - least + 2  # with a gap behind each partition
        if width * len(known) <= _DENSE * len(offsets):
            edges = np.diff(marked(partitions, offsets, by_partition, least, width).view(np.int8))
            first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
            first, last = (at // width << _OFFSET_BITS | at % width + least for at in (first, last))
        else:
            codes = np.sort(by_partition[partitions] << _OFFSET_BITS | offsets)
            starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 2) > 1)  # 0: a key that is there twice
            first, last = codes[starts], codes[np.append(starts[1:], len(codes)) - 1]
        return cls(partitions=known, first=first, last=last)

    def among(self, partitions: Int64s, offsets: Int64s) -> Bools:
        """Return which of other positions are among these."""
        runs = self.first, self.last
        return among_runs((partitions, offsets), numbers_by_partition(self.partitions), _OFFSET_BITS, runs)

    def edges(self) -> list[tuple[int, int, int]]:
        """Return each partition with its least and its greatest offset."""
        of_runs = self.first >> _OFFSET_BITS
        begins = np.searchsorted(of_runs, np.arange(len(self.partitions)))
        ends = np.append(begins[1:], len(of_runs)) - 1
        least, most = self.first[begins] & _OFFSET_MASK, self.last[ends] & _OFFSET_MASK
        return list(zip(self.partitions.tolist(), least.tolist(), most.tolist(), strict=True))


@dataclass(frozen=True)
class WantedKeys:
    """Keys of which a dataset's rows are asked for: `keys` has `key`, or `partition` and `offset` of positions."""

    point: TablePoint
    keys: pl.DataFrame

    @classmethod
    def of_texts(cls, point: TablePoint, keys: Sequence[str]) -> "WantedKeys":
        """Return keys by their texts."""
        return cls(point, pl.DataFrame({"key": pl.Series(keys, dtype=pl.String)}))

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def texts(self) -> pl.Series:
        """The keys themselves."""
        if "key" in self.keys.columns:
            return self.keys["key"]
        return key_of_numbers([self.keys[name].cast(pl.Int64).to_numpy() for name in ("partition", "offset")]).alias(
            "key"
        )

    @cached_property
    def positions(self) -> OffsetRuns | None:
        """The keys as positions; None: rows are not known by theirs, or one of the keys is none."""
        dataset = self.point.dataset
        if dataset is None or not self.point.key or self.point.key != dataset.position or self.keys.is_empty():
            return None
        numbers = self.keys
        if "key" in numbers.columns:
            parsed = [pl.col("key").str.extract(_POSITION, at).cast(pl.Int64) for at in (1, 2)]
            numbers = numbers.select(parsed[0].alias("partition"), parsed[1].alias("offset"))
        if any(numbers[name].null_count() for name in ("partition", "offset")):
            return None
        partitions, offsets = (numbers[name].cast(pl.Int64).to_numpy() for name in ("partition", "offset"))
        return OffsetRuns.of(partitions, offsets)

    @cached_property
    def parts(self) -> Sequence[pl.Series]:
        """The texts of each part of the keys."""
        if len(self.point.key) == 1:
            return [self.texts]
        parts = self.texts.str.json_decode(pl.List(pl.String))
        return [parts.list.get(at) for at in range(len(self.point.key))]

    def among(self, rows: pa.Table) -> Bools:
        """Return which rows have one of the keys."""
        if self.positions is not None:
            columns = [column_at(rows, name) for name in self.point.key]
            if all(pa.types.is_integer(column.type) for column in columns):
                partitions, offsets = (_numbers(column) for column in columns)
                return self.positions.among(partitions, offsets)
        return self.among_texts(key_texts(rows, self.point))

    def among_texts(self, texts: pl.Series) -> Bools:
        """Return which keys are among these; null is not."""
        if len(self.texts) <= _FEW or self._sorted is None:
            mask: Bools = texts.is_in(self._as_list).fill_null(value=False).to_numpy()
            return mask
        hashes = with_hash(pl.DataFrame({"key": texts.fill_null("")}))
        high, low = (hashes[name].to_numpy() for name in ("key_hi", "key_lo"))
        highs, lows = self._sorted
        at = np.minimum(np.searchsorted(lows, low), len(lows) - 1)
        same: Bools = (lows[at] == low) & (highs[at] == high) & texts.is_not_null().to_numpy()
        return same

    @cached_property
    def _as_list(self) -> pl.Series:
        return self.texts.implode()

    @cached_property
    def _sorted(self) -> tuple[Any, Any] | None:
        """The hashes of the keys, their upper and lower halves by the latter; None: two have one lower half."""
        hashes = with_hash(pl.DataFrame({"key": self.texts})).select("key_hi", "key_lo").unique().sort("key_lo")
        high, low = (hashes[name].to_numpy() for name in ("key_hi", "key_lo"))
        return None if (low[1:] == low[:-1]).any() else (high, low)


def bigints(texts: pl.Series) -> pl.Series | None:
    """Return texts as numbers; None: one is none."""
    numbers = texts.cast(pl.Int64, strict=False)
    is_number = texts.str.contains(_BIGINT).fill_null(value=False)
    return numbers if is_number.all() and not numbers.null_count() else None


def _numbers(column: Any) -> Int64s:
    """Return a column as numbers; what is null is -1, which no position has."""
    numbers = pl.from_arrow(column)
    assert isinstance(numbers, pl.Series)
    positions: Int64s = numbers.cast(pl.Int64, strict=False).fill_null(-1).to_numpy()
    return positions
