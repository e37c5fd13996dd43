"""Mark the exceptions of a bucket that are not what the kernels call them: what an absence, an unreadable record,
another source or a change of the file explains, and what was not lost."""

from dataclasses import dataclass

import polars as pl

from makewhole.compute.judge.baseline import mark_before_baseline
from makewhole.compute.judge.judge_copies import BucketInput
from makewhole.compute.judge.undecidable import (
    Lags,
    mark_undecidable,
    mark_unreadable,
    name_placeholders,
    undecidable_spans,
)
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.certified import maybe_met_keys
from makewhole_spark.reconcile.judge.changed_file import mark_compare_changed, mark_hops_changed
from makewhole_spark.reconcile.judge.filter_changes import keys_kept_out, left_in, mark_filter_changed
from makewhole_spark.reconcile.judge.gathered import logs_of
from makewhole_spark.reconcile.judge.not_lost import NotLost, mark_not_lost
from makewhole_spark.reconcile.judge.other_sources import mark_unknown_to_others


@dataclass(frozen=True, kw_only=True)
class Marked:
    """The keys with their last verdicts (`lost.judged`), those of them that the filter keeps out (`HASHES`), and those
    of which earlier windows may have met rows (`MAYBE_MET`). `left_in`: the other windows in which keys left the
    filter."""

    lost: NotLost
    kept_out: pl.DataFrame
    maybe_met: pl.DataFrame
    left_in: frozenset[int]


def mark_exceptions(task: BucketTask, judged: pl.DataFrame, known: BucketInput) -> Marked:
    """Return the keys of `judged` (`JUDGED`) with their last verdicts. The order counts: what a mark has turned into
    `undecidable` no later one takes back."""
    lags = lags_of(task)
    marked = mark_before_baseline(judged, task.limits.baseline)
    marked = mark_undecidable(marked, undecidable_spans(*logs_of(task), lags))
    of_source, of_target = (end.unread.read(task.context.storage) for end in (task.source, task.target))
    marked = mark_unreadable(marked, of_source, of_target, lags)
    marked = name_placeholders(marked, known.source, known.target)
    marked = mark_unknown_to_others(task, marked, lags)
    kept_out = keys_kept_out(task, marked, known.source)
    marked = mark_filter_changed(task, marked, known, kept_out)
    marked = mark_compare_changed(task, marked, known.target)
    marked = mark_hops_changed(task, marked, known)
    maybe_met = maybe_met_keys(task, marked, known.source)
    lost = mark_not_lost(task, marked, known.source_elsewhere, maybe_met)
    return Marked(lost=lost, kept_out=kept_out, maybe_met=maybe_met, left_in=left_in(task, marked, known.source))


def lags_of(task: BucketTask) -> Lags:
    """Return how much later than its record a row may come."""
    pipeline = task.context.pipeline
    return Lags(settle=pipeline.settle, longest=pipeline.late + pipeline.pending_max_age)
