"""Build a window's rows of the key index from its copies: keys with one copy, which are nearly all, in one pass.

The careful way (`makewhole.compute.indexed_keys.key_runs`) is left with keys of several copies, and with what
compensation may have written. The rows are the same.
"""

import numpy as np
import polars as pl

from makewhole.compute.frames import Schema, are_empty_lists, with_place
from makewhole.compute.indexed_keys.key_runs import build_key_run
from makewhole.compute.indexed_keys.stored_runs import STORED, stored_run, with_split_versions
from makewhole.compute.judge.judge_copies import mark_replays
from makewhole.native.arrays import Bools, UInt64s
from makewhole.native.sort_hashes import sort_hashes

COPIES = (
    *("key_hi", "key_lo", "row_hash", "version", "is_tombstone", "producer_id", "producer_epoch", "sequence"),
    *("excluded_by", "partition", "offset", "is_aborted", "replay_plan"),
)
"""Columns of a topic's snapshot that the rows are built from."""

_FILTERS = "excluded_by"
_OF_ALL = ("window", "compared", "of_hops", "numbered_by", "filters")
_ROWS: Schema = {name: kind for name, kind in STORED.items() if name not in _OF_ALL}


def window_rows(copies: pl.DataFrame, replays: pl.DataFrame, *, has_versions: bool) -> pl.DataFrame:
    """Return the rows of committed copies of a topic (`STORED` without what is the same for all), in key order.

    `replays`: what compensation wrote to the topic.
    """
    high = copies["key_hi"].to_numpy()
    ascending, order = sort_hashes(high)
    is_alone = _occur_once(ascending) & copies["replay_plan"].is_null().to_numpy()[order]
    alone, others = order[is_alone], copies[order[~is_alone]]
    run = build_key_run(mark_replays(with_place(others), replays), has_versions=has_versions)
    several = stored_run(run, 0)
    places = np.searchsorted(high[alone], several["key_hi"].to_numpy())  # none of them is equal to one alone
    in_order = np.insert(alone, places, len(copies) + np.arange(len(several)))
    is_unfiltered = _FILTERS in copies.columns and are_empty_lists(copies[_FILTERS])
    fixed = {_FILTERS: pl.lit([]).cast(STORED[_FILTERS])} if is_unfiltered else {}
    names = [name for name in _ROWS if name not in fixed]
    both = pl.concat([_rows_of_single_copies(copies, has_versions=has_versions).select(names), several.select(names)])
    # Most columns say the same of every key, and need not be put in order; lists are the slowest to move.
    same = [name for name in names if _is_constant(both[name])]
    rows: pl.DataFrame = both.drop(same)[in_order]
    return rows.with_columns(*(both[name].head(len(rows)) for name in same), **fixed).select(*_ROWS)


def _occur_once(ascending: UInt64s) -> Bools:
    """Return which of sorted numbers occur once."""
    differs = np.ones(len(ascending) + 1, dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=differs[1:-1])
    occurs_once: Bools = differs[1:] & differs[:-1]
    return occurs_once


def _rows_of_single_copies(copies: pl.DataFrame, *, has_versions: bool) -> pl.DataFrame:
    """Lay copies out as rows of keys that have no other copy, none of them written by compensation."""
    columns = {name: pl.col(name) for name in copies.columns} | {
        "is_replay": pl.lit(False),
        "is_produced": pl.lit(False),
        "is_extra": pl.lit(False),
        "is_latest": pl.lit(True if has_versions else None),
    }
    split = with_split_versions(copies)
    columns |= {name: pl.col(name) for name in split.columns}
    return split.select(columns.get(name, pl.lit(None)).cast(kind).alias(name) for name, kind in _ROWS.items())


def _is_constant(column: pl.Series) -> bool:
    """Return whether all values are null, or the same truth value."""
    if column.null_count() == len(column):
        return True
    return column.dtype == pl.Boolean and not column.has_nulls() and column.all() == column.any()
