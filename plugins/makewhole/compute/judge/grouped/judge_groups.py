"""Judge every key of one bucket of a hop on which many records become one row.

The row must count the records of its key, and add their amounts up. That can be said only of *all* records of the key:
those of the window's slice, and those of the windows that handed the key over. Later records make a key pending; an
earlier window with some of them, a log that does not reach back to its beginning, or a record that cannot be added
leave it undecidable, also where the numbers agree. That a row is not there, or there several times, is known all the
same.
"""

from dataclasses import dataclass, field
from functools import partial

import polars as pl

from makewhole.compute.frames import HASH, HASHES, IS_GONE, empty
from makewhole.compute.judge.grouped.differences import causes_of_differences
from makewhole.compute.judge.grouped.elements import (
    IS_FLAWED,
    Totals,
    elements_of,
    passing_records,
    with_amounts,
    with_found,
)
from makewhole.compute.judge.judge_copies import BucketInput, judged_frame, marked, require_same_key
from makewhole.model.verdict import Cause, Verdict


@dataclass(frozen=True, kw_only=True)
class GroupFacts:
    """Facts of the records of keys (`HASHES`) besides their copies: `opened` have some in or behind an open
    transaction, `unread` perhaps one that could not be read. `is_whole`: the log was read from its beginning, and
    nothing of it was lost."""

    is_whole: bool
    opened: pl.DataFrame = field(default_factory=partial(empty, HASHES))
    unread: pl.DataFrame = field(default_factory=partial(empty, HASHES))


def judge_groups(bucket: BucketInput, totals: Totals, facts: GroupFacts) -> pl.DataFrame:
    """Return the verdict of each key (`JUDGED`, sorted by key hash). `source_copies`: its committed records that pass
    the filter; `target_copies`: its rows.

    Raises:
        CorruptionError: two different keys share a 128-bit hash.
    """
    source, target = _expected(bucket, totals), _found(bucket, totals)
    require_same_key(source, target)
    elsewhere = bucket.source_elsewhere.group_by(HASH).agg(
        pl.len().cast(pl.Int64).alias("source_elsewhere_copies"),
        pl.col("is_later").fill_null(False).any().alias("is_followed"),
        (~pl.col("is_later").fill_null(False)).any().alias("is_preceded"),
    )
    joined = (
        source.join(target, on=HASH, how="full", coalesce=True)
        .join(elsewhere, on=HASH, how="left")
        .join(marked(facts.opened, "is_opened"), on=HASH, how="left")
        .join(marked(facts.unread, "is_unread"), on=HASH, how="left")
        .join(marked(bucket.unsettled, "is_unsettled"), on=HASH, how="left")
        .join(marked(bucket.overdue, "is_overdue"), on=HASH, how="left")
        .with_columns(pl.coalesce("key", "key_target").alias("key"), *_filled())
    )
    is_repeated = pl.col("target_copies") > 1
    is_known = pl.col("source_elsewhere_copies") > 0
    judged = joined.filter(pl.col("in_source") | ~is_known | is_repeated)
    judged = judged.with_columns(_verdict(totals, is_whole=facts.is_whole))
    judged = judged.with_columns(_hint(is_whole=facts.is_whole))
    return _with_causes(bucket, totals, judged_frame(judged.with_columns(*_columns_of_judged())))


def _expected(bucket: BucketInput, totals: Totals) -> pl.DataFrame:
    """Return what the row of each key must hold (`e:<column>`), with its records and what is wrong with them; keys
    without records that were handed over are there by name."""
    records = with_amounts(passing_records(bucket.source, bucket.hop), totals)
    flawed_copies = bucket.source.filter(_is_gone(bucket.source)).select(HASH)
    elements = elements_of(records, totals)
    sums = elements.group_by(HASH).agg(
        *(pl.col(f"u:{name}").sum().alias(f"e:{name}") for name in totals.names),
        pl.col(IS_FLAWED).any(),
        pl.col("contradicts").any(),
    )
    copies = (
        records.sort("partition", "offset")
        .group_by(HASH, maintain_order=True)
        .agg(
            pl.col("key").first(),
            pl.col("key").n_unique().alias("source_keys"),
            pl.len().cast(pl.Int64).alias("source_copies"),
            pl.col("place").alias("source_places"),
            pl.col("time").max().alias("source_time"),
        )
    )
    handed = bucket.handed_over.select("key", *HASH).join(copies, on=HASH, how="anti").unique(HASH)
    named = handed.with_columns(pl.lit(1).cast(copies.schema["source_keys"]).alias("source_keys"))
    keys = pl.concat([copies, named], how="diagonal_relaxed")
    return (
        keys.join(sums, on=HASH, how="left")
        .join(marked(flawed_copies, "is_gone"), on=HASH, how="left")
        .with_columns(pl.lit(True).alias("in_source"))
    )


def _is_gone(source: pl.DataFrame) -> pl.Expr:
    return pl.col(IS_GONE).fill_null(False) if IS_GONE in source.columns else pl.lit(False)


def _found(bucket: BucketInput, totals: Totals) -> pl.DataFrame:
    """Return what the first row of each key holds (`u:<column>`), and the number and places of its rows."""
    rows = with_found(bucket.target, totals).sort("place").unique([*HASH, "place"], keep="first", maintain_order=True)
    return rows.group_by(HASH, maintain_order=True).agg(
        pl.col("key").first().alias("key_target"),
        pl.col("key").n_unique().alias("target_keys"),
        pl.len().cast(pl.Int64).alias("target_copies"),
        pl.col("place").alias("target_places"),
        pl.col("time").max().alias("target_time"),
        *(pl.col(f"u:{name}").first() for name in totals.names),
    )


def _filled() -> list[pl.Expr]:
    of_keys = ("in_source", "is_followed", "is_preceded", "is_opened", "is_unread", "is_unsettled", "is_overdue")
    flags = (*of_keys, IS_FLAWED, "contradicts", "is_gone")
    numbers = ("source_copies", "target_copies", "source_elsewhere_copies")
    return [*(pl.col(name).fill_null(False) for name in flags), *(pl.col(name).fill_null(0) for name in numbers)]


def _is_not_whole(*, is_whole: bool) -> pl.Expr:
    """Select the keys of which records are, or may be, where they cannot be added up."""
    is_gone = pl.col("is_gone") | (pl.col("source_copies") == 0)
    return pl.lit(not is_whole) | pl.col("is_preceded") | is_gone


def _is_continued() -> pl.Expr:
    return pl.col("is_followed") | pl.col("is_opened")


def _verdict(totals: Totals, *, is_whole: bool) -> pl.Expr:
    """Return the verdict: what needs no sum first, then what can never be added up, then what is not complete yet."""
    is_absent = pl.col("target_copies") == 0
    is_waiting = ~pl.col("is_overdue")
    cannot = _is_not_whole(is_whole=is_whole) | pl.col(IS_FLAWED) | pl.col("is_unread")
    agrees = pl.all_horizontal((pl.col(f"e:{name}") == pl.col(f"u:{name}")).fill_null(False) for name in totals.names)
    is_open = _is_continued() | (pl.col("is_unsettled") & ~agrees)

    def verdict(of: Verdict) -> pl.Expr:
        return pl.lit(of.value)

    return (
        pl.when(~pl.col("in_source") & (pl.col("source_elsewhere_copies") == 0))
        .then(verdict(Verdict.UNEXPECTED) if is_whole else verdict(Verdict.UNDECIDABLE))
        .when(pl.col("target_copies") > 1)
        .then(verdict(Verdict.DUPLICATE))
        .when(is_absent & is_waiting & (pl.col("is_unsettled") | _is_continued()))
        .then(verdict(Verdict.PENDING))
        .when(is_absent & _is_continued())
        .then(verdict(Verdict.UNDECIDABLE))
        .when(is_absent)
        .then(verdict(Verdict.MISSING))
        .when(cannot)
        .then(verdict(Verdict.UNDECIDABLE))
        .when(pl.col("contradicts"))
        .then(verdict(Verdict.CONFLICT))
        .when(is_open & is_waiting)
        .then(verdict(Verdict.PENDING))
        .when(is_open)
        .then(verdict(Verdict.UNDECIDABLE))
        .when(agrees)
        .then(verdict(Verdict.MATCHED))
        .otherwise(verdict(Verdict.MISMATCHED))
        .alias("verdict")
    )


def _hint(*, is_whole: bool) -> pl.Expr:
    """Return the cause of what is not known, and of a conflict."""
    verdict = pl.col("verdict")
    is_unknown = verdict == Verdict.UNDECIDABLE.value
    is_absent = pl.col("target_copies") == 0
    return (
        pl.when(verdict == Verdict.CONFLICT.value)
        .then(pl.lit(Cause.SOURCE_CONTRADICTS.value))
        .when(verdict == Verdict.DUPLICATE.value)
        .then(pl.lit(Cause.SEVERAL_ROWS.value))
        .when((is_unknown & is_absent) | ((verdict == Verdict.PENDING.value) & _is_continued()))
        .then(pl.lit(Cause.KEY_CONTINUES.value))
        .when(is_unknown & _is_not_whole(is_whole=is_whole))
        .then(pl.lit(Cause.KEY_NOT_WHOLE.value))
        .when(is_unknown & pl.col(IS_FLAWED))
        .then(pl.lit(Cause.NO_AMOUNT.value))
        .when(is_unknown & pl.col("is_unread"))
        .then(pl.lit(Cause.UNREADABLE_RECORD.value))
        .when(is_unknown & _is_continued())
        .then(pl.lit(Cause.KEY_CONTINUES.value))
        .when(is_unknown)
        .then(pl.lit(Cause.NOT_CONSUMED.value))
        .alias("hint")
    )


def _columns_of_judged() -> list[pl.Expr]:
    nothing = pl.lit(None, dtype=pl.String)
    return [
        pl.coalesce("source_time", "target_time").alias("time"),
        pl.lit(0).alias("elsewhere_copies"),
        pl.lit([], dtype=pl.List(pl.String)).alias("elsewhere_places"),
        nothing.alias("latest_place"),
        pl.lit(False).alias("has_later"),
        pl.lit(None, dtype=pl.UInt64).alias("row_hash"),
    ]


def _with_causes(bucket: BucketInput, totals: Totals, judged: pl.DataFrame) -> pl.DataFrame:
    """Name the cause where a row differs from its records as one mistake would make it."""
    wrong = judged.filter(pl.col("verdict") == Verdict.MISMATCHED.value)
    causes = {key: cause.value for key, cause in causes_of_differences(bucket, totals, wrong).items()}
    if not causes:
        return judged
    named = pl.col("key_hash").replace_strict(causes, default=None, return_dtype=pl.String)
    return judged.with_columns(pl.coalesce(named, "hint").alias("hint"))
