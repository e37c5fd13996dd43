"""Build and read a run of the key index: a topic's distinct keys in one window, with first copy and latest version.

A key whose copies are excluded by different filters has a row for each set of them, all but the first `is_extra`. What
is null is not known.
"""

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, Schema
from makewhole.compute.indexed_keys.hop_filters import UNKNOWN_FILTER
from makewhole.compute.unnumbered import may_follow_versions
from makewhole.compute.versions import UNREADABLE, VERSION, ends_versions, version_in_order

_LATEST = ("place", "row_hash", "version", "is_tombstone", "ends_earlier")
_FIRST: Schema = {name: kind for name, kind in ELSEWHERE.items() if name not in ("is_later", "is_former")}
_MARKS = ("is_replay", "is_produced")
_IS_EXTRA, _FILTERS, _LIVES = "is_extra", "_filters", "_lives"
_ROW = (*HASH, _FILTERS)
_FOLLOWS, _CANNOT_BE_FIRST = "_follows", "_cannot_be_first"
_NOT_FIRST = pl.lit(False).alias(_CANNOT_BE_FIRST)
_ABOVE_ALL = pl.lit(UNREADABLE, dtype=VERSION)


def build_key_run(copies: pl.DataFrame, *, has_versions: bool) -> pl.DataFrame:
    """Build the run of committed copies (`TOPIC_KEYS` with `is_replay` and `is_produced`), in key order.

    It has the first original copy of each key, or the first replay where there is no original; with versions also the
    latest version, in columns `last_…`. Where elements of one record contradict each other it has no value. A first
    copy that a tombstone ended has no version any more. Where a record without a version came after versions, these
    are the first copy of the highest, and that record.
    """
    wide = _without_contradictions(_with_missing_columns(copies))
    wide = wide.with_columns(_filters(wide))
    wide = _with_unnumbered(_with_ends(wide)) if has_versions else wide.with_columns(_NOT_FIRST)
    run = (
        wide.sort(*HASH, _CANNOT_BE_FIRST, "is_replay", "partition", "offset", maintain_order=True)
        .unique(subset=_ROW, keep="first", maintain_order=True)
        .with_columns((pl.int_range(pl.len()).over(HASH) > 0).alias(_IS_EXTRA))
        .select(*_FIRST, _IS_EXTRA, _FILTERS)
    )
    if not has_versions:
        return _with_deletions(run.drop(_FILTERS), wide)
    latest = (
        wide.with_columns(pl.when(_FOLLOWS).then(_ABOVE_ALL).otherwise(version_in_order()).alias("number"))
        .sort(*HASH, _LIVES, "number", "partition", "offset")
        .unique(subset=_ROW, keep="last", maintain_order=True)
        .select(*_ROW, *(pl.col(name).alias(f"last_{name}") for name in _LATEST))
    )
    return run.join(latest, on=_ROW, how="left", maintain_order="left").drop(_FILTERS)


def _with_deletions(run: pl.DataFrame, copies: pl.DataFrame) -> pl.DataFrame:
    """Note which keys of a run without versions were deleted after their first copy (`last_is_tombstone`): the last
    copy in each partition is a tombstone."""
    is_tombstone = pl.col("is_tombstone").fill_null(False)
    if not copies.select(is_tombstone.any()).item():
        return run
    of_partition = copies.sort(*HASH, "partition", "offset").group_by(*HASH, "partition").agg(is_tombstone.last())
    deleted = of_partition.group_by(HASH).agg(is_tombstone.all().alias("last_is_tombstone")).filter("last_is_tombstone")
    noted = run.join(deleted, on=HASH, how="left", maintain_order="left")
    return noted.with_columns(pl.when(~is_tombstone).then("last_is_tombstone"))


def _without_contradictions(copies: pl.DataFrame) -> pl.DataFrame:
    """Take the values from elements of one record that contradict each other: none of them came first, so what the
    record says of their key is not known."""
    of_element = (*HASH, "partition", "offset", "version")
    if not copies.select(of_element).is_duplicated().any():
        return copies
    is_one = pl.col("row_hash").n_unique().over(of_element) == 1
    return copies.with_columns(pl.when(is_one).then("row_hash"))


def _with_ends(copies: pl.DataFrame) -> pl.DataFrame:
    """Note what tombstones without a version end: in each partition every version before them (`ends_earlier`).

    Where a key has one and versions in other partitions, too, nothing says which of them it ends: its latest version is
    not known.
    """
    is_end = ends_versions()
    of_partition = (*HASH, "partition")
    lived = copies.sort(*of_partition, "offset").with_columns(is_end.cum_sum().over(of_partition).alias(_LIVES))
    is_ended = pl.col(_LIVES) < pl.col(_LIVES).max().over(of_partition)
    is_split = (pl.col(_LIVES) > 0).any().over(HASH) & (pl.col("partition").n_unique().over(HASH) > 1)
    is_unknown = is_split & pl.col("version").is_not_null().any().over(HASH)
    version = pl.when(is_unknown).then(pl.lit(UNREADABLE, dtype=VERSION)).when(~is_ended).then("version")
    return lived.with_columns(version.alias("version"), (pl.col(_LIVES) > 0).alias("ends_earlier"))


def _with_unnumbered(copies: pl.DataFrame) -> pl.DataFrame:
    """Note which copies without a version may be newer than the highest, and of their keys what cannot be the first
    copy of a run: all but the highest version."""
    follows = may_follow_versions(copies.with_columns(ends_earlier=ends_versions()), pl.lit(0))
    if not follows.any():
        return copies.with_columns(follows.alias(_FOLLOWS), _NOT_FIRST)
    is_highest = pl.col("version") == pl.col("version").max().over(HASH)
    return copies.with_columns(follows.alias(_FOLLOWS)).with_columns(
        (pl.col(_FOLLOWS).any().over(HASH) & ~is_highest.fill_null(False)).alias(_CANNOT_BE_FIRST)
    )


def _filters(copies: pl.DataFrame) -> pl.Expr:
    """Return the filters that exclude each copy, as one text."""
    if not copies["excluded_by"].list.len().max():
        return pl.lit("").alias(_FILTERS)
    return pl.col("excluded_by").list.sort().list.join(",").fill_null("").alias(_FILTERS)


def count_keys(run: pl.DataFrame) -> int:
    """Return the number of distinct keys of a run."""
    return len(run) - int(run[_IS_EXTRA].sum()) if _IS_EXTRA in run.columns else len(run)


def _of_point(run: pl.DataFrame) -> pl.DataFrame:
    """Return one row per key, whatever the filters."""
    return run.filter(~pl.col(_IS_EXTRA).fill_null(False)) if _IS_EXTRA in run.columns else run


def passing_rows(run: pl.DataFrame, hop: str) -> pl.DataFrame:
    """Return the rows of a run whose copies surely pass the filter of a hop."""
    if "excluded_by" not in run.columns:
        return run
    excluded = pl.col("excluded_by").list
    passes = ~(excluded.contains(hop) | excluded.contains(UNKNOWN_FILTER)).fill_null(False)
    return run.filter(passes).with_columns(pl.lit(False).alias(_IS_EXTRA))


def first_copies(run: pl.DataFrame, *, is_later: bool) -> pl.DataFrame:
    """Return the first copy of each key of a run (`ELSEWHERE`)."""
    return _firsts(run, is_later)


def first_and_latest_copies(run: pl.DataFrame, *, is_later: bool) -> pl.DataFrame:
    """Return the first and the latest version of each key of a run (`ELSEWHERE`). Of a key whose copies are excluded by
    different filters, the latest of each set of them: whichever is the latest of all is among these."""
    firsts = _firsts(run, is_later)
    if "last_place" not in run.columns:
        return firsts
    renamed = run.drop(_LATEST, strict=False).rename({f"last_{name}": name for name in _LATEST}, strict=False)
    lasts = _as_elsewhere(renamed.filter(pl.col("place").is_not_null()), is_later)
    return pl.concat([firsts, lasts]).unique(subset=[*HASH, "place"], keep="last", maintain_order=True)


def _firsts(run: pl.DataFrame, is_later: bool) -> pl.DataFrame:
    return _as_elsewhere(
        _with_missing_columns(_of_point(run)).with_columns(ends_versions().alias("ends_earlier")), is_later
    )


def _as_elsewhere(run: pl.DataFrame, is_later: bool) -> pl.DataFrame:
    return (
        _with_missing_columns(run)
        .with_columns(pl.lit(is_later).alias("is_later"))
        .select(*(pl.col(name).cast(kind) for name, kind in ELSEWHERE.items()))
    )


def _with_missing_columns(frame: pl.DataFrame) -> pl.DataFrame:
    missing = {name: kind for name, kind in ELSEWHERE.items() if name not in frame.columns}
    return frame.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in missing.items())
