"""Lay the rows of a run of the key index out for its file, and back.

A row is for a key and a window (and a set of filters): so a file can hold several windows, and each can be left out
again. Of a key whose latest version is its first copy, the file says it once.
"""

import polars as pl

from makewhole.compute.frames import HASH, Schema
from makewhole.compute.versions import VERSION, ends_versions, joined_versions, split_versions

OF_HOP: Schema = {"compared": pl.UInt64, "row_hash": pl.UInt64, "last_row_hash": pl.UInt64}
"""The hashes of what a hop compares, where that is not all that a snapshot of the point holds."""

STORED: Schema = {
    "key_hi": pl.UInt64,
    "key_lo": pl.UInt64,
    "window": pl.Int32,
    "partition": pl.Int32,
    "offset": pl.Int64,
    "is_replay": pl.Boolean,
    "is_produced": pl.Boolean,
    "row_hash": pl.UInt64,
    "version": pl.Int64,
    "version_rest": pl.Int32,
    "is_tombstone": pl.Boolean,
    "producer_id": pl.Int64,
    "producer_epoch": pl.Int16,
    "sequence": pl.Int32,
    "excluded_by": pl.List(pl.String),
    "is_extra": pl.Boolean,
    "compared": pl.UInt64,
    "of_hops": pl.List(pl.Struct(OF_HOP)),
    "numbered_by": pl.UInt64,
    "filters": pl.String,
    "is_latest": pl.Boolean,
    "last_partition": pl.Int32,
    "last_offset": pl.Int64,
    "last_row_hash": pl.UInt64,
    "last_version": pl.Int64,
    "last_version_rest": pl.Int32,
    "last_is_tombstone": pl.Boolean,
    "last_ends_earlier": pl.Boolean,
}
"""Columns of a file of the key index, whose rows are in the order of `key_hi`, `key_lo`, `window`.

`of_hops`: the hashes of the columns of hops that compare others than `compared` stands for; null: there are none.
`filters`: those that its window knew, by which `excluded_by` names them (see
`makewhole.compute.indexed_keys.hop_filters`). `is_latest`: the first copy is the latest version too, so that `last_…`
are null; null where no versions were asked for. A version is in two columns
(`makewhole.compute.versions.split_versions`), and what is a number in `last_…` is the difference from the first copy's,
which is small."""

_POSITIONS = {"place": ("partition", "offset"), "last_place": ("last_partition", "last_offset")}
_FIRST = ("place", "row_hash", "version", "is_tombstone")
_LAST = tuple(f"last_{name}" for name in _FIRST)
_VERSIONS = ("version", "last_version")
_DIFFERENCES = ("offset", "version", "version_rest")


def stored_run(run: pl.DataFrame, window: int) -> pl.DataFrame:
    """Lay a window's run (`build_key_run`) out for its file (`STORED`)."""
    if "last_place" in run.columns:
        run = run.with_columns((pl.col("last_place") == pl.col("place")).alias("is_latest"))
        is_other = ~pl.col("is_latest")
        of_last = [name for name in _LAST if name in run.columns]
        run = run.with_columns(
            *(pl.when(is_other).then(name).alias(name) for name in of_last), *_ends_that_are_no_own(run, is_other)
        )
    for place, names in _POSITIONS.items():
        if place in run.columns and names[0] not in run.columns:
            run = run.with_columns(_numbers(place, names))
    run = with_split_versions(run)
    if "window" not in run.columns:
        run = run.with_columns(pl.lit(window, dtype=pl.Int32).alias("window"))
    run = run.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in STORED.items() if name not in run)
    if "last_place" in run.columns:
        run = run.with_columns(pl.col(f"last_{name}") - pl.col(name).fill_null(0) for name in _DIFFERENCES)
    return run.select(pl.col(name).cast(kind) for name, kind in STORED.items())


def run_of(stored: pl.DataFrame) -> pl.DataFrame:
    """Return rows of a file (`STORED`) as `makewhole.compute.indexed_keys.key_runs` reads them, with `window`."""
    run = (
        with_whole_numbers(stored)
        .with_columns(
            *(_text(names).alias(place) for place, names in _POSITIONS.items()),
            *(joined_versions(name, f"{name}_rest") for name in _VERSIONS),
        )
        .drop(f"{name}_rest" for name in _VERSIONS)
    )
    is_first = pl.col("is_latest").fill_null(False)
    return run.with_columns(
        *(pl.when(is_first).then(first).otherwise(last).alias(last) for first, last in zip(_FIRST, _LAST, strict=True)),
        pl.coalesce("last_ends_earlier", pl.when(is_first).then(ends_versions())).alias("last_ends_earlier"),
    )


def _ends_that_are_no_own(run: pl.DataFrame, is_other: pl.Expr) -> list[pl.Expr]:
    """Return `last_ends_earlier` without what the first copy says by itself: where that is the latest, too, a tombstone
    may still stand before it, in another partition or among the copies that pass other filters."""
    if "last_ends_earlier" not in run.columns:
        return []
    is_noted = is_other | (pl.col("last_ends_earlier") != ends_versions())
    return [pl.when(is_noted).then("last_ends_earlier").alias("last_ends_earlier")]


def with_whole_numbers(stored: pl.DataFrame) -> pl.DataFrame:
    """Return rows of a file (`STORED`) whose latest versions are no differences from the first copies any more."""
    return stored.with_columns(
        (pl.col(f"last_{name}") + pl.col(name).fill_null(0)).alias(f"last_{name}") for name in _DIFFERENCES
    )


def with_split_versions(rows: pl.DataFrame) -> pl.DataFrame:
    """Divide the versions of rows as a file has them, where they are not yet."""
    whole = [name for name in _VERSIONS if name in rows.columns and rows[name].dtype == VERSION]
    return rows.with_columns(part for name in whole for part in split_versions(rows[name]))


def in_order_of_windows(stored: pl.DataFrame) -> pl.DataFrame:
    """Sort rows (`STORED`) as the runs of their windows would be read one after the other."""
    return stored.sort("window", *HASH, maintain_order=True)


def _numbers(place: str, names: tuple[str, str]) -> list[pl.Expr]:
    """Return partition and offset of a position as text: `partition:offset`."""
    parts = pl.col(place).str.split_exact(":", 1)
    return [parts.struct[at].cast(STORED[name], strict=True).alias(name) for at, name in enumerate(names)]


def _text(names: tuple[str, str]) -> pl.Expr:
    partition, offset = (pl.col(name).cast(pl.String) for name in names)
    return pl.concat_str([partition, pl.lit(":"), offset])
