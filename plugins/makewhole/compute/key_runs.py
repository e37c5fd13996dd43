"""A run of the key index: the distinct keys of a topic in one window, each with its first copy and its latest version.

An older makewhole wrote fewer columns; what a run does not say is not known.
"""

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, Schema

_LATEST = ("place", "row_hash", "version", "is_tombstone")
_FIRST: Schema = {name: kind for name, kind in ELSEWHERE.items() if name != "is_later"}
_BEFORE_ALL = -(2**63)

COPIES = (*HASH, *(name for name in _FIRST if name not in (*HASH, "is_replay")), "partition", "offset", "is_aborted")
"""The columns of a snapshot that a run is made of, beside `replay_plan`."""


def run_of(copies: pl.DataFrame, *, has_versions: bool) -> pl.DataFrame:
    """The run of committed copies (`TOPIC_KEYS` with `is_replay`), in key order: of each key the first original copy,
    or the first replay where there is no other. With versions also the latest, in columns `last_…`."""
    wide = _filled(copies)
    run = (
        wide.sort(*HASH, "is_replay", "partition", "offset")
        .unique(subset=HASH, keep="first", maintain_order=True)
        .select(*_FIRST)
    )
    if not has_versions:
        return run
    latest = (
        wide.with_columns(pl.col("version").fill_null(_BEFORE_ALL).alias("number"))
        .sort(*HASH, "number", "partition", "offset")
        .unique(subset=HASH, keep="last", maintain_order=True)
        .select(*HASH, *(pl.col(name).alias(f"last_{name}") for name in _LATEST))
    )
    return run.join(latest, on=HASH, how="left", maintain_order="left")


def first_copies(run: pl.DataFrame, *, is_later: bool) -> pl.DataFrame:
    """The first copy of each key of a run (`ELSEWHERE`)."""
    return _elsewhere(run, is_later)


def versions(run: pl.DataFrame, *, is_later: bool) -> pl.DataFrame:
    """What a run knows of the versions of each key (`ELSEWHERE`): the first and the latest."""
    firsts = _elsewhere(run, is_later)
    if "last_place" not in run.columns:
        return firsts
    renamed = run.drop(_LATEST).rename({f"last_{name}": name for name in _LATEST})
    lasts = _elsewhere(renamed.filter(pl.col("place").is_not_null()), is_later)
    return pl.concat([firsts, lasts]).unique(subset=[*HASH, "place"], keep="last", maintain_order=True)


def _elsewhere(run: pl.DataFrame, is_later: bool) -> pl.DataFrame:
    return (
        _filled(run)
        .with_columns(pl.lit(is_later).alias("is_later"))
        .select(*(pl.col(name).cast(kind) for name, kind in ELSEWHERE.items()))
    )


def _filled(frame: pl.DataFrame) -> pl.DataFrame:
    lacking = {name: kind for name, kind in ELSEWHERE.items() if name not in frame.columns}
    return frame.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in lacking.items())
