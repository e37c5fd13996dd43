"""Gather what is known of the keys of a bucket that are not clean: the input of the kernels."""

from dataclasses import dataclass, replace

import polars as pl

from makewhole.compute.frames import HASH, NAMED_KEYS
from makewhole.compute.indexed_keys.key_runs import passing_rows
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies
from makewhole.compute.judge.log_history import LogHistory
from makewhole.model.points import can_look_up
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.bucket.window_files import WindowFiles
from makewhole_spark.reconcile.judge.copies_outside import (
    handed_over_copies,
    keys_of_bucket,
    newly_truncated_keys,
    open_copies,
    source_copies_outside,
    target_copies_outside,
    with_values_of_now,
)
from makewhole_spark.reconcile.judge.first_pass import FirstPass
from makewhole_spark.reconcile.judge.look_ups import look_up, rows_of_windows
from makewhole_spark.reconcile.judge.other_sources import without_rows_of_others
from makewhole_spark.reconcile.judge.waiting import behind_limits, overdue_keys, unconsumed_copies, waiting_keys


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """The kernels' input, those of its handed-over keys that are judged because a truncation took their copies, and
    since when keys wait (`WAITING`)."""

    known: BucketInput
    judged_again: pl.DataFrame
    waiting: pl.DataFrame


def gather_copies(task: BucketTask, first: FirstPass) -> Gathered:
    """Return the copies of the keys that the first pass left, in the slices and elsewhere."""
    source, target = first.source, first.target
    handed = task.handed_over.select(*NAMED_KEYS)
    keys = keys_of_bucket(task, source, target, handed)
    elsewhere = source_copies_outside(task, keys)
    if len(handed):
        source = pl.concat([source, *handed_over_copies(task, handed)], how="diagonal_relaxed")
        elsewhere = elsewhere.join(source, on=[*HASH, "place"], how="anti")  # the index has the same records
    names, rows = _judged_again(task, elsewhere)
    source = pl.concat([source, rows.join(source, on=[*HASH, "place"], how="anti")], how="diagonal_relaxed")
    again = names.join(handed, on=HASH, how="anti")
    own = pl.concat([source.select(HASH), handed.select(HASH), again.select(HASH)])
    target = _without_reported_rows(task, target, own)
    target = without_rows_of_others(task, target, pl.concat([own, elsewhere.select(HASH)]))
    waiting = waiting_keys(task, source)
    known = BucketInput(
        hop=task.hop.name,
        source=source,
        target=target,
        source_elsewhere=elsewhere,
        target_elsewhere=with_values_of_now(task, target_copies_outside(task, target, keys), source.select(HASH)),
        handed_over=pl.concat([handed, again]),
        overdue=overdue_keys(task, waiting),
        replays=task.replays,
        has_gone=not task.is_topic(task.hop.source) and logs_of(task)[1].has_unread,
        has_cut=bool(task.source.log.truncations),
        version_unit=task.context.pipeline.version_unit(task.hop),
    )
    known = replace(known, unsettled=_unsettled_offsets(task, source, known.overdue))
    return Gathered(known=known, judged_again=again, waiting=waiting)


def _judged_again(task: BucketTask, elsewhere: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the keys whose copies at the target a truncation took and that the source has or had; and its copies."""
    names = newly_truncated_keys(task)
    of_windows = (window.source_files for window in task.elsewhere.truncated if window.limits_now)
    rows = rows_of_windows(task, task.hop.source, sum(of_windows, WindowFiles())).join(names, on=HASH, how="semi")
    rows = rows.unique(subset=[*HASH, "place"], keep="first", maintain_order=True)
    others = names.join(rows, on=HASH, how="anti")
    point = task.context.pipeline.points[task.hop.source]
    if can_look_up(point) and len(others):
        rows = pl.concat([rows, look_up(task, point, others.sort(HASH))], how="diagonal_relaxed")
    passing = committed_copies(rows.filter(~pl.col("excluded_by").list.contains(task.hop.name)))
    by_name = others.join(passing_rows(elsewhere, task.hop.name), on=HASH, how="semi")
    known = pl.concat([passing.select(HASH), by_name.select(HASH)]).unique()
    return names.join(known, on=HASH, how="semi").select(*NAMED_KEYS).sort(HASH), passing


def _unsettled_offsets(task: BucketTask, source: pl.DataFrame, overdue: pl.DataFrame) -> pl.DataFrame:
    """Return the keys whose record is younger than the settle time, or not reached by the consumer group in the time
    that it has."""
    frames = [open_copies(task, task.hop.target).select(HASH)]
    if "offset" in source.columns and task.limits.settled_offsets is not None:
        frames.append(behind_limits(source, task.limits.settled_offsets).select(HASH))
    frames.append(unconsumed_copies(task, source).select(HASH).join(overdue, on=HASH, how="anti"))
    return pl.concat(frames).unique()


def logs_of(task: BucketTask) -> tuple[LogHistory, LogHistory]:
    """Return the histories of both ends, with what the rest of their logs says."""
    source, target = (
        replace(log, is_partial=log.is_partial or point in task.known_since.partial_tails)
        for log, point in ((task.source.log, task.hop.source), (task.target.log, task.hop.target))
    )
    return source, target


def _without_reported_rows(task: BucketTask, target: pl.DataFrame, in_source: pl.DataFrame) -> pl.DataFrame:
    """Drop the late rows of keys of which an earlier window said already what is wrong; a row of this window's own
    times says something new. `in_source`: the keys that the source has in this window."""
    start = task.context.window.start
    if start is None or task.already_reported.is_empty():
        return target
    judged_here = pl.concat([in_source.select(HASH), target.filter(pl.col("time") >= start).select(HASH)])
    return target.join(task.already_reported.join(judged_here, on=HASH, how="anti"), on=HASH, how="anti")
