"""Judge every key of one bucket of an upsert hop: the copies of a key are versions, the target must hold the latest.

The latest is the one of the highest version number; without numbers, and among equal ones, the last position. A record
without a value (a tombstone) deletes its key: where it is the latest version, the target must not have the key. Older
versions in a topic are no duplicates; two rows of one key in a table always are.

A version that does not pass the hop's filter takes its key out of the hop, as a tombstone does: where it is the latest,
the target must not have the key, and one that it holds is unexpected. Versions that passed before do not count then.

Without numbers, nothing orders two records in different partitions of a topic, nor two rows of one time. Where both
could be the latest, and they differ, the verdict is undecidable. So it is where the value of the version that counts is
not known any more.
"""

import polars as pl

from makewhole.compute.frames import HASH, IS_GONE
from makewhole.compute.judge.judge_copies import (
    BucketInput,
    committed_copies,
    judged_frame,
    mark_replays,
    marked,
    require_same_key,
)
from makewhole.model.verdict import Cause, Verdict

_ABSENT = 0  # the state of a key that has no copy, or whose latest copy is a tombstone
_BEFORE_ALL = -(2**63)
_NO_STATES = pl.lit([], dtype=pl.List(pl.UInt64))
_SLICE, _LATER = 1, 2  # ranks of copies: in the slice, after it; earlier copies have rank 0
_IS_OUTSIDE = "is_outside"  # a column of copies of the source: it does not pass the hop's filter


def judge_versions(bucket: BucketInput) -> pl.DataFrame:
    """Judge every key of the bucket.

    Returns `JUDGED`, sorted by key hash: `source_copies` are the versions in the slice, `row_hash` is of the latest.

    Raises:
        CorruptionError: two different keys share a 128-bit hash.
    """
    source = _source_versions(bucket)
    target = _target_versions(bucket)
    everywhere = _with_elsewhere(target, bucket.target_elsewhere)
    of_target = _aggregated_slice(target, "target")
    source_elsewhere = _mark_outside(bucket.source_elsewhere, bucket.hop)
    passing_elsewhere = source_elsewhere.filter(~pl.col(_IS_OUTSIDE))
    of_source = _aggregated_slice(source.filter(~pl.col(_IS_OUTSIDE)), "source")
    require_same_key(of_source, of_target)
    joined = (
        of_source.join(of_target, on=HASH, how="full", coalesce=True)
        .join(_left_keys(source), on=HASH, how="full", coalesce=True)
        .join(_latest_states(source, "source"), on=HASH, how="left")
        .join(_latest_states(everywhere, "target"), on=HASH, how="left")
        .join(_latest_states(everywhere.filter(pl.col("rank") != _LATER), "soon"), on=HASH, how="left")
        .join(_aggregated_elsewhere(bucket.target_elsewhere, "elsewhere"), on=HASH, how="left")
        .join(_aggregated_elsewhere(passing_elsewhere, "source_elsewhere"), on=HASH, how="left")
        .join(marked(bucket.unsettled, "is_unsettled"), on=HASH, how="left")
        .join(marked(bucket.overdue, "is_overdue"), on=HASH, how="left")
        .join(_other_states(source, source_elsewhere), on=HASH, how="left")
        .with_columns(pl.coalesce("key", "key_target", "key_left").alias("key"))
    )
    is_table = "offset" not in bucket.target.columns
    return judged_frame(_with_verdict(_with_defaults(joined), is_table=is_table))


# Copies as versions


def _source_versions(bucket: BucketInput) -> pl.DataFrame:
    """Return the committed versions, marked where they do not pass the hop's filter, and the keys that were handed over
    by name."""
    copies = _mark_outside(committed_copies(bucket.source), bucket.hop)
    passing = copies.filter(~pl.col(_IS_OUTSIDE)).select(HASH)
    handed = bucket.handed_over.join(passing, on=HASH, how="anti").select("key", *HASH)
    named = handed.with_columns(pl.lit(False).alias(_IS_OUTSIDE))
    return pl.concat([_versions(copies), named], how="diagonal_relaxed")


def _mark_outside(copies: pl.DataFrame, hop: str) -> pl.DataFrame:
    """Mark the copies that do not pass the filter of a hop. Where it is not known which filters a copy passes, it
    does."""
    return copies.with_columns(pl.col("excluded_by").list.contains(hop).fill_null(False).alias(_IS_OUTSIDE))


def _left_keys(source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of which no version that could be the latest of the slice passes the hop's filter (`has_left`),
    with the time at which each left it."""
    may_have_left = source.filter(_IS_OUTSIDE).select(HASH).unique()
    left = (
        _latest_copies(source.join(may_have_left, on=HASH, how="semi"))
        .group_by(HASH, maintain_order=True)
        .agg(
            pl.col("key").first().alias("key_left"),
            pl.col("time").max().alias("left_time"),
            pl.col(_IS_OUTSIDE).all().alias("has_left"),
        )
    )
    return left.filter("has_left")


def _target_versions(bucket: BucketInput) -> pl.DataFrame:
    copies = committed_copies(bucket.target)
    if "offset" in copies.columns:
        return _versions(mark_replays(copies, bucket.replays))
    return _versions(copies.with_columns(pl.lit(False).alias("is_replay")))


def _versions(copies: pl.DataFrame) -> pl.DataFrame:
    """Return one row per copy: its version, its position in its partition, and its state.

    A table is one partition, in the order of its rows' times.
    """
    if "offset" not in copies.columns:
        copies = copies.with_columns(
            pl.lit(0, dtype=pl.Int32).alias("partition"),
            pl.col("time").dt.epoch("us").fill_null(_BEFORE_ALL).alias("offset"),
        )
    wanted = ("key", *HASH, "place", "time", "version", "partition", "offset", "row_hash", "state", "rank")
    marks = [name for name in ("is_replay", IS_GONE, _IS_OUTSIDE) if name in copies.columns]
    return (
        copies.unique(subset=[*HASH, "place"], keep="first", maintain_order=True)
        .with_columns(_state(copies), pl.lit(_SLICE).alias("rank"))
        .select(*wanted, *marks)
        .sort(*HASH, "partition", "offset", "place")
    )


def _state(copies: pl.DataFrame) -> pl.Expr:
    """Return the state of the key after a copy: a number for its compared values; null when they are not known."""
    value = pl.when(pl.col("row_hash") == _ABSENT).then(pl.lit(1, dtype=pl.UInt64)).otherwise("row_hash")
    marks = [name for name in ("is_tombstone", _IS_OUTSIDE) if name in copies.columns]
    is_gone = pl.any_horizontal(pl.lit(False), *(pl.col(name).fill_null(False) for name in marks))
    return pl.when(is_gone).then(pl.lit(_ABSENT, dtype=pl.UInt64)).otherwise(value).alias("state")


def _with_elsewhere(target: pl.DataFrame, elsewhere: pl.DataFrame) -> pl.DataFrame:
    """Append the copies outside the slice. A position of a topic as text is `partition:offset`."""
    numbers = pl.col("place").str.split_exact(":", 1)
    others = elsewhere.with_columns(
        numbers.struct[0].cast(pl.Int32, strict=False).alias("partition"),
        numbers.struct[1].cast(pl.Int64, strict=False).alias("offset"),
        pl.when(pl.col("is_later").fill_null(False)).then(_LATER).otherwise(0).alias("rank"),
        _state(elsewhere),
    )
    return pl.concat([target, others], how="diagonal_relaxed")


def _latest_states(copies: pl.DataFrame, side: str) -> pl.DataFrame:
    """Return, per key, the states that could be the latest: one, or one per partition, or those of rows of one time."""
    return (
        _latest_copies(copies)
        .group_by(HASH, maintain_order=True)
        .agg(
            pl.col("state").unique(maintain_order=True).alias(f"{side}_states"),
            pl.col("version").last().alias(f"{side}_version"),
            pl.col("row_hash").last().alias(f"{side}_row_hash"),
            pl.col("place").last().alias(f"{side}_latest_place"),
        )
    )


def _latest_copies(copies: pl.DataFrame) -> pl.DataFrame:
    """Return the copies of each key that could be its latest, by partition."""
    numbered = copies.filter(pl.col("place").is_not_null()).with_columns(
        pl.col("version").fill_null(_BEFORE_ALL).alias("number")
    )
    newest = numbered.filter(pl.col("number") == pl.col("number").max().over(HASH))
    newest = newest.filter(pl.col("rank") == pl.col("rank").max().over(HASH))
    if IS_GONE in newest.columns:  # its offset is of another log, which came before
        is_gone = pl.col(IS_GONE).fill_null(False)
        newest = newest.filter(~is_gone | is_gone.all().over(HASH))
    at = pl.col("offset").fill_null(_BEFORE_ALL)
    return newest.filter(at == at.max().over(*HASH, "partition")).sort(*HASH, "partition", "offset", "place")


def _aggregated_slice(copies: pl.DataFrame, side: str) -> pl.DataFrame:
    """Aggregate the copies of each key in the slice."""
    aggregates = [
        pl.col("key").first().alias("key" if side == "source" else "key_target"),
        pl.col("key").n_unique().alias(f"{side}_keys"),
        pl.col("place").drop_nulls().alias(f"{side}_places"),
        pl.col("time").max().alias(f"{side}_time"),
        (pl.len() if side == "source" else pl.col("place").count()).cast(pl.Int64).alias(f"{side}_slice_copies"),
    ]
    if side == "target":
        aggregates.append((~pl.col("is_replay")).sum().alias("target_originals"))
    return copies.sort(HASH, maintain_order=True).group_by(HASH, maintain_order=True).agg(aggregates)


def _aggregated_elsewhere(elsewhere: pl.DataFrame, name: str) -> pl.DataFrame:
    places = elsewhere.select(*HASH, "place").unique().sort(*HASH, "place")
    return places.group_by(HASH, maintain_order=True).agg(
        pl.col("place").alias(f"{name}_places"), pl.len().cast(pl.Int64).alias(f"{name}_copies")
    )


def _other_states(source: pl.DataFrame, elsewhere: pl.DataFrame) -> pl.DataFrame:
    """Return, per key, the states of the source's other versions: after the latest of the slice, and before it."""
    known = _with_elsewhere(source, elsewhere).filter(pl.col("place").is_not_null())
    newest = _latest_states(source, "of").select(*HASH, "of_version", "of_latest_place")
    versions = known.join(newest, on=HASH, how="left")
    by_number = pl.col("version") > pl.col("of_version")
    is_after = (pl.col("rank") != _SLICE) & by_number.fill_null(pl.col("rank") == _LATER)
    is_latest = pl.col("place") == pl.col("of_latest_place")
    return versions.group_by(HASH, maintain_order=True).agg(
        pl.col("state").filter(is_after).alias("later_states"),
        pl.col("state").filter(~is_after & ~is_latest.fill_null(False)).alias("older_states"),
    )


# The verdict


def _with_defaults(joined: pl.DataFrame) -> pl.DataFrame:
    counts = ("source_slice_copies", "target_slice_copies", "target_originals", "elsewhere_copies")
    lists = ("source_states", "later_states", "older_states")
    return joined.with_columns(
        pl.col("source_slice_copies").is_not_null().alias("in_source"),
        *(pl.col(name).fill_null(0).cast(pl.Int64) for name in (*counts, "source_elsewhere_copies")),
        *(pl.col(name).fill_null(_NO_STATES) for name in lists),
        *(
            pl.col(name).fill_null(pl.lit([_ABSENT], dtype=pl.List(pl.UInt64)))
            for name in ("target_states", "soon_states")
        ),
        pl.col("is_unsettled", "is_overdue", "has_left").fill_null(False),
    ).with_columns(
        pl.col("source_slice_copies").alias("source_copies"),
        (pl.col("target_slice_copies") + pl.col("elsewhere_copies")).alias("target_copies"),
        (pl.col("later_states").list.len() > 0).alias("has_later"),
        pl.col("source_latest_place").alias("latest_place"),
        pl.col("source_row_hash").alias("row_hash"),
        pl.coalesce("left_time", "source_time", "target_time").alias("time"),
    )


def _with_verdict(frame: pl.DataFrame, *, is_table: bool) -> pl.DataFrame:
    absent, has_left = _is_absent("target"), pl.col("has_left")
    known = pl.col("in_source") | (pl.col("source_elsewhere_copies") > 0)
    repeated = pl.lit(is_table) & (pl.col("target_slice_copies") > 1)
    unknown = ~known & (pl.col("target_originals") > 0) & ~absent
    return (
        frame.filter(pl.col("in_source") | unknown | (known & repeated) | has_left)
        .with_columns(
            pl.when(has_left & ~(repeated & pl.col("has_later")))
            .then(_verdict_of_left())
            .when(~known)
            .then(pl.lit(Verdict.UNEXPECTED.value))
            .when(repeated)
            .then(pl.lit(Verdict.DUPLICATE.value))
            .otherwise(_verdict_by_version())
            .alias("verdict")
        )
        .filter(pl.col("in_source") | (pl.col("verdict") != Verdict.MATCHED.value))
        .with_columns(_hint().alias("hint"))
    )


def _verdict_of_left() -> pl.Expr:
    """Return the verdict of a key whose latest version does not pass the hop's filter: the target must not have it,
    but for a version that came later."""
    surely = pl.any_horizontal(_holds(side)[0] for side in ("soon", "target"))
    may_be_absent = pl.col("target_states").list.contains(pl.lit(_ABSENT, dtype=pl.UInt64))
    may_be_later = pl.col("has_later") & (_has_unknown("target") | _holds("target")[1])
    return (
        pl.when(surely)
        .then(pl.lit(Verdict.MATCHED.value))
        .when(pl.col("is_unsettled") & ~pl.col("is_overdue"))
        .then(pl.lit(Verdict.PENDING.value))
        .when(may_be_absent | may_be_later)
        .then(pl.lit(Verdict.UNDECIDABLE.value))
        .otherwise(pl.lit(Verdict.UNEXPECTED.value))
    )


def _is_absent(side: str) -> pl.Expr:
    states = pl.col(f"{side}_states")
    return (states.list.len() == 1) & (states.list.first() == _ABSENT).fill_null(False)


def _is_older(side: str) -> pl.Expr:
    """Tell whether the side's version number is below the source's."""
    is_older = pl.col(f"{side}_version") < pl.col("source_version")
    return (~_is_absent(side) & is_older).fill_null(False)


def _verdict_by_version() -> pl.Expr:
    """Return the verdict of a key that the source has in the slice.

    A target that had the latest version before anything later came is matched: what came later is of another window.
    A target that has an older version may be one step behind all the time; one that has none has waited for the key.
    """
    surely, possibly = (pl.any_horizontal(_holds("soon")[at], _holds("target")[at]) for at in (0, 1))
    return (
        pl.when(surely)
        .then(pl.lit(Verdict.MATCHED.value))
        .when(pl.col("is_unsettled") & ~(pl.col("is_overdue") & _is_absent("target")))
        .then(pl.lit(Verdict.PENDING.value))
        .when(possibly)
        .then(pl.lit(Verdict.UNDECIDABLE.value))
        .when(_is_absent("target"))
        .then(pl.lit(Verdict.MISSING.value))
        .otherwise(pl.lit(Verdict.MISMATCHED.value))
    )


def _holds(side: str) -> tuple[pl.Expr, pl.Expr]:
    """Tell whether the target holds the source's latest version or a later one: (surely, possibly).

    A value that is not known may be the right one.
    """
    states, of_source = pl.col(f"{side}_states"), pl.col("source_states")
    is_single = states.list.len() == 1
    has_latest = (of_source.list.set_intersection(states).list.len() > 0) & ~(is_single & _is_older(side))
    has_later = pl.col("later_states").list.set_intersection(states).list.len() > 0
    is_certain = is_single & ~_has_unknown(side)
    surely = is_certain & ((has_latest & (of_source.list.len() == 1)) | has_later)
    is_unreadable = _has_unknown(side) | _has_unknown("source") | (of_source.list.len() == 0)
    return surely, has_latest | has_later | (is_unreadable & ~_is_absent(side))


def _has_unknown(side: str) -> pl.Expr:
    """Tell whether a state that could be the side's latest is not known."""
    return pl.col(f"{side}_states").list.contains(pl.lit(None, dtype=pl.UInt64), nulls_equal=True)


def _hint() -> pl.Expr:
    """Return the cause, where only the versions show it."""
    of_source, states = pl.col("source_states"), pl.col("target_states")
    is_deletion = of_source.list.contains(pl.lit(_ABSENT, dtype=pl.UInt64))
    is_known = pl.col("older_states").list.set_intersection(states).list.len() > 0
    is_stale = (pl.col("verdict") == Verdict.MISMATCHED.value) & (is_deletion | _is_older("target") | is_known)
    is_deleted = (pl.col("verdict") == Verdict.MISSING.value) & (pl.col("target_copies") > 0)
    has_left = pl.col("has_left") & (pl.col("verdict") == Verdict.UNEXPECTED.value)
    return (
        pl.when(has_left)
        .then(pl.lit(Cause.LEFT_FILTER.value))
        .when(is_stale)
        .then(pl.lit(Cause.STALE_VERSION.value))
        .when(is_deleted)
        .then(pl.lit(Cause.DELETED.value))
        .when((pl.col("verdict") == Verdict.UNDECIDABLE.value) & (of_source.list.len() == 0))
        .then(pl.lit(Cause.SOURCE_GONE.value))
        .when((pl.col("verdict") == Verdict.UNDECIDABLE.value) & (_has_unknown("target") | _has_unknown("source")))
        .then(pl.lit(Cause.UNREADABLE_VALUE.value))
        .when(pl.col("verdict") == Verdict.UNDECIDABLE.value)
        .then(pl.lit(Cause.ORDER_UNKNOWN.value))
    )
