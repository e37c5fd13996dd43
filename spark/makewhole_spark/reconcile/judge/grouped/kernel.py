"""Gather what the kernel of grouped hops needs besides copies, and run it."""

from typing import Any

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.judge.grouped.differences import evidence_of_groups
from makewhole.compute.judge.grouped.elements import Totals
from makewhole.compute.judge.grouped.judge_groups import GroupFacts, judge_groups
from makewhole.compute.judge.judge_copies import BucketInput
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.read_copies import open_copies


def run_group_kernel(task: BucketTask, known: BucketInput) -> pl.DataFrame:
    """Return the verdict of each key (`JUDGED`) of a hop with `group`."""
    return judge_groups(known, _totals(task), _facts(task, known))


def group_evidence(task: BucketTask, known: BucketInput, judged: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return by key hash what findings show of what rows count and add up; nothing on other hops."""
    return {} if task.hop.group is None else evidence_of_groups(known, _totals(task), judged)


def _totals(task: BucketTask) -> Totals:
    assert task.hop.group is not None
    return Totals.of(task.hop.group, task.context.pipeline.compare)


def _facts(task: BucketTask, known: BucketInput) -> GroupFacts:
    source = task.hop.source
    end = task.source
    log = task.log_of(source, end)
    is_excluded = pl.col("excluded_by").list.contains(task.hop.name).fill_null(False)
    keys = pl.concat([known.source.select(HASH), known.target.select(HASH), known.handed_over.select(HASH)]).unique()
    unread = task.source.unread.read(task.context.storage)
    may_be = pl.lit(True) if unread.spans else pl.Series(unread.may_be(keys))
    return GroupFacts(
        is_whole=log.is_whole and not log.has_unread and not log.dropped and not task.compacted_at(source, end).is_any,
        opened=open_copies(task, source).filter(~is_excluded).select(HASH).unique(),
        unread=keys.filter(may_be),
    )
