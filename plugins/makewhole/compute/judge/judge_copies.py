"""Judge every key of one bucket of an event hop by counting its copies.

A key that the source has (in this window) and the target does not is missing, more than one copy at the target is a
duplicate, one copy is compared. A side that has different values of a key is a conflict: whichever the other side
holds, it agrees with nothing that is certain. A key that only the target has in this window is looked up in the rest
of the source first. Where it is found with another value, and offsets of the target were gone unread, it is
undecidable: the window of the source may have seen another copy. A row of a table with such a key and another value is
mismatched, whichever window has its record: something has written over it. A copy that compensation wrote in the place
of another one counts as that one. A copy that it produced, because the topic had none, counts like any other: an
original that comes all the same is the second copy.

Under upsert the copies of a key are versions: see `makewhole.compute.judge.judge_versions`.
"""

from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Self

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, HASHES, JUDGED, REPLAYS, empty
from makewhole.compute.keys import hash_hex
from makewhole.model.errors import CorruptionError
from makewhole.model.verdict import Cause, Verdict


@dataclass(frozen=True, kw_only=True)
class BucketInput:
    """The copies of the keys of one bucket on one hop, and what bears on their absence.

    `source` and `target`: copies in the window's slice (`KEYS` or `TOPIC_KEYS`). `source_elsewhere` and
    `target_elsewhere`: copies outside it. `handed_over`: keys that an earlier window left to this one. `unsettled`:
    keys whose absence does not count yet. `overdue`: keys that have waited for longer than they may: their absence
    counts all the same. `replays`: records that compensation wrote, by the journal. `has_gone`: offsets of the target
    were gone before they were read, in this window or another. `has_cut`: part of the source's log was cut off.
    `kept_out`: keys of versions of which a ledger has rows of other windows now, and none that passes the hop's filter.
    `version_unit`: two versions that differ by less may be one, as a column of the source or of the target holds it.
    """

    hop: str
    source: pl.DataFrame
    target: pl.DataFrame
    source_elsewhere: pl.DataFrame = field(default_factory=lambda: empty(ELSEWHERE))
    target_elsewhere: pl.DataFrame = field(default_factory=lambda: empty(ELSEWHERE))
    handed_over: pl.DataFrame = field(default_factory=lambda: empty({"key": pl.String} | HASHES))
    unsettled: pl.DataFrame = field(default_factory=lambda: empty(HASHES))
    overdue: pl.DataFrame = field(default_factory=lambda: empty(HASHES))
    replays: pl.DataFrame = field(default_factory=lambda: empty(REPLAYS))
    kept_out: pl.DataFrame = field(default_factory=lambda: empty(HASHES))
    has_gone: bool = False
    has_cut: bool = False
    version_unit: Decimal = Decimal(0)

    def is_same_as(self, other: Self) -> bool:
        """Whether every verdict must be the same: the same copies and keys, in the same order."""
        pairs = ((getattr(self, item.name), getattr(other, item.name)) for item in fields(self))
        return all(
            mine is theirs or (mine.equals(theirs) if isinstance(mine, pl.DataFrame) else mine == theirs)
            for mine, theirs in pairs
        )


def judge(bucket: BucketInput) -> pl.DataFrame:
    """Judge every key of the bucket.

    Returns `JUDGED`, sorted by key hash: `source_copies` in the slice, `target_copies` all that count, and of them
    `elsewhere_copies` outside the slice; places in the order of the copies; `row_hash` of the source's first copy.

    Raises:
        CorruptionError: two different keys share a 128-bit hash.
    """
    source = _aggregated(_source_copies(bucket), "source")
    target = _aggregated(_target_copies(bucket.target, bucket.replays), "target")
    require_same_key(source, target)
    joined = (
        source.join(target, on=HASH, how="full", coalesce=True)
        .join(_aggregated_elsewhere(bucket.target_elsewhere, "target_elsewhere"), on=HASH, how="left")
        .join(_aggregated_elsewhere(bucket.source_elsewhere, "source_elsewhere"), on=HASH, how="left")
        .join(marked(still_pending(bucket), "is_unsettled"), on=HASH, how="left")
        .with_columns(pl.coalesce("key", "key_target").alias("key"))
    )
    counted = joined.with_columns(
        pl.col("source_copies").is_not_null().alias("in_source"),
        pl.col("source_copies").fill_null(0),
        pl.col("target_originals", "target_replays", "target_elsewhere_originals", "target_elsewhere_replays")
        .fill_null(0)
        .cast(pl.Int64),
        pl.col("source_elsewhere_copies").fill_null(0),
    ).with_columns(_counted_copies().alias("target_copies"), *_values_known())
    is_table, is_store = "offset" not in bucket.source.columns, "offset" not in bucket.target.columns
    judged = counted.filter(_is_judged_here(has_gone=bucket.has_gone, is_store=is_store))
    judged = judged.with_columns(_verdict(is_table=is_table, has_gone=bucket.has_gone))
    return _with_judged_columns(judged.with_columns(_hint()))


def _source_copies(bucket: BucketInput) -> pl.DataFrame:
    """Return the committed copies that pass the hop's filter, and the keys that were handed over by name."""
    copies = committed_copies(bucket.source.filter(~pl.col("excluded_by").list.contains(bucket.hop)))
    handed = bucket.handed_over.join(copies.select(HASH), on=HASH, how="anti")
    # Elements of one record are at one place, and may contradict each other.
    marks = () if "is_tombstone" in copies.columns else (pl.lit(False).alias("is_tombstone"),)
    rows = _kernel_columns(copies.with_columns(*marks), "is_tombstone")
    rows = rows.unique(subset=[*HASH, "place", "row_hash"], keep="first", maintain_order=True)
    return pl.concat([rows, handed], how="diagonal_relaxed")


def _target_copies(target: pl.DataFrame, replays: pl.DataFrame) -> pl.DataFrame:
    """Return the committed copies with `is_replay`: written by a plan that the journal confirms."""
    if "is_aborted" in target.columns:
        return _kernel_columns(mark_replays(committed_copies(target), replays), "is_replay")
    rows = _kernel_columns(target).unique(subset=[*HASH, "place"], keep="first", maintain_order=True)
    return rows.with_columns(pl.lit(False).alias("is_replay"))


def still_pending(bucket: BucketInput) -> pl.DataFrame:
    """Return the keys whose absence does not count yet and that may wait on."""
    return bucket.unsettled.join(bucket.overdue, on=HASH, how="anti")


def marked(keys: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the distinct hashes of keys with a column that is true."""
    return keys.select(HASH).unique().with_columns(pl.lit(True).alias(name))


def committed_copies(copies: pl.DataFrame) -> pl.DataFrame:
    """Drop the copies of aborted transactions; rows of a table are all committed."""
    return copies.filter(~pl.col("is_aborted")) if "is_aborted" in copies.columns else copies


def mark_replays(copies: pl.DataFrame, replays: pl.DataFrame) -> pl.DataFrame:
    """Add `is_replay` and `is_produced`: this copy stands where the plan that its lineage header names wrote this key,
    in the place of another copy or as the key's own."""
    in_order = copies.sort("partition", "offset", maintain_order=True)  # elements of one record keep their order
    if replays.is_empty():
        return in_order.with_columns(pl.lit(False).alias("is_replay"), pl.lit(False).alias("is_produced"))
    place = ["replay_plan", *HASH, "partition", "offset"]
    placed = replays.rename({"plan": "replay_plan"}).unique(place)
    return in_order.join(
        placed.select(*place, "is_produced"), on=place, how="left", maintain_order="left"
    ).with_columns((~pl.col("is_produced")).fill_null(False).alias("is_replay"), pl.col("is_produced").fill_null(False))


def _kernel_columns(frame: pl.DataFrame, *extra: str) -> pl.DataFrame:
    """Select the kernel's columns of each copy, in the order of the log, or of the places of a table."""
    order = ("partition", "offset") if "offset" in frame.columns else ("place",)
    return frame.sort(order, maintain_order=True).select("key", *HASH, "row_hash", "time", "place", *extra)


def _aggregated(copies: pl.DataFrame, side: str) -> pl.DataFrame:
    """Aggregate copies to one row per key; places in the order of the copies."""
    is_target = side == "target"
    aggregates = [
        pl.col("key").first().alias("key_target" if is_target else "key"),
        pl.col("key").n_unique().alias(f"{side}_keys"),
        pl.col("row_hash").drop_nulls().unique(maintain_order=True).alias(f"{side}_row_hashes"),
        pl.col("place").drop_nulls().alias(f"{side}_places"),
        pl.col("time").max().alias(f"{side}_time"),
    ]
    if is_target:
        aggregates += [
            (~pl.col("is_replay")).sum().alias("target_originals"),
            pl.col("is_replay").sum().alias("target_replays"),
        ]
    else:
        of_first = pl.col("row_hash").filter(pl.col("place") == pl.col("place").first())
        is_value = pl.col("place").is_not_null() & ~pl.col("is_tombstone").fill_null(False)
        of_first_value = pl.col("row_hash").filter(
            is_value & (pl.col("place") == pl.col("place").filter(is_value).first())
        )
        aggregates += [
            pl.len().cast(pl.Int64).alias("source_copies"),
            (of_first.drop_nulls().n_unique() > 1).alias("source_is_split"),
            ((of_first_value.len() > 0) & of_first_value.is_null().all()).alias("source_has_unknown_first"),
        ]
    return copies.sort(HASH, maintain_order=True).group_by(HASH, maintain_order=True).agg(aggregates)


def _aggregated_elsewhere(frame: pl.DataFrame, prefix: str) -> pl.DataFrame:
    grouped = frame.sort(*HASH, "place").group_by(HASH, maintain_order=True)
    return grouped.agg(
        (~pl.col("is_replay")).sum().alias(f"{prefix}_originals"),
        pl.col("is_replay").sum().alias(f"{prefix}_replays"),
        pl.len().cast(pl.Int64).alias(f"{prefix}_copies"),
        pl.col("place").alias(f"{prefix}_places"),
        pl.col("row_hash").drop_nulls().first().alias(f"{prefix}_row_hash"),
        pl.col("row_hash").drop_nulls().unique(maintain_order=True).alias(f"{prefix}_row_hashes"),
        pl.col("row_hash")
        .filter(~pl.col("is_later"))
        .drop_nulls()
        .unique(maintain_order=True)
        .alias(f"{prefix}_earlier"),
        pl.col("row_hash").is_null().any().alias(f"{prefix}_has_unknown"),
    )


def require_same_key(source: pl.DataFrame, target: pl.DataFrame) -> None:
    """Check that no hash stands for two keys. Both frames are by key: `key` or `key_target`, and the number of texts.

    Raises:
        CorruptionError: two different keys share a 128-bit hash.
    """
    met = source.join(target, on=HASH, how="inner").filter(pl.col("key") != pl.col("key_target"))
    if len(met) or (source["source_keys"] > 1).any() or (target["target_keys"] > 1).any():
        raise CorruptionError(
            "two different business keys share one 128-bit hash; nothing was decided. Report this: it should not happen"
        )


def _counted_copies() -> pl.Expr:
    """Return the number of copies that count: originals, or one where there are only replays."""
    originals = pl.col("target_originals") + pl.col("target_elsewhere_originals")
    replays = pl.col("target_replays") + pl.col("target_elsewhere_replays")
    return pl.when((originals == 0) & (replays > 0)).then(1).otherwise(originals)


def _is_judged_here(*, has_gone: bool, is_store: bool) -> pl.Expr:
    """Select the keys of this window's source, and those of the target that the source lacks or that repeat.

    Where offsets are gone (`has_gone`), also those that agree with nothing of the source: its own window may have seen
    another copy, which cannot be read any more. In a table (`is_store`) such rows are wrong, as far as all values of
    the source are known.
    """
    is_met = pl.col("target_originals") > 0
    repeated = pl.col("target_copies") > 1
    unknown = pl.col("source_elsewhere_copies") == 0
    source, target = pl.col("source_values"), pl.col("target_values")
    differs = (source.list.len() > 0) & (target.list.len() > 0) & (_agreeing() == 0)
    is_wrong = differs & pl.lit(is_store) & ~pl.col("source_elsewhere_has_unknown").fill_null(False)
    return pl.col("in_source") | (is_met & (repeated | unknown | (differs & pl.lit(has_gone)) | is_wrong))


def _agreeing() -> pl.Expr:
    return pl.col("source_values").list.set_intersection("target_values").list.len()


def _values_known() -> list[pl.Expr]:
    """Return the values of both sides: of the source those of the slice and of the copies before it, and those of all
    others only where the slice has none."""
    nothing = pl.lit([], dtype=pl.List(pl.UInt64))
    source, beyond = (pl.col(f"source{where}_row_hashes").fill_null(nothing) for where in ("", "_elsewhere"))
    earlier = pl.col("source_elsewhere_earlier").fill_null(nothing)
    target, elsewhere = (pl.col(f"target{where}_row_hashes").fill_null(nothing) for where in ("", "_elsewhere"))
    return [
        pl.when(source.list.len() > 0).then(source.list.set_union(earlier)).otherwise(beyond).alias("source_values"),
        target.list.set_union(elsewhere).alias("target_values"),
    ]


def _verdict(*, is_table: bool, has_gone: bool) -> pl.Expr:
    """Return the verdict. What a log says first of an event counts where it is repeated, and where that is not known
    nothing agrees or differs; rows of a table (`is_table`) have no order that says which of them is right, nor have
    elements of its first record (`source_is_split`). They are reported in the window that they lie in: to another one a
    repeat is a duplicate."""
    known = pl.col("in_source") | (pl.col("source_elsewhere_copies") > 0)
    source, target = pl.col("source_values"), pl.col("target_values")
    contradicts = source.list.len() > 1
    repeated = pl.col("target_copies") > 1
    absent = pl.col("target_copies") == 0
    agreeing = _agreeing()
    has_before = pl.col("source_elsewhere_earlier").list.len().fill_null(0) > 0
    is_first_unknown = pl.col("source_has_unknown_first").fill_null(False) & ~has_before
    has_no_first = pl.lit(is_table) | (pl.col("source_is_split").fill_null(False) & ~has_before)
    return (
        pl.when(~known)
        .then(pl.lit(Verdict.UNEXPECTED.value))
        .when(repeated & ~(contradicts & pl.col("in_source") & has_no_first))
        .then(pl.lit(Verdict.DUPLICATE.value))
        .when(~pl.col("in_source") & pl.lit(has_gone))
        .then(pl.lit(Verdict.UNDECIDABLE.value))
        .when(absent & pl.col("is_unsettled").fill_null(False))
        .then(pl.lit(Verdict.PENDING.value))
        .when(absent)
        .then(pl.lit(Verdict.MISSING.value))
        .when(contradicts | ((target.list.len() > 1) & (agreeing > 0)))
        .then(pl.lit(Verdict.CONFLICT.value))
        .when(is_first_unknown | (source.list.len() == 0) | (target.list.len() == 0))
        .then(pl.lit(Verdict.UNDECIDABLE.value))
        .when(agreeing == 0)
        .then(pl.lit(Verdict.MISMATCHED.value))
        .otherwise(pl.lit(Verdict.MATCHED.value))
        .alias("verdict")
    )


def _hint() -> pl.Expr:
    """Return the cause, where only the values show it."""
    contradicts = pl.col("source_values").list.len() > 1
    is_gone = (pl.col("source_values").list.len() == 0) & (pl.col("source_places").list.len().fill_null(0) == 0)
    verdict = pl.col("verdict")
    return (
        pl.when((verdict == Verdict.CONFLICT.value) & contradicts)
        .then(pl.lit(Cause.SOURCE_CONTRADICTS.value))
        .when(verdict == Verdict.CONFLICT.value)
        .then(pl.lit(Cause.TARGET_CONTRADICTS.value))
        .when((verdict == Verdict.UNDECIDABLE.value) & ~pl.col("in_source"))
        .then(pl.lit(Cause.EXPIRED.value))
        .when((verdict == Verdict.UNDECIDABLE.value) & is_gone)
        .then(pl.lit(Cause.SOURCE_GONE.value))
        .when(verdict == Verdict.UNDECIDABLE.value)
        .then(pl.lit(Cause.UNREADABLE_VALUE.value))
        .alias("hint")
    )


def _with_judged_columns(frame: pl.DataFrame) -> pl.DataFrame:
    return judged_frame(
        frame.with_columns(
            (pl.col("target_elsewhere_originals") + pl.col("target_elsewhere_replays")).alias("elsewhere_copies"),
            pl.col("target_elsewhere_places").alias("elsewhere_places"),
            pl.col("source_row_hashes").list.first().alias("row_hash"),
            pl.coalesce("source_time", "target_time").alias("time"),
            pl.lit(None, dtype=pl.String).alias("latest_place"),
            pl.lit(False).alias("has_later"),
        )
    )


def judged_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Select the columns of `JUDGED`, lists never null, sorted by key hash."""
    no_places = pl.lit([], dtype=pl.List(pl.String))
    lists = [name for name, kind in JUDGED.items() if kind == pl.List(pl.String)]
    return (
        frame.with_columns(hash_hex(), *(pl.col(name).fill_null(no_places) for name in lists))
        .select(*(pl.col(name).cast(kind) for name, kind in JUDGED.items()))
        .sort(*HASH)
    )
