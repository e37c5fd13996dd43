"""Hold what a hop's source has of a key against what other sources of the same place have of it.

Of an event all sources must have one value: which of several is right only a person can say. Of versions the latest of
all sources counts, by their numbers; without numbers nothing orders the records of two sources.
"""

from dataclasses import dataclass

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, JUDGED, Schema
from makewhole.model.verdict import Cause, Verdict

_SETTLED = (Verdict.MATCHED, Verdict.MISSING, Verdict.MISMATCHED, Verdict.DUPLICATE)
_DELETED, _BEFORE_ALL = 0, -(2**63)

COPIES: Schema = {name: ELSEWHERE[name] for name in (*HASH, "place", "row_hash", "version", "is_tombstone")} | {
    "is_before": pl.Boolean,
    "source": pl.String,
}
"""Copies that a source has or had. `is_before`: no copy of the window, nor one after it. `source` names the point."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The judged keys, and of those on which sources disagree the other sources' copies (`COPIES`)."""

    judged: pl.DataFrame
    others: pl.DataFrame


def compare_events(judged: pl.DataFrame, own: pl.DataFrame, others: pl.DataFrame) -> Compared:
    """Turn verdicts of `judged` (`JUDGED`) into conflicts where another source has another value of the key. `own` and
    `others` are `COPIES`; values that are not known disagree with none."""
    values = pl.concat([own, others]).drop_nulls("row_hash").group_by(HASH).agg(pl.col("row_hash").n_unique())
    differing = values.filter(pl.col("row_hash") > 1).select(HASH).join(others, on=HASH, how="semi")
    return _marked(judged, differing, others, Verdict.CONFLICT, Cause.SOURCES_DISAGREE)


def compare_versions(judged: pl.DataFrame, own: pl.DataFrame, others: pl.DataFrame, target: pl.DataFrame) -> Compared:
    """Turn verdicts of `judged` (`JUDGED`) into undecidable ones where nothing orders the versions of two sources, and
    into mismatched ones where the target holds an older version than another source had before the window.

    `own`, `others` and `target` are `COPIES`. A version that another source has in the window is judged on its own hop.
    """
    both = _latest(own, "own").join(_latest(others, "other"), on=HASH, how="inner")
    differs = pl.col("own_states").list.set_symmetric_difference("other_states").list.len() > 0
    is_ordered = (pl.col("own_version") != pl.col("other_version")).fill_null(False)
    unordered = both.filter(differs & ~is_ordered).select(HASH)
    ahead = both.filter(differs & (pl.col("other_version") > pl.col("own_version")).fill_null(False))
    held = _latest(target, "target")
    set_back = (
        ahead.filter("other_is_before")
        .join(held, on=HASH, how="inner")
        .filter(pl.col("target_states").list.set_intersection("other_states").list.len() == 0)
        .select(HASH)
    )
    ahead_of_us = ahead.select(*HASH, pl.lit(True).alias("_is_ahead"))
    judged = judged.join(ahead_of_us, on=HASH, how="left", maintain_order="left").with_columns(
        (pl.col("has_later") | pl.col("_is_ahead").fill_null(False)).alias("has_later")
    )
    judged = judged.select(*JUDGED)
    is_set_back = _among(judged, set_back) & (judged["verdict"] == Verdict.MATCHED.value)
    judged = _turned(judged, is_set_back, Verdict.MISMATCHED, Cause.STALE_VERSION)
    return _marked(judged, unordered, others, Verdict.UNDECIDABLE, Cause.ORDER_UNKNOWN)


def later_versions(own: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return the other sources' versions with a higher number than the latest of ours, as later ones (`ELSEWHERE`)."""
    newest = own.group_by(HASH).agg(pl.col("version").max().alias("_own"))
    higher = others.join(newest, on=HASH, how="inner").filter(pl.col("version") > pl.col("_own"))
    never = [pl.lit(False).alias(name) for name in ("is_replay", "is_produced")]
    filled = higher.with_columns(pl.lit(True).alias("is_later"), *never)
    missing = {name: kind for name, kind in ELSEWHERE.items() if name not in filled.columns}
    filled = filled.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in missing.items())
    return filled.select(pl.col(name).cast(kind) for name, kind in ELSEWHERE.items())


def _latest(copies: pl.DataFrame, side: str) -> pl.DataFrame:
    """Return, per key, the highest number, the states (values, or that it is deleted) that could be the latest, and
    whether a copy of them is from before the window. Of each partition of a source the last copy could be."""
    position = pl.col("place").str.split_exact(":", 1).struct
    partition, offset = (position[at].cast(pl.Int64, strict=False) for at in (0, 1))
    is_tombstone = pl.col("is_tombstone").fill_null(False)
    value = pl.when(pl.col("row_hash") == _DELETED).then(pl.lit(1, dtype=pl.UInt64)).otherwise("row_hash")
    placed = copies.with_columns(
        partition.alias("_partition"),
        offset.fill_null(_BEFORE_ALL).alias("_offset"),
        pl.when(is_tombstone).then(pl.lit(_DELETED, dtype=pl.UInt64)).otherwise(value).alias("_state"),
        pl.col("version").fill_null(_BEFORE_ALL).alias("_number"),
    )
    newest = placed.filter(pl.col("_number") == pl.col("_number").max().over(HASH))
    last = newest.filter(pl.col("_offset") == pl.col("_offset").max().over(*HASH, "source", "_partition"))
    return last.group_by(HASH).agg(
        pl.col("version").max().alias(f"{side}_version"),
        pl.col("_state").unique().alias(f"{side}_states"),
        pl.col("is_before").any().alias(f"{side}_is_before"),
    )


def _marked(judged: pl.DataFrame, keys: pl.DataFrame, others: pl.DataFrame, verdict: Verdict, cause: Cause) -> Compared:
    is_settled = judged["verdict"].is_in([one.value for one in _SETTLED])
    turned = _among(judged, keys) & judged["in_source"] & is_settled
    marked = judged.filter(turned).select(HASH)
    return Compared(judged=_turned(judged, turned, verdict, cause), others=others.join(marked, on=HASH, how="semi"))


def _among(judged: pl.DataFrame, keys: pl.DataFrame) -> pl.Series:
    named = keys.select(*HASH, pl.lit(True).alias("_is_named")).unique()
    return judged.select(HASH).join(named, on=HASH, how="left", maintain_order="left")["_is_named"].fill_null(False)


def _turned(judged: pl.DataFrame, turned: pl.Series, verdict: Verdict, cause: Cause) -> pl.DataFrame:
    return judged.with_columns(
        pl.when(turned).then(pl.lit(cause.value)).otherwise("hint").alias("hint"),
        pl.when(turned).then(pl.lit(verdict.value)).otherwise("verdict").alias("verdict"),
    )
