"""Choose the record that stands for each key of a window, when it is published once for everyone.

Of events it is the first: a copy that stands behind it with the same values was sent again, one with other values
contradicts it, and then none of them is chosen. Of versions it is the latest of all windows up to this one. What is not
known is not chosen.
"""

from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from makewhole.compute.frames import HASH, HASHES, Schema
from makewhole.compute.indexed_keys.key_runs import first_and_latest_copies, first_copies
from makewhole.compute.judge.judge_copies import committed_copies, mark_replays
from makewhole.compute.judge.judge_versions import versions_in_order
from makewhole.compute.judge.latest_state import SLICE, latest_states

COPIES = (
    *("key", *HASH, "row_hash", "version", "place", "partition", "offset"),
    *("is_aborted", "is_tombstone", "replay_plan", "time"),
)
"""Columns of a topic's snapshot that the choice is made from."""


class LeftOut(StrEnum):
    """Why no record of a key is published with a window."""

    RESEND = "resend"  # it was published with an earlier window, or a later version was
    CONFLICT = "conflict"  # its records say different things, and no rule says which is right
    UNDECIDABLE = "undecidable"  # which record counts, or what it says, is not known
    UNVERIFIED = "unverified"  # what the topic is fed from does not have it, or has another value


SURVIVORS: Schema = {"key": pl.String, "partition": pl.Int32, "offset": pl.Int64}
"""The records that are published, by their positions."""

LEFT_OUT: Schema = {"key": pl.String, "why": pl.String, "cause": pl.String, "places": pl.List(pl.String)}
"""The keys of which nothing is published, with their records. `cause`: what a finding says, where one does."""

DOUBTED: Schema = HASHES | {"why": pl.String, "cause": pl.String}
"""The keys that findings keep out."""


@dataclass(frozen=True, kw_only=True)
class ChosenSurvivors:
    """The records of some keys that are published (`SURVIVORS`), and the keys that are not (`LEFT_OUT`, without those
    that were only sent again). `resent_keys` were published before, by `key` in `resent`; `resent_records` stand behind
    the record that is."""

    survivors: pl.DataFrame
    left_out: pl.DataFrame
    resent: pl.DataFrame
    resent_keys: int
    resent_records: int


def choose_first(
    copies: pl.DataFrame, replays: pl.DataFrame, known: pl.DataFrame, doubted: pl.DataFrame
) -> ChosenSurvivors:
    """Choose the first record of each key. `known`: what the windows before had of these keys, as a run of the key
    index; `replays`: what compensation wrote (`REPLAYS`); `doubted`: `DOUBTED`."""
    ordered = mark_replays(committed_copies(copies), replays).sort(*HASH, "is_replay", "partition", "offset")
    earlier = (
        first_copies(known, is_later=False)
        .group_by(HASH)
        .agg(pl.col("row_hash").alias("earlier"), pl.len().alias("known"))
    )
    keys = ordered.group_by(HASH, maintain_order=True).agg(
        *(pl.col(name).first() for name in SURVIVORS),
        pl.col("row_hash").alias("values"),
        pl.col("place").alias("places"),
    )
    keys = keys.join(earlier, on=HASH, how="left", maintain_order="left")
    values = pl.concat_list("values", pl.col("earlier").fill_null([]))
    is_known = pl.col("known").is_not_null()
    why = (
        pl.when(values.list.drop_nulls().list.n_unique() > 1)
        .then(pl.lit(LeftOut.CONFLICT.value))
        .when(values.list.drop_nulls().list.len() < values.list.len())
        .then(pl.lit(LeftOut.UNDECIDABLE.value))
        .when(is_known)
        .then(pl.lit(LeftOut.RESEND.value))
    )
    return _chosen(keys.with_columns(why.alias("why")), doubted)


def choose_latest(copies: pl.DataFrame, known: pl.DataFrame, doubted: pl.DataFrame) -> ChosenSurvivors:
    """Choose the latest version of each key, a tombstone where that deletes it; arguments as of `choose_first`."""
    committed = committed_copies(copies)
    own = committed.sort(*HASH, "partition", "offset").group_by(HASH, maintain_order=True)
    keys = own.agg(pl.col("key").first(), pl.col("place").alias("places"))
    before = first_and_latest_copies(known, is_later=False)
    latest = latest_states(
        versions_in_order(committed.with_columns(pl.lit(False).alias("is_replay")), before),
        "of",
        pl.col("rank").last().alias("rank"),
        pl.col("partition").last().alias("partition"),
        pl.col("offset").last().alias("offset"),
    )
    numbered = before.filter(pl.col("version").is_not_null()).select(
        *HASH, "version", "row_hash", pl.col("is_tombstone").fill_null(False), pl.lit(True).alias("is_repeated")
    )
    columns = [*HASH, "of_states", "of_version", "of_row_hash", "rank", "partition", "offset"]
    keys = keys.join(latest.select(columns), on=HASH, how="left", maintain_order="left")
    of_latest = pl.col("of_states").list.first() == 0
    keys = keys.with_columns(of_latest.alias("of_tombstone")).join(
        numbered.unique([*HASH, "version", "row_hash", "is_tombstone"]),
        left_on=[*HASH, "of_version", "of_row_hash", "of_tombstone"],
        right_on=[*HASH, "version", "row_hash", "is_tombstone"],
        how="left",
        maintain_order="left",
        nulls_equal=True,
    )
    is_decided = (pl.col("of_states").list.len() == 1) & pl.col("of_states").list.first().is_not_null()
    why = (
        pl.when(~is_decided.fill_null(False))
        .then(pl.lit(LeftOut.UNDECIDABLE.value))
        .when((pl.col("rank") != SLICE) | pl.col("is_repeated").fill_null(False))
        .then(pl.lit(LeftOut.RESEND.value))
    )
    return _chosen(keys.with_columns(why.alias("why")), doubted)


def _chosen(keys: pl.DataFrame, doubted: pl.DataFrame) -> ChosenSurvivors:
    """Divide keys, each with `places` and, where nothing of it is published by itself, `why`."""
    said = doubted.unique(HASH, keep="first").rename({"why": "doubt"})
    marked = keys.join(said, on=HASH, how="left", maintain_order="left")
    is_resend = pl.col("why") == LeftOut.RESEND.value
    # A finding says more than that the key was sent again, and less than that its records contradict each other.
    why = pl.when(pl.col("why").is_null() | is_resend).then(pl.coalesce("doubt", "why")).otherwise("why")
    marked = marked.with_columns(why.alias("why"))
    chosen = marked.filter(pl.col("why").is_null())
    is_resent = (marked["why"] == LeftOut.RESEND.value).fill_null(False)
    return ChosenSurvivors(
        survivors=chosen.select(*SURVIVORS),
        left_out=marked.filter(pl.col("why").is_not_null() & ~is_resent).select(*LEFT_OUT),
        resent=marked.filter(is_resent).select("key"),
        resent_keys=int(is_resent.sum()),
        resent_records=int(chosen["places"].list.len().sum()) - len(chosen),
    )
