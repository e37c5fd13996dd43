"""Find the copies in other windows that are surely older than the latest version of their key in a slice."""

import polars as pl

from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.versions import VERSION, is_moment, is_unreadable


def older_copies(runs: pl.DataFrame, latest: pl.DataFrame, *, has_former: bool) -> pl.DataFrame:
    """Return the keys (`HASHES`) of which all copies in these rows of runs are older than the latest version.

    A lower number is older; where neither has a version, an earlier offset of the same partition is. `latest`: a copy
    of a slice for each key. `has_former`: some windows read a log that the topic had before it was made again, so that
    offsets order nothing.
    """
    if runs.is_empty() or latest.is_empty():
        return empty(HASHES)
    copies = pl.concat(_copies(runs, *names) for names in (("place", "version"), ("last_place", "last_version")))
    both = copies.join(_with_position(latest).drop("place"), on=HASH, how="inner", suffix="_latest")
    number, of_latest = "version", "version_latest"
    is_ordered = (is_moment(number) == is_moment(of_latest)) & ~is_unreadable(number) & ~is_unreadable(of_latest)
    by_number = is_ordered & (pl.col(number) < pl.col(of_latest))
    has_none = pl.col(number).is_null() & pl.col(of_latest).is_null()
    is_before = (pl.col("partition") == pl.col("partition_latest")) & (pl.col("offset") < pl.col("offset_latest"))
    by_position = has_none & is_before & pl.lit(not has_former)
    is_older = by_number.fill_null(False) | by_position.fill_null(False)
    return (
        both.group_by(HASH, maintain_order=True).agg(is_older.all().alias("is_older")).filter("is_older").select(HASH)
    )


def _copies(runs: pl.DataFrame, place: str, version: str) -> pl.DataFrame:
    """Return the copies in some columns of runs: hashes, `version`, `partition`, `offset`."""
    if place not in runs.columns:
        return _with_position(empty({**HASHES, "place": pl.String, "version": VERSION})).drop("place")
    named = runs.select(*HASH, pl.col(place).alias("place"), pl.col(version).cast(VERSION).alias("version"))
    return _with_position(named.drop_nulls("place")).drop("place")


def _with_position(copies: pl.DataFrame) -> pl.DataFrame:
    """Return hashes, `place`, `version` and, of a topic, the numbers of its position."""
    numbers = pl.col("place").str.split_exact(":", 1)
    return copies.select(
        *HASH,
        "place",
        "version",
        numbers.struct[0].cast(pl.Int32, strict=False).alias("partition"),
        numbers.struct[1].cast(pl.Int64, strict=False).alias("offset"),
    )
