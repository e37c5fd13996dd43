"""Take out the keys of a bucket of an event hop that are clean: the first pass of judging, from a few columns.

A key is clean that has exactly one copy in the slice of each side, both committed, passing the hop's filter, written by
no plan and with the same known values, and of which nothing is known besides. The careful kernel
(`makewhole.compute.judge.judge_copies`) calls each of them matched; it is left with the exceptions. The 128-bit hash
stands for the key here: of two keys that share one, neither has to be found.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from makewhole.compute.frames import HASH, HASHES, KEYS, TOPIC_KEYS, Schema, empty
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.native.arrays import Bools, IntPs, UInt64s, read_only
from makewhole.native.equal_pairs import Side, leave_out_equal_pairs
from makewhole.native.sort_hashes import sort_hashes

_OF_TOPICS = ("is_aborted", "replay_plan")

ROW: Schema = HASHES | {"row_hash": KEYS["row_hash"]}
"""Columns of a clean key."""

COLUMNS = (*ROW, "excluded_by", *_OF_TOPICS)
"""Columns of a slice that the first pass needs; a table has no others than `KEYS`."""


@dataclass(frozen=True, kw_only=True)
class CleanKeys:
    """The clean keys of a bucket (`ROW`), and which rows of the two slices are exceptions. `target_rows`: the number of
    the clean keys' rows at the target, each counted once."""

    keys: pl.DataFrame
    source_exceptions: Bools
    target_exceptions: Bools
    target_rows: int

    @property
    def source_rows(self) -> int:
        """The number of the clean keys' rows at the source."""
        return len(self.source_exceptions) - int(self.source_exceptions.sum())


def no_clean_keys(source: pl.DataFrame, target: pl.DataFrame) -> CleanKeys:
    """Return that every row of the slices is an exception."""
    return CleanKeys(
        keys=empty(ROW),
        source_exceptions=np.ones(len(source), dtype=np.bool_),
        target_exceptions=np.ones(len(target), dtype=np.bool_),
        target_rows=0,
    )


def find_clean_keys(source: pl.DataFrame, target: pl.DataFrame, hop: str, known: pl.DataFrame) -> CleanKeys:
    """Find the clean keys of two slices with `COLUMNS`, as far as they have them.

    `known` (hashes): keys of which anything else is known; none of them is clean, nor any that shares half of its hash
    with one.
    """
    sides = _side(source, hop, known), _side(target, None, known)
    source_left, target_left = (np.ones(len(frame), dtype=np.bool_) for frame in (source, target))
    leave_out_equal_pairs(*sides, source_left, target_left)
    clean = source.filter(pl.Series(~source_left)).select(*ROW)
    return CleanKeys(keys=clean, source_exceptions=source_left, target_exceptions=target_left, target_rows=len(clean))


def _side(copies: pl.DataFrame, hop: str | None, known: pl.DataFrame) -> Side:
    """Return the copies of a side, to be paired by half of their hashes. No copy with the half of a known one may be
    paired, nor any that `may_be_clean` does not select."""
    high, low, values = (copies[name].fill_null(0).to_numpy() for name in ROW)
    ascending, order = sort_hashes(high)
    may_be_paired = may_be_clean(copies, hop)
    places, is_known = find_halves(known, ascending)
    # Of several copies with the same half the first is enough: they are not paired anyway.
    may_be_paired[order[places[is_known]]] = False
    return read_only(ascending), read_only(order), read_only(low), read_only(values), read_only(may_be_paired)


def find_halves(keys: pl.DataFrame, ascending: UInt64s) -> tuple[IntPs, Bools]:
    """Return the first place that holds the first half of each key's hash, and whether any does."""
    halves = keys["key_hi"].to_numpy()
    places = np.searchsorted(ascending, halves)
    is_there = np.append(ascending, np.uint64(0))[places] == halves
    return places, is_there & (places < len(ascending))


def may_be_clean(copies: pl.DataFrame, hop: str | None) -> Bools:
    """Return of which copies the key may be clean, each by itself. `hop`: whose filter they must pass; None: they
    need not."""
    allowed = pl.col("row_hash").is_not_null()
    if "is_aborted" in copies.columns:
        allowed = allowed & ~pl.col("is_aborted") & pl.col("replay_plan").is_null()
    if hop is not None:
        allowed = allowed & ~pl.col("excluded_by").list.contains(hop).fill_null(True)
    is_clean: Bools = copies.select(allowed).to_series().to_numpy(writable=True)
    return is_clean


def count_keys(source: pl.DataFrame, hop: str, named: pl.DataFrame) -> int:
    """Count the distinct keys of the source alone that must have a verdict: those whose committed copies pass the hop's
    filter, and those of `named` (hashes). Nothing of the pairing is used."""
    passing = committed_copies(source).filter(~pl.col("excluded_by").list.contains(hop).fill_null(False))
    return _count_distinct(*(np.concatenate([passing[name].to_numpy(), named[name].to_numpy()]) for name in HASH))


def _count_distinct(high: UInt64s, low: UInt64s) -> int:
    """Count different pairs of numbers: nearly all by their first number alone."""
    ascending, order = sort_hashes(high)
    follows = ascending[1:] == ascending[:-1]
    is_repeated = np.zeros(len(high), dtype=np.bool_)
    is_repeated[1:] |= follows
    is_repeated[:-1] |= follows
    rows = order[is_repeated]
    rows = rows[np.lexsort((low[rows], high[rows]))]
    is_same = (high[rows][1:] == high[rows][:-1]) & (low[rows][1:] == low[rows][:-1])
    return len(high) - int(is_same.sum())


def columns_of(*, is_topic: bool) -> list[str]:
    """Return the columns to read of the slice of a point."""
    schema = TOPIC_KEYS if is_topic else KEYS
    return [name for name in COLUMNS if name in schema]
