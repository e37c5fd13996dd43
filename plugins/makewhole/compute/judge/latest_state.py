"""Find the latest version of each key among its copies, and the state of the key after it.

The latest is the one of the highest version (`makewhole.compute.versions`); without versions, and among equal ones, the
last position. A tombstone without a version ends all versions before it in its partition, and those that earlier
windows have in any: a key that comes back after it begins again, whatever its numbers.

Without versions nothing orders two records in different partitions of a topic, nor two rows of one time; a tombstone
without one has no order among records in another partition. What is no version may be any, and so may a record without
one that came after a version (`makewhole.compute.unnumbered`). Several copies could be the latest then: the states of
all are returned.
"""

import polars as pl

from makewhole.compute.frames import HASH, IS_GONE
from makewhole.compute.unnumbered import may_follow_versions
from makewhole.compute.versions import is_moment, is_unreadable, version_in_order

ABSENT = 0
"""The state of a key that has no copy, or whose latest copy is a tombstone."""

FORMER, BEFORE, SLICE, LATER = -1, 0, 1, 2
"""Ranks of copies: of a log that the topic had before it was made again, before the slice, in it, after it."""

NO_POSITION = -(2**63)
_LIFE = (*HASH, "partition")


def latest_states(copies: pl.DataFrame, side: str, *more: pl.Expr) -> pl.DataFrame:
    """Return, per key, the states that could be the latest: one, or one per partition, or those of rows of one time.

    `copies`: hashes, `place`, `partition`, `offset`, `version`, `state` (null: not known), `rank`, `ends_earlier`, and
    `is_gone` where some are of a log that is gone. Of the result, `<side>_version`, `<side>_row_hash` and
    `<side>_latest_place` are of the last of them; `<side>_is_open`: versions of the key are none, or of two kinds.
    `more`: aggregates of the copies that could be the latest.
    """
    standing = _standing(with_lives(copies.filter(pl.col("place").is_not_null())))
    last = pl.concat([_last(standing), _last(standing.filter(~pl.col("is_unsure")))]).unique([*HASH, "place"])
    return (
        last.sort(*HASH, "number", "partition", "offset", "place")
        .group_by(HASH, maintain_order=True)
        .agg(
            pl.col("state").unique(maintain_order=True).alias(f"{side}_states"),
            pl.col("version").last().alias(f"{side}_version"),
            pl.col("row_hash").last().alias(f"{side}_row_hash"),
            pl.col("place").last().alias(f"{side}_latest_place"),
            pl.col("is_open").any().alias(f"{side}_is_open"),
            *more,
        )
    )


def with_lives(copies: pl.DataFrame) -> pl.DataFrame:
    """Add column `lives`: how often the key was deleted before a copy in its partition, by tombstones without a
    version. Copies of a log that is gone came before all others."""
    former = [pl.col(name).fill_null(False) for name in (IS_GONE, "is_former") if name in copies.columns]
    is_former = pl.any_horizontal(*former) if former else pl.lit(False)
    ends = pl.col("ends_earlier").fill_null(False)
    if not copies["ends_earlier"].any():
        return copies.with_columns(pl.lit(0, dtype=pl.UInt32).alias("lives"))
    ordered = copies.with_columns((~is_former).alias("_is_of_now")).sort(*_LIFE, "_is_of_now", "offset", "place")
    return ordered.with_columns(ends.cum_sum().over(_LIFE).cast(pl.UInt32).alias("lives")).drop("_is_of_now")


def _last(copies: pl.DataFrame) -> pl.DataFrame:
    """Return, of these copies, those of each key that could be the latest; all of them where numbers decide nothing."""
    is_above = pl.col("number") == pl.col("number").max().over(HASH)
    newest = copies.filter(pl.col("is_open") | is_above)
    newest = newest.filter(pl.col("is_open") | (pl.col("rank") == pl.col("rank").max().over(HASH)))
    if IS_GONE in newest.columns:  # its offset is of another log, which came before
        is_gone = pl.col(IS_GONE).fill_null(False)
        newest = newest.filter(~is_gone | is_gone.all().over(HASH))
    at = pl.col("offset").fill_null(NO_POSITION)
    return newest.filter(pl.col("is_open") | (at == at.max().over(_LIFE)))


def _standing(copies: pl.DataFrame) -> pl.DataFrame:
    """Return the copies that no tombstone ended, with `number`, `is_open` (numbers decide nothing) and `is_unsure`: a
    tombstone in another partition may have ended it, as it came in the same windows."""
    numbered = copies.with_columns(version_in_order().alias("number"), pl.lit(False).alias("is_unsure"))
    if not (copies["lives"] > 0).any():
        return _with_openness(numbered)
    lives, rank = pl.col("lives"), pl.col("rank")
    of_now = numbered.filter(lives == lives.max().over(_LIFE))
    ended_to = rank.filter(pl.col("ends_earlier").fill_null(False)).max().over(HASH)
    of_now = of_now.filter(((lives > 0) | (rank >= ended_to)).fill_null(True))
    is_unsure = (lives == 0) & (rank == rank.filter(pl.col("ends_earlier").fill_null(False)).max().over(HASH))
    return _with_openness(of_now.with_columns(is_unsure.fill_null(False).alias("is_unsure")))


def _with_openness(copies: pl.DataFrame) -> pl.DataFrame:
    has_unreadable = is_unreadable().any().over(HASH)
    kinds = is_moment()
    has_both = (kinds.any() & ~kinds.all()).over(HASH).fill_null(False)
    is_gone = pl.col(IS_GONE).fill_null(False) if IS_GONE in copies.columns else pl.lit(False)
    follows = may_follow_versions(copies, pl.col("rank") * 2 - is_gone.cast(pl.Int32))
    marked = copies.with_columns(follows.alias("_follows"))
    is_bare = pl.col("_follows").any().over(HASH)
    return marked.with_columns((has_unreadable | has_both | is_bare).alias("is_open")).drop("_follows")
