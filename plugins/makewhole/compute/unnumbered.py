"""Find the copies without a version that may be newer than the highest version: their writer does not number any more.

Records of the time before there were versions surely came before it. What came after it, or may have, is in no order
with it: which of them is the latest is not known.
"""

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.versions import ends_versions_in

_AGE, _FIRST_AGE, _PARTITIONS, _FIRST_OFFSET = "_age", "_first_age", "_partitions", "_first_offset"


def may_follow_versions(copies: pl.DataFrame, age: pl.Expr) -> pl.Series:
    """Return which copies (hashes, `version`, `partition`, `offset`, and what marks tombstones) have no version, and
    may be newer than the first copy of the highest version of their key. A tombstone is none of them.

    `age`: a number that is higher where a copy is surely newer; among equal ones the offset within a partition decides.
    """
    nothing = pl.repeat(False, len(copies), dtype=pl.Boolean, eager=True)
    if copies["version"].null_count() in (0, len(copies)):
        return nothing
    is_bare = pl.col("version").is_null() & ~ends_versions_in(copies).fill_null(False)
    aged = copies.with_columns(age.alias(_AGE), is_bare.alias("_is_bare"))
    if not aged["_is_bare"].any():
        return nothing
    highest = aged.filter(pl.col("version") == pl.col("version").max().over(HASH))
    oldest = highest.filter(pl.col(_AGE) == pl.col(_AGE).min().over(HASH))
    by_key = oldest.group_by(HASH).agg(
        pl.col(_AGE).first().alias(_FIRST_AGE), pl.col("partition").n_unique().alias(_PARTITIONS)
    )
    by_partition = oldest.group_by(*HASH, "partition").agg(pl.col("offset").min().alias(_FIRST_OFFSET))
    joined = aged.join(by_key, on=HASH, how="left", maintain_order="left").join(
        by_partition, on=[*HASH, "partition"], how="left", maintain_order="left", nulls_equal=True
    )
    is_beside = (pl.col(_PARTITIONS) > 1) | pl.col(_FIRST_OFFSET).is_null()
    is_level = (pl.col(_AGE) == pl.col(_FIRST_AGE)) & (is_beside | (pl.col("offset") > pl.col(_FIRST_OFFSET)))
    is_after = (pl.col(_AGE) > pl.col(_FIRST_AGE)) | is_level
    return joined.select((pl.col("_is_bare") & is_after).fill_null(False).alias("found"))["found"]
