"""Find the tombstones that stand: those that no record with a value of their key follows.

Of one partition the offsets say which record came first, of a log that was cut off the newer lineage, as its records
stand at offsets that others had before, and of a topic that was made again the newer log. Partitions and topics have no
order among themselves: there the times of the records count, and a tombstone that is not later by its time deletes
nothing.
"""

from collections.abc import Mapping

import polars as pl

from makewhole.compute.frames import HASH, LOG_ORDER, UNREAD_PLACES

_NEWEST_LINEAGE = 2**31 - 1
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
    numbered = records.unique().with_columns(
        _incarnation(incarnations or {}),
        pl.col("lineage").fill_null(_NEWEST_LINEAGE),
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


def may_be_deleted(
    keys: pl.DataFrame, values: pl.DataFrame, places: pl.DataFrame, incarnations: Mapping[str, int]
) -> pl.DataFrame:
    """Return the keys (`HASHES`) of `keys` (hash, `time`) of which a tombstone may have been at one of the `places`
    (`UNREAD_PLACES`): behind all of their `values` (`LOG_ORDER`) in the place's partition.

    Of a key without a value in that partition, one may have been in offsets that are gone where the topic has no value
    of it at all, and a record that could not be read may be one in any partition; both if its time may be later than
    that of the key.
    """
    placed = places.with_columns(_incarnation(incarnations))
    partition = ["topic", "partition"]
    order = [pl.col("incarnation"), pl.col("lineage").fill_null(_NEWEST_LINEAGE), pl.col("offset")]
    last = values.with_columns(_incarnation(incarnations)).sort(order).unique([*HASH, *partition], keep="last")
    met = last.join(placed, on=partition, suffix="_unread")
    is_behind = pl.lit(False)
    for name in ("offset", "lineage", "incarnation"):
        unread, value = pl.col(f"{name}_unread"), pl.col(name).fill_null(_NEWEST_LINEAGE)
        is_behind = (unread > value) | ((unread == value) & is_behind)
    candidates, left = [met.filter(is_behind).select(HASH)], keys.select(*HASH, "time")
    anywhere = placed.with_columns(pl.when(~pl.col("is_gone")).then("partition").alias("partition"))
    for topic, at, before in anywhere.select("topic", "partition", "before").unique().rows():
        of_topic = values.filter(pl.col("topic") == topic)
        there = of_topic if at is None else of_topic.filter(pl.col("partition") == at)
        may_be_later = (pl.col("time") < pl.lit(before, dtype=UNREAD_PLACES["before"])).fill_null(True)
        candidates.append(left.filter(may_be_later).join(there, on=HASH, how="anti").select(HASH))
        left = left.join(candidates[-1], on=HASH, how="anti")
    return pl.concat(candidates).unique()


def _incarnation(known: Mapping[str, int]) -> pl.Expr:
    """Number the ids of topics by their age; an id that is not known is the newest."""
    newest = max(known.values(), default=-1) + 1
    return pl.col("topic_id").replace_strict(known, default=newest, return_dtype=pl.Int64).alias("incarnation")


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
