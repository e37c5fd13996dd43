"""Find the keys of which a topic has several records, and what these say: for a topic that nothing feeds, so that no
hop finds them."""

from enum import StrEnum

import polars as pl

from makewhole.compute.frames import HASH, HASHES, KEYS, Schema
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.model.verdict import Repeat

_LIFE, _STATE, _VALUE = "life", "state", "value"
_OF_COPY = ("place", "row_hash", "version", "is_tombstone")
_GROUP = (*HASH, _LIFE, _STATE, _VALUE)
_RANK = (Repeat.RESEND.value, Repeat.UNKNOWN.value, Repeat.CONFLICT.value)

REPEATED: Schema = {
    "key": pl.String,
    **HASHES,
    "repeat": pl.String,
    "extra": pl.Int64,
    "places": pl.List(pl.String),
    "before": pl.List(pl.String),
}
"""One row per key with several records: what they are (`Repeat`), the number of records beyond the first, where those
of the window are, and the first ones that windows before have of it."""


class Order(StrEnum):
    """Name what makes several records of a key several states of it, and not the same one again."""

    NOTHING = "nothing"  # each key is one event
    VERSION = "version"  # records of different versions
    LOG = "log"  # a record with another value than the one before it in its partition


def repeated_keys(copies: pl.DataFrame, before: pl.DataFrame, order: Order, *, is_compared: bool) -> pl.DataFrame:
    """Return the keys that are there more than once (`REPEATED`), by key.

    `copies`: records of the window in the order of the log, with `is_replay` and `is_produced`: what compensation wrote
    is no second record. A tombstone ends what was before it, and the key begins again. Of versions between the first
    and the latest of a window before the index does not say whether that had them: they are not known. `before`: what
    the index has of these keys from the windows before (`makewhole.compute.indexed_keys.key_runs`), in the order of the
    windows.
    `is_compared`: the hashes of values say whether two are the same.
    """
    groups = _groups(copies, order)
    known = groups.join(_known_before(before, order), on=_GROUP, how="left", nulls_equal=True)
    known = known.with_columns(_may_be_between(known, before, order).alias("may_be_between"))
    records, first = pl.col("records"), pl.col("before").list.len().fill_null(0)
    hashes = pl.concat_list("hashes", pl.col("hashes_before").fill_null([])).list.unique()
    values = hashes.list.drop_nulls().list.len()
    is_unknown = (hashes.list.contains(None) if is_compared else pl.lit(True)) | pl.col("may_be_between")
    rank = pl.when((values > 1) & is_compared).then(2).when(is_unknown | (values == 0)).then(1).otherwise(0)
    is_new = (first == 0) & ~pl.col("may_be_between")
    repeated = known.filter((records > 1) | ~is_new).with_columns(
        rank.alias("rank"), (records - is_new).cast(pl.Int64).alias("extra"), pl.col("before").fill_null([])
    )
    return (
        repeated.group_by(HASH)
        .agg(
            pl.col("key").first(),
            pl.col("rank").max().replace_strict(range(3), _RANK, return_dtype=pl.String).alias("repeat"),
            pl.col("extra").sum(),
            pl.col("places").list.explode().sort(),
            pl.col("before").list.explode().drop_nulls(),
        )
        .select(*REPEATED)
        .sort("key")
    )


def _may_be_between(known: pl.DataFrame, before: pl.DataFrame, order: Order) -> pl.Series:
    """Return which groups have a version that a window before may have had between its first and its latest one."""
    if order is not Order.VERSION or before.is_empty():
        return pl.repeat(False, len(known), eager=True)
    ends = [pl.col(name) for name in ("version", "last_version")]
    spans = before.select(*HASH, pl.min_horizontal(ends).alias("least"), pl.max_horizontal(ends).alias("most"))
    spans = spans.filter(pl.col("least") < pl.col("most"))
    is_between = (pl.col("least") < pl.col(_STATE)) & (pl.col(_STATE) < pl.col("most"))
    is_there = pl.col("before").is_null() & (pl.col(_LIFE) == 0)
    met = known.filter(is_there).join(spans, on=HASH, how="inner").filter(is_between)
    marked = met.select(_GROUP).unique().with_columns(pl.lit(True).alias("_is_met"))
    return known.join(marked, on=_GROUP, how="left", nulls_equal=True, maintain_order="left")["_is_met"].fill_null(
        False
    )


def _groups(copies: pl.DataFrame, order: Order) -> pl.DataFrame:
    """Return the groups of records that are one state of a key each, with the number of their records."""
    own = committed_copies(copies).filter(~pl.col("is_replay") & ~pl.col("is_produced"))
    in_partition = [*HASH, "partition"]
    own = own.sort("partition", "offset", maintain_order=True).with_columns(
        pl.col("is_tombstone").cast(pl.Int64).cum_sum().over(in_partition).alias(_LIFE)
    )
    state, value = pl.lit(None, dtype=KEYS["version"]), pl.lit(None, dtype=KEYS["row_hash"])
    if order is Order.VERSION:
        state = pl.col("version")
    elif order is Order.LOG:
        life = [*in_partition, _LIFE]
        is_other = pl.col("row_hash").ne_missing(pl.col("row_hash").shift(1).over(life)).fill_null(True)
        own = own.with_columns(is_other.cast(pl.Int64).alias("_is_other"))
        # Between partitions nothing says which state was before another: they are held together by their values.
        state = pl.col("_is_other").cum_sum().over([*life, "row_hash"]).cast(KEYS["version"])
        value = pl.col("row_hash")
    own = own.with_columns(state.alias(_STATE), value.alias(_VALUE)).filter(~pl.col("is_tombstone"))
    return own.group_by(_GROUP).agg(
        pl.col("key").first(),
        pl.len().alias("records"),
        pl.col("row_hash").unique().alias("hashes"),
        pl.col("place").alias("places"),
    )


def _known_before(before: pl.DataFrame, order: Order) -> pl.DataFrame:
    """Return what windows before have of keys that were not deleted since, as the groups have it. By the log alone
    nothing says which of their values was the last."""
    first = before.filter(~pl.col("is_extra").fill_null(False))
    if order is Order.VERSION:
        latest = [pl.col(f"last_{name}").alias(name) for name in _OF_COPY]
        both = pl.concat([first.select(*HASH, *_OF_COPY), first.select(*HASH, *latest)])
        known = both.filter(pl.col("place").is_not_null()).unique([*HASH, "version"], keep="first", maintain_order=True)
        state = pl.col("version")
    else:
        newest = first.group_by(HASH, maintain_order=True).last()
        ends = pl.coalesce("last_is_tombstone", "is_tombstone").alias("is_tombstone")
        known = (newest if order is Order.NOTHING else newest.clear()).with_columns(ends)
        state = pl.lit(None, dtype=KEYS["version"])
    return known.filter(~pl.col("is_tombstone").fill_null(False)).select(
        *HASH,
        pl.lit(0, dtype=pl.Int64).alias(_LIFE),
        state.cast(KEYS["version"]).alias(_STATE),
        pl.lit(None, dtype=KEYS["row_hash"]).alias(_VALUE),
        pl.concat_list("row_hash").alias("hashes_before"),
        pl.concat_list("place").alias("before"),
    )
