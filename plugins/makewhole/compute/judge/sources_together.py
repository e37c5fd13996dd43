"""Hold what a hop's source has of a key against what other sources of the same place have of it.

Of an event all sources must have one value: which of several is right only a person can say. Of versions the latest of
all sources counts, by their numbers; without numbers nothing orders the records of two sources. A source whose latest
version does not pass the filter of its hop has left the key to the others.

A row whose key no source has in the window was held to what one of them had before; it may have what another one had.
"""

from dataclasses import dataclass, replace

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, JUDGED, Schema
from makewhole.compute.judge.latest_state import ABSENT, BEFORE, LATER, NO_POSITION, SLICE, latest_states
from makewhole.compute.versions import ends_versions_in, is_moment, is_unreadable, version_in_order
from makewhole.model.verdict import DIFFERING, Cause, Verdict

_SETTLED = (Verdict.MATCHED, Verdict.MISSING, Verdict.MISMATCHED, Verdict.DUPLICATE)
_OF_COPY = (*HASH, "place", "row_hash", "version", "is_tombstone", "ends_earlier", "is_former", "is_later")

COPIES: Schema = {name: ELSEWHERE[name] for name in _OF_COPY} | {
    "is_outside": pl.Boolean,
    "is_before": pl.Boolean,
    "source": pl.String,
}
"""Copies that a source has or had. `is_before`: no copy of the window, nor one after it. `is_outside`: it does not pass
the filter of its hop. `source` names the point."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The judged keys, and the other sources' copies (`COPIES`): of keys on which sources disagree (`others`), and the
    versions that are later than those of the hop's own source (`later`)."""

    judged: pl.DataFrame
    others: pl.DataFrame
    later: pl.DataFrame


def compare_events(judged: pl.DataFrame, own: pl.DataFrame, others: pl.DataFrame, target: pl.DataFrame) -> Compared:
    """Turn verdicts of `judged` (`JUDGED`) into conflicts where another source has another value of the key. `own`,
    `others` and `target` are `COPIES`; values that are not known disagree with none, and may be what the target has.
    Copies after the window count in their own, and explain a row all the same."""
    same = others.join(target, on=HASH, how="inner").filter(
        (pl.col("row_hash") == pl.col("row_hash_right")).fill_null(True)
    )
    judged = judged.filter(~(_is_of_before(judged) & _among(judged, same)))
    own, until_now = (copies.filter(~pl.col("is_later").fill_null(False)) for copies in (own, others))
    values = pl.concat([own, until_now]).drop_nulls("row_hash").group_by(HASH).agg(pl.col("row_hash").n_unique())
    differing = values.filter(pl.col("row_hash") > 1).select(HASH).join(until_now, on=HASH, how="semi")
    return _marked(judged, differing, others, Verdict.CONFLICT, Cause.SOURCES_DISAGREE)


def compare_versions(judged: pl.DataFrame, own: pl.DataFrame, others: pl.DataFrame, target: pl.DataFrame) -> Compared:
    """Turn verdicts of `judged` (`JUDGED`) into undecidable ones where nothing orders the versions of two sources, and
    into mismatched ones where the target holds an older version than another source had before the window.

    `own`, `others` and `target` are `COPIES`. A version that another source has in the window is judged on its own hop.
    """
    both = _latest(own, "own").join(_latest(others, "other"), on=HASH, how="inner")
    differs = pl.col("own_states").list.set_symmetric_difference("other_states").list.len() > 0
    is_ordered = _is_ordered("own_version", "other_version") & ~pl.col("own_is_open") & ~pl.col("other_is_open")
    unordered = both.filter(differs & ~is_ordered & ~pl.col("own_has_left")).select(HASH)
    ahead = both.filter(differs & is_ordered & (pl.col("other_version") > pl.col("own_version")))
    held = _latest(target, "target")
    judged = _without_rows_of_others(judged, both.join(unordered, on=HASH, how="semi"), ahead, held)
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
    later = others.join(
        ahead.select(*HASH, pl.col("other_version").alias("version")), on=[*HASH, "version"], how="semi"
    )
    compared = _marked(judged, unordered, others, Verdict.UNDECIDABLE, Cause.ORDER_UNKNOWN)
    return replace(compared, later=later)


def _without_rows_of_others(
    judged: pl.DataFrame, unordered: pl.DataFrame, ahead: pl.DataFrame, held: pl.DataFrame
) -> pl.DataFrame:
    """Drop keys that no source has in the window: rows that have the latest of another source which nothing orders with
    ours; and what another source that is ahead of ours says by itself. A gap it does not see: it has no row of it."""
    same = unordered.join(held, on=HASH, how="inner").filter(
        pl.col("target_states").list.set_intersection("other_states").list.len() > 0
    )
    others = pl.col("other_states").list
    is_gone = others.contains(pl.lit(ABSENT, dtype=pl.UInt64)) | others.contains(
        pl.lit(None, dtype=pl.UInt64), nulls_equal=True
    )
    is_missing = judged["verdict"] == Verdict.MISSING.value
    dropped = _among(judged, same) | (_among(judged, ahead) & ~is_missing) | _among(judged, ahead.filter(is_gone))
    return judged.filter(~(_is_of_before(judged) & dropped))


def hold_to_others(judged: pl.DataFrame, keys: pl.DataFrame, others: pl.DataFrame, target: pl.DataFrame) -> Compared:
    """Match the rows of keys (hashes) that the hop's own source has left to others: what another source has in the
    window its own hop judges, and of what they had before the target must hold the latest, or what came later. Where it
    surely holds something else it is mismatched, and where that is not known undecidable. `others` and `target` are
    `COPIES`."""
    standing, is_later = without_left(others), pl.col("is_later").fill_null(False)
    left = keys.select(HASH).join(
        standing.filter(~is_later & ~pl.col("is_before").fill_null(False)), on=HASH, how="anti"
    )
    is_same = (pl.col("row_hash") == pl.col("row_hash_right")).fill_null(True)
    since = standing.filter(is_later).join(target, on=HASH, how="inner").filter(is_same)
    before = standing.filter(~is_later).join(left, on=HASH, how="semi").join(since, on=HASH, how="anti")
    both = _latest(before, "other").join(_latest(target, "target"), on=HASH, how="inner")
    agrees = pl.col("other_states").list.set_intersection("target_states").list.len() > 0
    is_certain = pl.lit(True)
    for side in ("other", "target"):
        states = pl.col(f"{side}_states").list
        is_certain &= (states.len() == 1) & ~states.contains(pl.lit(None, dtype=pl.UInt64), nulls_equal=True)
    differing, unknown = both.filter(~agrees & is_certain), both.filter(~agrees & ~is_certain)
    judged = _turned(judged, _among(judged, keys), Verdict.MATCHED)
    judged = _turned(judged, _among(judged, unknown), Verdict.UNDECIDABLE, Cause.ORDER_UNKNOWN)
    judged = _turned(judged, _among(judged, differing), Verdict.MISMATCHED, Cause.STALE_VERSION)
    judged = judged.with_columns(has_later=judged["has_later"] | _among(judged, differing))
    return Compared(
        judged=judged,
        others=others.join(unknown, on=HASH, how="semi"),
        later=before.join(differing, on=HASH, how="semi"),
    )


def later_versions(own: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return the other sources' versions with a higher number than the latest of ours, as later ones (`ELSEWHERE`)."""
    newest = _latest(own, "own").select(*HASH, "own_version")
    is_higher = _is_ordered("own_version", "version") & (pl.col("version") > pl.col("own_version"))
    higher = others.join(newest, on=HASH, how="inner").filter(is_higher)
    never = [pl.lit(False).alias(name) for name in ("is_replay", "is_produced", "ends_earlier", "is_former")]
    filled = higher.with_columns(pl.lit(True).alias("is_later"), *never)
    missing = {name: kind for name, kind in ELSEWHERE.items() if name not in filled.columns}
    filled = filled.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in missing.items())
    return filled.select(pl.col(name).cast(kind) for name, kind in ELSEWHERE.items())


def without_left(copies: pl.DataFrame) -> pl.DataFrame:
    """Return what sources say of keys that they have not left: the copies that pass."""
    if not copies["is_outside"].any():
        return copies
    left = _latest_by_source(copies, "of").filter("of_has_left").select(*HASH, "source")
    return copies.filter(~pl.col("is_outside").fill_null(False)).join(left, on=[*HASH, "source"], how="anti")


def _is_ordered(column: str, other: str) -> pl.Expr:
    """Return whether two versions are of one kind, and differ."""
    is_alike = (is_moment(column) == is_moment(other)) & ~is_unreadable(column) & ~is_unreadable(other)
    return (is_alike & (pl.col(column) != pl.col(other))).fill_null(False)


def _latest(copies: pl.DataFrame, side: str) -> pl.DataFrame:
    """Return, per key, the highest version of all sources, the states (values, or that it is deleted) that could be the
    latest, whether a copy of them is from before the window, whether no version decides, and whether all have left."""
    of_sources = _latest_by_source(copies, side).with_columns(pl.col(f"{side}_version").alias("version"))
    has_version, is_there = pl.col("version").is_not_null(), pl.col(f"{side}_states").list.max() != ABSENT
    is_bare = ~has_version & is_there & has_version.any().over(HASH)
    of_sources = of_sources.with_columns(pl.col(f"{side}_is_open") | is_bare)
    number = version_in_order()
    newest = of_sources.filter((number == number.max().over(HASH)) | pl.col(f"{side}_is_open"))
    return newest.group_by(HASH).agg(
        pl.col(f"{side}_version").max(),
        pl.col(f"{side}_states").explode().unique(),
        pl.col(f"{side}_is_before", f"{side}_is_open").any(),
        pl.col(f"{side}_has_left").all(),
    )


def _latest_by_source(copies: pl.DataFrame, side: str) -> pl.DataFrame:
    """Return the latest states of each key by `source`."""
    position = pl.col("place").str.split_exact(":", 1).struct
    partition, offset = (position[at].cast(pl.Int64, strict=False) for at in (0, 1))
    is_tombstone, is_outside = (pl.col(name).fill_null(False) for name in ("is_tombstone", "is_outside"))
    value = pl.when(pl.col("row_hash") == ABSENT).then(pl.lit(1, dtype=pl.UInt64)).otherwise("row_hash")
    rank = pl.when(pl.col("is_before").fill_null(False)).then(BEFORE)
    placed = copies.with_columns(
        partition.alias("partition"),
        offset.fill_null(NO_POSITION).alias("offset"),
        pl.when(is_tombstone | is_outside).then(pl.lit(ABSENT, dtype=pl.UInt64)).otherwise(value).alias("state"),
        rank.when(pl.col("is_later").fill_null(False)).then(LATER).otherwise(SLICE).alias("rank"),
        ends_versions_in(copies).alias("ends_earlier"),
    )
    more = pl.col("is_before").any().alias(f"{side}_is_before"), is_outside.all().alias(f"{side}_has_left")
    parts = placed.partition_by("source", maintain_order=True) or [placed]
    return pl.concat(latest_states(part, side, *more, pl.col("source").first().alias("source")) for part in parts)


def _marked(judged: pl.DataFrame, keys: pl.DataFrame, others: pl.DataFrame, verdict: Verdict, cause: Cause) -> Compared:
    is_settled = judged["in_source"] & judged["verdict"].is_in([settled.value for settled in _SETTLED])
    turned = _among(judged, keys) & (is_settled | _is_of_before(judged))
    marked = judged.filter(turned).select(HASH)
    return Compared(
        judged=_turned(judged, turned, verdict, cause),
        others=others.join(marked, on=HASH, how="semi"),
        later=others.clear(),
    )


def _is_of_before(judged: pl.DataFrame) -> pl.Series:
    """Return which keys differ from what the source had in other windows alone."""
    return ~judged["in_source"] & judged["verdict"].is_in([verdict.value for verdict in DIFFERING])


def _among(judged: pl.DataFrame, keys: pl.DataFrame) -> pl.Series:
    named = keys.select(*HASH, pl.lit(True).alias("_is_named")).unique()
    return judged.select(HASH).join(named, on=HASH, how="left", maintain_order="left")["_is_named"].fill_null(False)


def _turned(judged: pl.DataFrame, turned: pl.Series, verdict: Verdict, cause: Cause | None = None) -> pl.DataFrame:
    hint = pl.lit(None if cause is None else cause.value, dtype=pl.String)
    return judged.with_columns(
        pl.when(turned).then(hint).otherwise("hint").alias("hint"),
        pl.when(turned).then(pl.lit(verdict.value)).otherwise("verdict").alias("verdict"),
    )
