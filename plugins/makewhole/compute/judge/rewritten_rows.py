"""Find the rows of a table that differ from what earlier windows read of their keys at the source: candidates, which
are judged with all that is known of their keys.

A key whose rows are as its records were is left alone, whatever happened between: only what differs can be wrong.
"""

from decimal import Decimal

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.compute.judge.judge_versions import versions_of
from makewhole.compute.judge.latest_state import ABSENT, latest_states
from makewhole.compute.versions import VERSION

OF_WINDOW = "of_window"
"""A column of copies: the number of the window that read them."""

_STATE = pl.when(pl.col("row_hash") == ABSENT).then(pl.lit(1, dtype=pl.UInt64)).otherwise("row_hash")
_NO_VALUES = pl.lit([], dtype=pl.List(pl.UInt64))


def rewritten_rows(
    copies: pl.DataFrame, rows: pl.DataFrame, hop: str, *, is_upsert: bool, version_unit: Decimal = Decimal(0)
) -> pl.DataFrame:
    """Return all rows (`KEYS`) of the keys of which a row differs from the source's copies, or that have several rows.

    `copies` (`KEYS` or `TOPIC_KEYS`, with `of_window`) are those of earlier windows, whose hashes are of the columns
    that are compared now; `rows` are those of the same keys. Of an event any value of its copies will do, of versions
    that of the latest one, with its version where both sides have one (`version_unit` as in `BucketInput`). A key is
    left out where a value is not known.
    """
    expected = _latest(copies, hop) if is_upsert else _values(copies, hop)
    held = rows.join(expected, on=HASH, how="inner", maintain_order="left")
    if held.is_empty():
        return rows.clear()
    is_known = ~pl.col("states").list.contains(pl.lit(None, dtype=pl.UInt64), nulls_equal=True)
    has_value = pl.col("states").list.contains(_STATE)
    apart = (pl.col("version") - pl.col("of_version")).abs()
    has_version = ((apart == 0) | (apart < pl.lit(version_unit, dtype=VERSION))).fill_null(True)
    is_single = pl.lit(not is_upsert) | (pl.col("states").list.len() == 1)
    differs = ~(has_value & has_version & is_single)
    is_candidate = ((differs & is_known).any() | (pl.len() > 1)).over(HASH)
    return held.filter(is_candidate.fill_null(False)).select(rows.columns)


def _values(copies: pl.DataFrame, hop: str) -> pl.DataFrame:
    """Return the values of each event's copies: keys with `states` and `of_version`."""
    passing = committed_copies(copies).filter(~pl.col("excluded_by").list.contains(hop).fill_null(False))
    of_key = passing.group_by(HASH).agg(_STATE.unique().alias("states"))
    return of_key.with_columns(pl.lit(None, dtype=copies.schema["version"]).alias("of_version"))


def _latest(copies: pl.DataFrame, hop: str) -> pl.DataFrame:
    """Return the states of each key that could be the latest: keys with `states` and `of_version`."""
    numbers = copies.select(*HASH, "place", OF_WINDOW).unique([*HASH, "place"], keep="last")
    versions = versions_of(copies, hop).join(numbers, on=[*HASH, "place"], how="left")
    ranked = versions.with_columns(pl.col(OF_WINDOW).alias("rank"))
    states = pl.col("source_states").fill_null(_NO_VALUES).alias("states")
    return latest_states(ranked, "source").select(*HASH, states, pl.col("source_version").alias("of_version"))
