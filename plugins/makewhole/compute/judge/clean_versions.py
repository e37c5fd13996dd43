"""Take out the keys of a bucket of an upsert hop that are clean: the first pass of judging where copies are versions.

A key is clean of which the target's latest version has the same known values as the source's, and no lower number, and
where it is certain which versions these are: every copy in the two slices is committed, passes the hop's filter and was
written by no plan, none is a tombstone, and on each side no other copy could be the latest. A store has one row of it.
The careful kernel (`makewhole.compute.judge.judge_versions`) calls each of them matched.

Versions in other windows make no difference to that, but for one: a topic, at either end, may have a higher version
from before, or one that is not ordered with those of the window. The 128-bit hash stands for the key, as in
`makewhole.compute.judge.clean_keys`.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import polars as pl

from makewhole.compute.frames import KEYS, NUMBERS, TOPIC_KEYS, empty
from makewhole.compute.judge.clean_keys import COLUMNS, ROW, CleanKeys, find_halves, may_be_clean
from makewhole.compute.versions import VERSION, in_64_bits, is_moment, is_surely_below, is_unreadable
from makewhole.native.arrays import Bools, Int64s, IntPs, UInt64s, read_only
from makewhole.native.equal_pairs import Side, leave_out_equal_pairs
from makewhole.native.latest_versions import NO_NUMBER, choose_latest
from makewhole.native.sort_hashes import sort_hashes

VERSION_COLUMNS = (*COLUMNS, "is_tombstone", "version", "partition", "offset", "time", "place")
"""Columns of a slice that the first pass needs; of a topic neither `time` nor `place`."""


@dataclass(frozen=True, kw_only=True)
class _LatestVersions:
    """The latest versions of a side: one for each half of a hash, in its order (`halves`). `latest`: its row;
    `is_certain`: no other copy could be the latest. `rows`: those of all copies in that order, and how many each half
    has (`sizes`)."""

    copies: pl.DataFrame
    rows: IntPs
    sizes: IntPs
    halves: UInt64s
    latest: IntPs
    is_certain: Bools

    def side(self) -> Side:
        """Return the latest versions, to be paired by half of their hashes."""
        may_be_paired = np.zeros(len(self.copies), dtype=np.bool_)
        may_be_paired[self.latest[self.is_certain]] = True
        low, values = (self.copies[name].fill_null(0).to_numpy() for name in ("key_lo", "row_hash"))
        halves, latest = read_only(self.halves), read_only(self.latest)
        return halves, latest, read_only(low), read_only(values), read_only(may_be_paired)

    def exceptions(self, clean: IntPs) -> Bools:
        """Return by row what is left when the halves at these places are taken out."""
        is_clean = np.zeros(len(self.halves), dtype=np.bool_)
        is_clean[clean] = True
        left = np.ones(len(self.copies), dtype=np.bool_)
        left[self.rows[np.repeat(is_clean, self.sizes)]] = False
        return left


def columns_of_versions(*, is_topic: bool, is_target: bool) -> list[str]:
    """Return the columns to read of the slice of a point: of a table that is the source its times, which order its
    rows, of one that is the target their places, which distinguish them."""
    without = ("time", "place") if is_topic else ("time",) if is_target else ("place",)
    schema = TOPIC_KEYS if is_topic else KEYS
    return [name for name in VERSION_COLUMNS if name in schema and name not in without]


class VersionsBefore(NamedTuple):
    """The versions (`NUMBERS`) that both ends have from windows before, as far as they are topics."""

    source: pl.DataFrame
    target: pl.DataFrame


NOTHING_BEFORE = VersionsBefore(empty(NUMBERS), empty(NUMBERS))


def find_clean_versions(
    source: pl.DataFrame,
    target: pl.DataFrame,
    hop: str,
    known: pl.DataFrame,
    before: VersionsBefore,
    unit: Decimal = Decimal(0),
) -> CleanKeys:
    """Find the clean keys of two slices with `VERSION_COLUMNS`, as far as they have them.

    `known` (hashes): none of these keys is clean, nor any that shares half of its hash with one. `unit` as
    `BucketInput.version_unit`.
    """
    sides = _latest_versions(source, known, hop), _latest_versions(target, known)
    for side, versions in zip(sides, before, strict=True):
        _leave_out_overtaken(side, versions)
    source_left, target_left = (np.ones(len(side.copies), dtype=np.bool_) for side in sides)
    leave_out_equal_pairs(sides[0].side(), sides[1].side(), source_left, target_left)
    # Both are in the order of the halves: the first of the one belongs to the first of the other.
    at_source, at_target = (
        np.flatnonzero(~left[side.latest]) for left, side in zip((source_left, target_left), sides, strict=True)
    )
    of_source, of_target = (
        side.copies["version"][side.latest[at]] for side, at in zip(sides, (at_source, at_target), strict=True)
    )
    is_older = _is_older(of_source, of_target, unit)
    clean = sides[0].latest[at_source[~is_older]]
    target_exceptions = sides[1].exceptions(at_target[~is_older])
    return CleanKeys(
        keys=source.select(*ROW)[clean],
        source_exceptions=sides[0].exceptions(at_source[~is_older]),
        target_exceptions=target_exceptions,
        target_rows=int((~target_exceptions).sum()) if _is_topic(target) else len(clean),
    )


def _is_older(of_source: pl.Series, of_target: pl.Series, unit: Decimal) -> Bools:
    """Return for pairs of versions whether the target's number is below the source's, where both have one."""
    is_below = (of_target < of_source).fill_null(False)
    if unit and is_below.any():
        pairs = pl.DataFrame([of_source.alias("source"), of_target.alias("target")])
        pairs = pairs.with_columns(pl.lit(unit, dtype=VERSION).alias("unit"))
        is_below = pairs.select(is_surely_below("target", "source", "unit").fill_null(False)).to_series()
    is_older: Bools = is_below.to_numpy()
    return is_older


def _is_topic(copies: pl.DataFrame) -> bool:
    return "offset" in copies.columns


# The latest versions of a side


def _latest_versions(copies: pl.DataFrame, known: pl.DataFrame, hop: str | None = None) -> _LatestVersions:
    """Choose the latest version of each half of a hash, at the source of a hop or at its target (None)."""
    may_be, is_store = _may_be_clean(copies, hop), hop is None and not _is_topic(copies)
    ascending, rows = sort_hashes(copies["key_hi"].to_numpy())
    places, is_known = find_halves(known, ascending)
    may_be[rows[places[is_known]]] = False  # of several copies one is enough
    is_first = np.ones(len(rows), dtype=np.bool_)
    is_first[1:] = ascending[1:] != ascending[:-1]
    bounds = np.append(np.flatnonzero(is_first), len(rows))
    is_once = ~_is_repeated(copies, rows, is_first) if is_store else np.ones(len(rows), dtype=np.bool_)
    firsts = np.append(0, np.cumsum(is_once))[bounds]
    latest, is_certain = np.zeros(len(bounds) - 1, dtype=np.intp), np.zeros(len(bounds) - 1, dtype=np.bool_)
    versions, partitions, positions = (_numbers(copies, name) for name in _order(copies, is_store=is_store))
    by_row = read_only(copies["key_lo"].to_numpy()), versions, partitions, positions, read_only(may_be)
    choose_latest(read_only(firsts), read_only(rows[is_once]), by_row, latest, is_certain)
    return _LatestVersions(
        copies=copies,
        rows=rows,
        sizes=np.diff(bounds),
        halves=ascending[is_first],
        latest=latest,
        is_certain=is_certain,
    )


def _may_be_clean(copies: pl.DataFrame, hop: str | None) -> Bools:
    may_be = may_be_clean(copies, hop)
    if "is_tombstone" in copies.columns:
        may_be &= ~copies["is_tombstone"].fill_null(False).to_numpy()
    if copies["version"].null_count() == len(copies):
        return may_be
    kinds = copies.select(is_unreadable().alias("none"), is_moment().alias("moment"))
    may_be &= ~kinds["none"].to_numpy()
    if kinds["moment"].any() and not kinds["moment"].all():  # they are not ordered among each other
        may_be &= ~kinds["moment"].fill_null(False).to_numpy()
    return may_be


def _order(copies: pl.DataFrame, *, is_store: bool) -> tuple[str | None, str | None, str | None]:
    """Return the columns that say the number of a version, its partition and its position in it; None: nothing does.

    The rows of a store have no order, and of two none is certain. Those of another table are one partition, in the
    order of their times.
    """
    if is_store:
        return None, None, None
    return ("version", "partition", "offset") if _is_topic(copies) else ("version", None, "time")


def _leave_out_overtaken(side: _LatestVersions, before: pl.DataFrame) -> None:
    """Make uncertain the latest versions of a topic that had a higher one before, or one of another kind."""
    if before.is_empty():
        return
    places, is_there = find_halves(before, side.halves)
    numbers = before["version"].filter(pl.Series(is_there, dtype=pl.Boolean)).alias("before")
    places = places[is_there]
    both = pl.DataFrame([numbers, side.copies["version"][side.latest[places]].alias("now")])
    is_above = pl.col("before") > pl.col("now")
    is_overtaken = pl.col("now").is_null() | is_above | (is_moment("before") != is_moment("now"))
    side.is_certain[places[both.select(is_overtaken.alias("found"))["found"].fill_null(False).to_numpy()]] = False


def _is_repeated(copies: pl.DataFrame, rows: IntPs, is_first: Bools) -> Bools:
    """Return which rows of a store, in this order, are the row before once more: it was read by its time and by its
    key."""
    at = np.flatnonzero(~is_first)
    is_repeated = np.zeros(len(rows), dtype=np.bool_)
    row = copies.select("place", "key_lo", "row_hash", "version")
    same = [row[name][rows[at]].eq_missing(row[name][rows[at - 1]]) for name in row.columns]
    is_repeated[at] = pl.DataFrame(same).select(pl.all_horizontal(pl.all())).to_series().to_numpy()
    return is_repeated


def _numbers(copies: pl.DataFrame, name: str | None) -> Int64s:
    if name is None:
        return read_only(np.zeros(len(copies), dtype=np.int64))
    if name == "version":
        return read_only(in_64_bits(copies[name]).fill_null(NO_NUMBER).to_numpy())
    return read_only(copies[name].cast(pl.Int64).fill_null(NO_NUMBER).to_numpy())
