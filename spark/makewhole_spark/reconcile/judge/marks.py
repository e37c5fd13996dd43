"""Mark the exceptions of a bucket that are not what the kernel calls them: what an absence, an unreadable record,
another source or a change of the file explains, and what was not lost."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from makewhole.compute.judge.baseline import mark_before_baseline
from makewhole.compute.judge.undecidable import (
    Lags,
    mark_undecidable,
    mark_unreadable,
    name_placeholders,
    undecidable_spans,
)
from makewhole.model.hops import Semantics
from makewhole.model.verdict import Cause, Verdict
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.certified import SeenKeys, mark_vanished
from makewhole_spark.reconcile.judge.erased_keys import ErasedInLog, mark_erased, mark_tombstone_unknown
from makewhole_spark.reconcile.judge.file_changes import mark_compare_changed, mark_filter_changed, mark_hops_changed
from makewhole_spark.reconcile.judge.gather_copies import Gathered
from makewhole_spark.reconcile.judge.in_doubt import mark_in_doubt
from makewhole_spark.reconcile.judge.other_sources import mark_unknown_to_others
from makewhole_spark.reconcile.judge.pending import uncommitted_at_sources
from makewhole_spark.reconcile.judge.verdicts import explained, has_left, has_verdict


@dataclass(frozen=True, kw_only=True)
class Marked:
    """The keys with their last verdicts (`JUDGED`), the unexpected ones of which the filter excludes a record
    (`HASHES`), and what stores and certified windows say of missing ones."""

    judged: pl.DataFrame
    excluded: pl.DataFrame
    erased: ErasedInLog
    seen: SeenKeys

    def evidence_of(self, key_hash: str) -> dict[str, Any]:
        """Return what shows that a key is not lost, or must not be written; nothing for any other key."""
        return self.erased.evidence_of(key_hash) or self.seen.evidence_of(key_hash)


def mark_exceptions(task: BucketTask, judged: pl.DataFrame, looked_up: Gathered) -> Marked:
    """Return the keys of `judged` (`JUDGED`) with their last verdicts, by what is known after the look-ups.

    The marks in their order, each with the verdicts that it may turn, and into what. The first that explains a key
    counts (see `verdicts`).

    - before_baseline: missing, unexpected → before_baseline; undecidable where it is not known from when on to judge.
    - undecidable, for a part of a log that is gone: missing, unexpected, mismatched → undecidable.
    - unreadable, for a record that could not be read, or was compacted by another key than its own: missing,
      unexpected, mismatched → undecidable.
    - uncommitted at a source, for a row whose record is in or behind an open transaction: unexpected → undecidable, but
      for keys that left the filter.
    - placeholders: none; it names the cause where a value is not known.
    - unknown_to_others: unexpected, mismatched → undecidable.
    - filter_changed: missing, unexpected, mismatched, under upsert duplicate → undecidable; and it names the cause
      where a value is not known.
    - compare_changed: mismatched → undecidable.
    - hops_changed: missing, unexpected; without a record in the window also mismatched, conflict, duplicate →
      undecidable.
    - erased: missing → erased.
    - vanished: missing → vanished.
    - tombstone_unknown: missing → undecidable. It comes after `vanished`: a row that a window saw is gone from the
      store, whether or not a tombstone in what the log has lost says why.
    - in_doubt: mismatched, duplicate, conflict → pending; without a record in the window, and unexpected →
      undecidable.
    """
    pipeline, known = task.context.pipeline, looked_up.known
    lags = Lags(settle=pipeline.settle, longest=pipeline.late + pipeline.pending_max_age)
    logs = task.log_of(task.hop.source, task.source), task.log_of(task.hop.target, task.target)
    source, target = task.source, task.target
    of_source, of_target = (end.unread.read(task.context.storage) for end in (source, target))
    marked = mark_before_baseline(judged, task.limits.baseline)
    marked = mark_undecidable(marked, undecidable_spans(*logs, lags))
    takes_latest = task.hop.semantics is Semantics.UPSERT
    marked = mark_unreadable(marked, of_source, of_target, lags, takes_latest=takes_latest)
    of_source, of_target = task.compacted_at(task.hop.source, source), task.compacted_at(task.hop.target, target)
    marked = mark_unreadable(marked, of_source, of_target, lags, takes_latest=takes_latest, cause=Cause.COMPACTED)
    is_unmatched = has_verdict(Verdict.UNEXPECTED) & ~has_left()
    marked = explained(marked, is_unmatched, uncommitted_at_sources(task), Cause.IN_FLIGHT)
    marked = name_placeholders(marked, known.source, known.target)
    marked = mark_unknown_to_others(task, marked, lags)
    marked, excluded = mark_filter_changed(task, marked, known)
    marked = mark_compare_changed(task, marked, known.target)
    marked = mark_hops_changed(task, marked, known)
    marked, erased = mark_erased(task, marked)
    marked, seen = mark_vanished(task, marked, known.source, known.source_elsewhere)
    marked = mark_tombstone_unknown(marked, erased)
    marked = mark_in_doubt(marked, looked_up.in_doubt, looked_up.source_in_doubt, known.overdue)
    return Marked(judged=marked, excluded=excluded, erased=erased, seen=seen)
