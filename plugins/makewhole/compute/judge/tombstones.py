"""Find the tombstones that stand: those that no record with a value of their key follows.

Of one partition the offsets say which record came first, of a log that was cut off the newer lineage, as its records
stand at offsets that others had before, and of a topic that was made again the newer log. Partitions and topics have no
order among themselves: there the times of the records count, and a tombstone that is not later by its time deletes
nothing.
"""

from collections.abc import Mapping

import polars as pl

from makewhole.compute.frames import HASH, LOG_ORDER

_ORDERED = ("topic", "incarnation", "partition", "lineage", "offset", "time")


def log_order(
    records: pl.DataFrame, topic: str, topic_id: str, lineages: Mapping[int, int] | None = None
) -> pl.DataFrame:
    """Return records of a topic point (hash, `partition`, `offset`, `time`, `is_tombstone`) as `LOG_ORDER`. `lineages`:
    by partition, of the window that read them; None: they lie behind all windows."""
    lineage = pl.lit(None)
    if lineages is not None:
        lineage = pl.col("partition").replace_strict(lineages, default=0, return_dtype=pl.Int32)
    named = records.with_columns(
        pl.lit(topic).alias("topic"), pl.lit(topic_id).alias("topic_id"), lineage.alias("lineage")
    )
    return named.select(pl.col(name).cast(kind) for name, kind in LOG_ORDER.items())


def standing_tombstones(records: pl.DataFrame, incarnations: Mapping[str, int] | None = None) -> pl.DataFrame:
    """Return the newest standing tombstone of each key that has one (`LOG_ORDER`).

    `records` (`LOG_ORDER`) are all that is known of the keys, in any order, doubles included. `incarnations` numbers
    the ids of topics by their age; an id that it does not name is the newest, and so is what has no lineage.
    """
    known = incarnations or {}
    newest = max(known.values(), default=-1) + 1
    numbered = records.unique().with_columns(
        pl.col("topic_id").replace_strict(known, default=newest, return_dtype=pl.Int64).alias("incarnation"),
        pl.col("lineage").fill_null(pl.col("lineage").max().fill_null(-1) + 1),
    )
    tombstones = numbered.filter("is_tombstone")
    values = numbered.filter(~pl.col("is_tombstone")).select(*HASH, *_ORDERED)
    met = tombstones.join(values, on=HASH, how="inner", suffix="_value")
    followed = met.filter(~_follows()).select(*HASH, *_ORDERED)
    standing = tombstones.join(followed, on=[*HASH, *_ORDERED], how="anti", nulls_equal=True)
    newest_first = standing.sort("time", *_ORDERED[:-1], descending=True, nulls_last=True)
    return newest_first.unique(subset=HASH, keep="first", maintain_order=True).sort(HASH).select(*LOG_ORDER)


def followed_after(tombstones: pl.DataFrame, moments: pl.DataFrame) -> pl.DataFrame:
    """Return the tombstones (`LOG_ORDER`) that are later than the moment of their key (hash, `time`), for keys of which
    no record is known; of a key without a moment none is."""
    met = tombstones.join(moments.select(*HASH, pl.col("time").alias("moment")), on=HASH, how="inner")
    return met.filter((pl.col("time") > pl.col("moment")).fill_null(False)).select(*LOG_ORDER)


def _follows() -> pl.Expr:
    """Return whether a tombstone comes after the value that it is joined with."""
    is_same_topic = pl.col("topic") == pl.col("topic_value")
    is_same_log = is_same_topic & (pl.col("incarnation") == pl.col("incarnation_value"))
    is_same_lineage = pl.col("lineage") == pl.col("lineage_value")
    return (
        pl.when(is_same_log & (pl.col("partition") == pl.col("partition_value")) & is_same_lineage)
        .then(pl.col("offset") > pl.col("offset_value"))
        .when(is_same_log & (pl.col("partition") == pl.col("partition_value")))
        .then(pl.col("lineage") > pl.col("lineage_value"))
        .when(is_same_topic & (pl.col("incarnation") != pl.col("incarnation_value")))
        .then(pl.col("incarnation") > pl.col("incarnation_value"))
        .otherwise((pl.col("time") > pl.col("time_value")).fill_null(False))
    )
