"""Judge every key of one bucket of an upsert hop: the copies of a key are versions, the target must hold the latest.

The latest is the one that `makewhole.compute.judge.latest_state` finds, of all windows up to this one. A record without
a value (a tombstone) deletes its key: where it is the latest version, the target must not have the key. Older versions
in a topic are no duplicates; two rows of one key in a table always are.

A version that does not pass the hop's filter takes its key out of the hop, as a tombstone does: where it is the latest,
the target must not have the key, and one that it holds is unexpected. Versions that passed before do not count then.

A row in the slice whose key the source has in earlier windows alone is held to the latest version all the same: a
loader that was set back has written over it. So is a key whose versions in the slice do not pass the filter, where the
latest lies in an earlier window, and passes.
"""

from typing import NamedTuple

import polars as pl

from makewhole.compute.frames import HASH, IS_GONE
from makewhole.compute.indexed_keys.hop_filters import UNKNOWN_FILTER
from makewhole.compute.indexed_keys.key_runs import passing_rows
from makewhole.compute.judge.judge_copies import (
    BucketInput,
    committed_copies,
    judged_frame,
    mark_replays,
    marked,
    require_same_key,
)
from makewhole.compute.judge.latest_state import (
    ABSENT,
    BEFORE,
    FORMER,
    LATER,
    NO_POSITION,
    SLICE,
    latest_states,
    with_lives,
)
from makewhole.compute.versions import VERSION, ends_versions_in, is_moment, is_surely_below, is_unreadable
from makewhole.model.verdict import Cause, Verdict

_NO_STATES = pl.lit([], dtype=pl.List(pl.UInt64))
_IS_OUTSIDE = "is_outside"  # a column of copies of the source: it does not pass the hop's filter
_LEFT = (pl.col(_IS_OUTSIDE).all().alias("has_left"), pl.col("time").max().alias("left_time"))
"""Of what could be the latest version: whether none of it passes the filter, and the time at which a key left it."""


def judge_versions(bucket: BucketInput) -> pl.DataFrame:
    """Judge every key of the bucket.

    Returns `JUDGED`, sorted by key hash: `source_copies` are the versions in the slice, `row_hash` is of the latest.

    Raises:
        CorruptionError: two different keys share a 128-bit hash.
    """
    source = _source_versions(bucket)
    target = _target_versions(bucket)
    everywhere = _with_elsewhere(target, bucket.target_elsewhere)
    source_elsewhere = _mark_outside(bucket.source_elsewhere, bucket.hop)
    of_windows = _with_elsewhere(source, source_elsewhere).filter(pl.col("rank") != LATER)
    of_target = _aggregated_slice(target, "target")
    passing_elsewhere = passing_rows(source_elsewhere, bucket.hop)
    of_source = _aggregated_slice(source.filter(~pl.col(_IS_OUTSIDE)), "source")
    require_same_key(of_source, of_target)
    joined = (
        of_source.join(of_target, on=HASH, how="full", coalesce=True)
        .join(_outside_keys(source), on=HASH, how="full", coalesce=True)
        .join(latest_states(of_windows, "source", *_LEFT), on=HASH, how="left")
        .join(latest_states(everywhere, "target"), on=HASH, how="left")
        .join(latest_states(everywhere.filter(pl.col("rank") != LATER), "soon"), on=HASH, how="left")
        .join(_aggregated_elsewhere(bucket.target_elsewhere, "elsewhere"), on=HASH, how="left")
        .join(_aggregated_elsewhere(passing_elsewhere, "source_elsewhere"), on=HASH, how="left")
        .join(marked(bucket.unsettled, "is_unsettled"), on=HASH, how="left")
        .join(marked(bucket.overdue, "is_overdue"), on=HASH, how="left")
        .join(_other_states(source, source_elsewhere), on=HASH, how="left")
        .with_columns(pl.coalesce("key", "key_target", "key_outside").alias("key"))
        .with_columns(pl.lit(bucket.version_unit, dtype=VERSION).alias("version_unit"))
    )
    joins = _Joins(is_table="offset" not in bucket.target.columns, has_cut=bucket.has_cut)
    return judged_frame(_with_verdict(_with_defaults(joined), joins))


class _Joins(NamedTuple):
    """Hold what the hop joins: whether its target is a table. `has_cut`: part of the log at its source was cut off, and
    its offsets do not order all records."""

    is_table: bool
    has_cut: bool


# Copies as versions


def _source_versions(bucket: BucketInput) -> pl.DataFrame:
    """Return the committed versions, marked where they do not pass the hop's filter, and the keys that were handed over
    by name."""
    copies = _mark_outside(committed_copies(bucket.source), bucket.hop)
    passing = copies.filter(~pl.col(_IS_OUTSIDE)).select(HASH)
    handed = bucket.handed_over.join(passing, on=HASH, how="anti").select("key", *HASH)
    named = handed.with_columns(pl.lit(False).alias(_IS_OUTSIDE))
    return pl.concat([_versions(copies), named], how="diagonal_relaxed")


def versions_of(copies: pl.DataFrame, hop: str) -> pl.DataFrame:
    """Return the committed copies of a source as versions, each with the state of its key on a hop after it."""
    return _versions(_mark_outside(committed_copies(copies), hop))


def versions_in_order(copies: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return committed copies (with `is_replay`) and those of other windows as versions, for `latest_states`."""
    return _with_elsewhere(_versions(copies), before)


def _mark_outside(copies: pl.DataFrame, hop: str) -> pl.DataFrame:
    """Mark the copies that do not pass the filter of a hop. Where the window of one knew another filter, what it says
    of the key is not known."""
    excluded = pl.col("excluded_by").list
    is_unknown = excluded.contains(UNKNOWN_FILTER).fill_null(False)
    return copies.with_columns(
        excluded.contains(hop).fill_null(False).alias(_IS_OUTSIDE),
        pl.when(~is_unknown).then("row_hash").alias("row_hash"),
    )


def _outside_keys(source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys with versions in the slice that do not pass the hop's filter, and the time of the last."""
    outside = source.filter(_IS_OUTSIDE).group_by(HASH, maintain_order=True)
    return outside.agg(
        pl.col("key").first().alias("key_outside"),
        pl.col("time").max().alias("outside_time"),
        pl.lit(True).alias("is_outside_slice"),
    )


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
            pl.col("time").dt.epoch("us").fill_null(NO_POSITION).alias("offset"),
        )
    wanted = ("key", *HASH, "place", "time", "version", "partition", "offset", "row_hash", "state", "rank")
    marks = [name for name in ("is_replay", IS_GONE, _IS_OUTSIDE) if name in copies.columns]
    return (
        copies.unique(subset=[*HASH, "place"], keep="first", maintain_order=True)
        .with_columns(
            _state(copies),
            pl.lit(SLICE).alias("rank"),
            ends_versions_in(copies).alias("ends_earlier"),
        )
        .select(*wanted, "ends_earlier", *marks)
        .sort(*HASH, "partition", "offset", "place")
    )


def _state(copies: pl.DataFrame) -> pl.Expr:
    """Return the state of the key after a copy: a number for its compared values; null when they are not known."""
    value = pl.when(pl.col("row_hash") == ABSENT).then(pl.lit(1, dtype=pl.UInt64)).otherwise("row_hash")
    is_gone = _is_any(copies, "is_tombstone", _IS_OUTSIDE)
    return pl.when(is_gone).then(pl.lit(ABSENT, dtype=pl.UInt64)).otherwise(value).alias("state")


def _is_any(copies: pl.DataFrame, *marks: str) -> pl.Expr:
    """Return whether a copy has one of these marks, as far as there are columns of them."""
    columns = (pl.col(name).fill_null(False) for name in marks if name in copies.columns)
    return pl.any_horizontal(pl.lit(False), *columns)


def _with_elsewhere(target: pl.DataFrame, elsewhere: pl.DataFrame) -> pl.DataFrame:
    """Append the copies outside the slice. A position of a topic as text is `partition:offset`."""
    numbers = pl.col("place").str.split_exact(":", 1)
    others = elsewhere.with_columns(
        numbers.struct[0].cast(pl.Int32, strict=False).alias("partition"),
        numbers.struct[1].cast(pl.Int64, strict=False).alias("offset"),
        pl.when(pl.col("is_later").fill_null(False))
        .then(LATER)
        .when(pl.col("is_former").fill_null(False))
        .then(FORMER)
        .otherwise(BEFORE)
        .alias("rank"),
        _state(elsewhere),
        ends_versions_in(elsewhere).alias("ends_earlier"),
    )
    return pl.concat([target, others], how="diagonal_relaxed")


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
    """Return, per key, the states of the source's other versions: after the latest of the windows up to this one, and
    before it. What comes after a later deletion is after it, whatever its number; so is what comes later under the same
    number with another state. `later_version`: the lowest of those after it, where all are versions."""
    known = with_lives(_with_elsewhere(source, elsewhere).filter(pl.col("place").is_not_null()))
    is_later = pl.col("rank") == LATER
    newest = latest_states(known.filter(~is_later), "of").select(*HASH, "of_version", "of_states", "of_latest_place")
    lives_here = pl.col("lives").filter(~is_later).max().over(*HASH, "partition").fill_null(0)
    versions = known.with_columns(lives_here.alias("lives_here")).join(newest, on=HASH, how="left")
    is_known = pl.col("of_states").list.contains(pl.col("state"), nulls_equal=True)
    is_changed = (pl.col("version") == pl.col("of_version")) & ~is_known
    by_number = (pl.col("version") > pl.col("of_version")).fill_null(True) | is_changed.fill_null(False)
    is_after = is_later & (by_number | (pl.col("lives") > pl.col("lives_here")))
    numbers = pl.when(~is_unreadable()).then("version").filter(is_after)
    return versions.group_by(HASH, maintain_order=True).agg(
        pl.col("state").filter(is_after).alias("later_states"),
        pl.when(numbers.null_count() == 0).then(numbers.min()).alias("later_version"),
        pl.col("state").filter(~is_after & pl.col("place").ne_missing(pl.col("of_latest_place"))).alias("older_states"),
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
            pl.col(name).fill_null(pl.lit([ABSENT], dtype=pl.List(pl.UInt64)))
            for name in ("target_states", "soon_states")
        ),
        pl.col(
            "is_unsettled", "is_overdue", "source_is_open", "target_is_open", "has_left", "is_outside_slice"
        ).fill_null(False),
    ).with_columns(
        pl.col("source_slice_copies").alias("source_copies"),
        (pl.col("target_slice_copies") + pl.col("elsewhere_copies")).alias("target_copies"),
        (pl.col("later_states").list.len() > 0).alias("has_later"),
        pl.col("source_latest_place").alias("latest_place"),
        pl.col("source_row_hash").alias("row_hash"),
        pl.coalesce(pl.when("has_left").then("left_time"), "source_time", "target_time", "outside_time").alias("time"),
    )


def _with_verdict(frame: pl.DataFrame, joins: _Joins) -> pl.DataFrame:
    absent = _is_absent("target")
    in_slice = pl.col("in_source") | pl.col("is_outside_slice")
    known = pl.col("in_source") | (pl.col("source_elsewhere_copies") > 0)
    is_met = (pl.col("target_originals") > 0) & ~absent
    repeated = pl.lit(joins.is_table) & (pl.col("target_slice_copies") > 1)
    has_order = pl.lit(not joins.has_cut) | pl.col("source_version").is_not_null()
    set_back = pl.lit(joins.is_table) & known & is_met & has_order & ~pl.col("is_unsettled")
    set_back &= _surely_differs()
    return (
        frame.filter(in_slice | (~known & is_met) | (known & repeated) | set_back)
        .with_columns(
            pl.when(pl.col("has_left") & (in_slice | set_back) & ~(repeated & pl.col("has_later")))
            .then(_verdict_of_left())
            .when(~known & (~in_slice | pl.col("has_left")))
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
    may_be_absent = pl.col("target_states").list.contains(pl.lit(ABSENT, dtype=pl.UInt64))
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
    return (states.list.len() == 1) & (states.list.first() == ABSENT).fill_null(False)


def _is_older(side: str, of_source: str = "source_version") -> pl.Expr:
    """Return whether the side's version is below the source's. What is no version, or of another kind, is not
    ordered."""
    own = f"{side}_version"
    is_ordered = (is_moment(own) == is_moment(of_source)) & ~is_unreadable(own) & ~is_unreadable(of_source)
    return (~_is_absent(side) & is_ordered & is_surely_below(own, of_source, "version_unit")).fill_null(False)


def _surely_differs() -> pl.Expr:
    """Return for a key that the source has in other windows alone whether the target holds another version than the
    latest of them, nor a later one: of both sides it is certain which values these are."""
    is_single = (pl.col("source_states").list.len() == 1) & (pl.col("target_states").list.len() == 1)
    is_certain = is_single & ~_has_unknown("source") & ~_has_unknown("target")
    return is_certain & ~pl.any_horizontal(_holds("soon")[1], _holds("target")[1])


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
        .when(possibly | _is_any_version("source") | _is_any_version("target"))
        .then(pl.lit(Verdict.UNDECIDABLE.value))
        .when(_is_absent("target"))
        .then(pl.lit(Verdict.MISSING.value))
        .otherwise(pl.lit(Verdict.MISMATCHED.value))
    )


def _holds(side: str) -> tuple[pl.Expr, pl.Expr]:
    """Return whether the target holds the source's latest version or a later one: (surely, possibly).

    A value that is not known may be the right one.
    """
    states, of_source = pl.col(f"{side}_states"), pl.col("source_states")
    is_single = states.list.len() == 1
    has_latest = (of_source.list.set_intersection(states).list.len() > 0) & ~(is_single & _is_older(side))
    has_later = pl.col("later_states").list.set_intersection(states).list.len() > 0
    has_later &= ~(is_single & _is_older(side, "later_version"))
    is_certain = is_single & ~_has_unknown(side)
    surely = is_certain & ((has_latest & (of_source.list.len() == 1)) | has_later)
    is_unreadable = _has_unknown(side) | _has_unknown("source") | (of_source.list.len() == 0)
    return surely, has_latest | has_later | (is_unreadable & ~_is_absent(side))


def _is_any_version(side: str) -> pl.Expr:
    """Return whether versions order nothing, and the side holds several values."""
    return pl.col(f"{side}_is_open") & (pl.col(f"{side}_states").list.len() > 1)


def _has_unknown(side: str) -> pl.Expr:
    """Return whether a state that could be the side's latest is not known."""
    return pl.col(f"{side}_states").list.contains(pl.lit(None, dtype=pl.UInt64), nulls_equal=True)


def _hint() -> pl.Expr:
    """Return the cause, where only the versions show it."""
    of_source, states = pl.col("source_states"), pl.col("target_states")
    is_deletion = of_source.list.contains(pl.lit(ABSENT, dtype=pl.UInt64))
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
        .when((pl.col("verdict") == Verdict.UNDECIDABLE.value) & (pl.col("source_is_open") | pl.col("target_is_open")))
        .then(pl.lit(Cause.UNREADABLE_VERSION.value))
        .when((pl.col("verdict") == Verdict.UNDECIDABLE.value) & (_has_unknown("target") | _has_unknown("source")))
        .then(pl.lit(Cause.UNREADABLE_VALUE.value))
        .when(pl.col("verdict") == Verdict.UNDECIDABLE.value)
        .then(pl.lit(Cause.ORDER_UNKNOWN.value))
    )
