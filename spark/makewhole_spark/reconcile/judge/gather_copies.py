"""Gather what is known of the keys of a bucket that are not clean: the input of the kernel."""

from dataclasses import dataclass, field

import polars as pl

from makewhole.compute.frames import HASH, HASHES, NAMED_KEYS, empty
from makewhole.compute.indexed_keys.key_runs import passing_rows
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies
from makewhole.model.points import can_look_up
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.bucket.window_files import WindowFiles
from makewhole_spark.reconcile.judge.copies_outside import (
    handed_over_copies,
    newly_truncated_keys,
    source_copies_outside,
    target_copies_outside,
    with_values_of_now,
)
from makewhole_spark.reconcile.judge.first_pass import FirstPass
from makewhole_spark.reconcile.judge.in_doubt import KeysHeld
from makewhole_spark.reconcile.judge.other_sources import without_rows_of_others
from makewhole_spark.reconcile.judge.pending import overdue_keys, unsettled_in_log, waiting_keys
from makewhole_spark.reconcile.judge.read_copies import look_up, passing_copies, rows_of_windows


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """The kernel's input (`known`), those of its handed-over keys that are there because a truncation took their
    copies, since when keys wait (`WAITING`), the target's rows that were looked up (None: it was not asked), and the
    keys that transactions in doubt may hold there, and at the source."""

    known: BucketInput
    truncated: pl.DataFrame
    waiting: pl.DataFrame
    target_rows: pl.DataFrame | None = None
    in_doubt: KeysHeld = field(default_factory=KeysHeld)
    source_in_doubt: KeysHeld = field(default_factory=KeysHeld)


def gather_copies(task: BucketTask, first: FirstPass) -> Gathered:
    """Return the copies of the keys that the first pass left, in the slices and elsewhere."""
    handed, keys = task.handed_over.select(*NAMED_KEYS), _keys_of_bucket(task, first)
    source, elsewhere, truncated = _gather_source(task, first.source, handed, keys)
    own = pl.concat(frame.select(HASH) for frame in (source, handed, truncated))
    target = _without_reported_rows(task, first.target, own)
    target = without_rows_of_others(task, target, pl.concat([own, elsewhere.select(HASH)]))
    waiting = waiting_keys(task, source)
    overdue = overdue_keys(task.context, waiting)
    known = BucketInput(
        hop=task.hop.name,
        source=source,
        target=target,
        source_elsewhere=elsewhere,
        target_elsewhere=with_values_of_now(task, target_copies_outside(task, target, keys), source.select(HASH)),
        handed_over=pl.concat([handed, truncated]),
        unsettled=unsettled_in_log(task, source, overdue),
        overdue=overdue,
        replays=task.replays,
        has_gone=not task.is_topic(task.hop.source) and task.log_of(task.hop.target, task.target).has_unread,
        has_cut=bool(task.source.log.truncations),
        version_unit=task.context.pipeline.version_unit(task.hop),
    )
    return Gathered(known=known, truncated=truncated, waiting=waiting)


def _keys_of_bucket(task: BucketTask, first: FirstPass) -> pl.DataFrame:
    """Return the keys (`HASHES`) that a bucket's verdicts can be about: those of both slices, those that were handed
    over, those whose rows are followed, and those that truncations took which this window noticed."""
    frames = (first.source, first.target, task.handed_over, task.followed, newly_truncated_keys(task))
    return pl.concat(frame.select(HASH) for frame in frames).unique(maintain_order=True)


def _gather_source(
    task: BucketTask, slice_: pl.DataFrame, handed: pl.DataFrame, keys: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the copies that the source has in the slice or for keys that were handed over, those that it has
    elsewhere, and the keys that are judged as if they were handed over: a truncation took their copies at the
    target."""
    source, elsewhere = slice_, source_copies_outside(task, keys)
    if len(handed):
        source = pl.concat([source, *handed_over_copies(task, handed)], how="diagonal_relaxed")
        elsewhere = elsewhere.join(source, on=[*HASH, "place"], how="anti")  # the index has the same records
    names, copies = _truncated_at_target(task, elsewhere)
    others = copies.join(source, on=[*HASH, "place"], how="anti")
    source = pl.concat([source, others], how="diagonal_relaxed")
    return source, elsewhere, names.join(handed, on=HASH, how="anti")


def _truncated_at_target(task: BucketTask, elsewhere: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the keys whose copies at the target a truncation took and that the source has or had; and its copies."""
    names = newly_truncated_keys(task)
    of_windows = (window.source_files for window in task.elsewhere.truncated if window.limits_now)
    rows = rows_of_windows(task.context, task.hop.source, sum(of_windows, WindowFiles()))
    rows = rows.join(names, on=HASH, how="semi").unique(subset=[*HASH, "place"], keep="first", maintain_order=True)
    others = names.join(rows, on=HASH, how="anti")
    point = task.context.pipeline.points[task.hop.source]
    if can_look_up(point) and len(others):
        rows = pl.concat([rows, look_up(task.context, point, others.sort(HASH))], how="diagonal_relaxed")
    passing = committed_copies(passing_copies(rows, task.hop.name))
    by_name = others.join(passing_rows(elsewhere, task.hop.name), on=HASH, how="semi")
    of_source = pl.concat([passing.select(HASH), by_name.select(HASH)]).unique()
    return names.join(of_source, on=HASH, how="semi").select(*NAMED_KEYS).sort(HASH), passing


def _without_reported_rows(task: BucketTask, target: pl.DataFrame, in_source: pl.DataFrame) -> pl.DataFrame:
    """Drop the late rows of keys of which an earlier window said already what is wrong; a row of this window's own
    times says something new, and so does one more than were reported, where no window judges the key again.
    `in_source`: the keys that the source has in this window."""
    start = task.context.window.start
    if start is None or task.already_reported.is_empty():
        return target
    judged_here = pl.concat([in_source.select(HASH), target.filter(pl.col("time") >= start).select(HASH)])
    reported = task.already_reported.join(judged_here, on=HASH, how="anti")
    reported = reported.join(_with_more_rows(task, target, reported), on=HASH, how="anti")
    return target.join(reported, on=HASH, how="anti")


def _with_more_rows(task: BucketTask, target: pl.DataFrame, reported: pl.DataFrame) -> pl.DataFrame:
    """Return the keys (`HASHES`) of a table's late rows of which it has more rows now than were reported (`REPORTED`),
    where the windows that reported them are closed. Only these are looked up."""
    closed = reported.group_by(HASH).agg(pl.col("copies").max(), pl.col("copies").is_null().any().alias("is_open"))
    late = target.join(closed.filter(~pl.col("is_open")), on=HASH, how="semi").select(*NAMED_KEYS).unique(HASH)
    point = task.context.pipeline.points[task.hop.target]
    if late.is_empty() or not can_look_up(point):
        return empty(HASHES)
    rows = look_up(task.context, point, late.sort(HASH)).group_by(HASH).agg(pl.col("place").n_unique().alias("rows"))
    return rows.join(closed, on=HASH, how="inner").filter(pl.col("rows") > pl.col("copies")).select(*HASHES)
