"""Judge one bucket of one hop on an executor: take the clean keys out, gather the copies of the others, run the kernel,
write the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from makewhole.compute import rollup
from makewhole.compute.frames import HASH, NAMED_KEYS, VERDICTS
from makewhole.compute.judge.baseline import mark_before_baseline
from makewhole.compute.judge.causes import explain
from makewhole.compute.judge.evidence import HopContext
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies, judge, mark_replays
from makewhole.compute.judge.judge_versions import judge_versions
from makewhole.compute.judge.log_history import LogHistory
from makewhole.compute.judge.undecidable import (
    Lags,
    UndecidableSpans,
    mark_undecidable,
    mark_unreadable,
    name_placeholders,
    undecidable_spans,
)
from makewhole.compute.key_index.key_runs import passing_rows
from makewhole.key_index.files import write_index_file
from makewhole.model.points import TablePoint
from makewhole.model.verdict import DIFFERING, GAPS, Cause, HopCounts, Verdict
from makewhole_spark.reconcile.bucket.answer import BucketAnswer
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.bucket.window_files import WindowFiles
from makewhole_spark.reconcile.judge.certified import recorded_in, untraced_keys
from makewhole_spark.reconcile.judge.changed_hops import mark_hops_changed
from makewhole_spark.reconcile.judge.compare_changes import mark_compare_changed
from makewhole_spark.reconcile.judge.compared_sources import SourcesTogether
from makewhole_spark.reconcile.judge.copies_outside import (
    handed_over_copies,
    keys_of_bucket,
    newly_truncated_keys,
    open_copies,
    source_copies_outside,
    source_tail,
    target_copies_outside,
    with_values_of_now,
)
from makewhole_spark.reconcile.judge.filter_changes import keys_kept_out, left_in, mark_filter_changed
from makewhole_spark.reconcile.judge.first_pass import FirstPass, first_pass, keep_exceptions
from makewhole_spark.reconcile.judge.index import known_later
from makewhole_spark.reconcile.judge.late_rows import without_reported_rows
from makewhole_spark.reconcile.judge.look_ups import confirm, look_up, rows_of_windows
from makewhole_spark.reconcile.judge.not_lost import NotLost, mark_not_lost
from makewhole_spark.reconcile.judge.other_sources import (
    mark_unknown_to_others,
    without_keys_of_others,
    without_rows_of_others,
)
from makewhole_spark.reconcile.judge.repeated_records import keys_met_before, mark_repeated
from makewhole_spark.reconcile.judge.sequence_evidence import StoredSequences
from makewhole_spark.reconcile.judge.waiting import (
    behind_limits,
    overdue_keys,
    unconsumed_copies,
    unreached,
    waiting_keys,
)
from makewhole_spark.reconcile.judge.wanted_keys import write_to_order, write_wanted


@dataclass(frozen=True, kw_only=True)
class _Gathered:
    """The kernel's input, those of its handed-over keys that are judged because a truncation took their copies, and
    since when keys wait (`WAITING`)."""

    known: BucketInput
    judged_again: pl.DataFrame
    waiting: pl.DataFrame


def judge_bucket(task: BucketTask) -> BucketAnswer:
    """Judge what is not clean, confirm every missing and every unexpected key by look-ups, judge again what they
    changed, explain, write."""
    first = first_pass(task)
    gathered = _gather(task, first)
    kernel = judge_versions if task.is_upsert else judge
    at_first = kernel(gathered.known)
    alone = _met_alone(task, first.target, at_first)
    known, rows = confirm(task, gathered.known, at_first, first.known_besides)
    together = SourcesTogether.of(task, known, at_first)
    of_all = together.with_later_versions(known)
    judged = without_keys_of_others(task, at_first if of_all.is_same_as(gathered.known) else kernel(of_all))
    judged, of_others = together.compare(judged, known)
    met = keys_met_before(task, judged)
    judged = mark_repeated(task, judged, met)
    wanted, late = ({}, {}) if task.second is not None else write_wanted(task, judged)
    to_order = {} if task.second is not None else write_to_order(task, judged)
    marked = mark_undecidable(mark_before_baseline(judged, task.limits.baseline), _undecidable_spans(task))
    of_source, of_target = (one.read(task.context.storage) for one in (task.source.unread, task.target.unread))
    marked = mark_unreadable(marked, of_source, of_target, _lags(task))
    marked = name_placeholders(marked, known.source, known.target)
    marked = mark_unknown_to_others(task, marked, _lags(task))
    kept_out = keys_kept_out(task, marked, known.source)
    marked = mark_filter_changed(task, marked, known, kept_out)
    marked = mark_compare_changed(task, marked, known.target)
    marked = mark_hops_changed(task, marked, known)
    lacking = untraced_keys(task, marked, known.source)
    found = mark_not_lost(task, marked, known.source_elsewhere, lacking)
    answer = replace(
        _write(task, first, replace(gathered, known=known), found, wanted, of_others),
        late_wanted=late,
        to_order=to_order,
        kept=keep_exceptions(task, first) if wanted or to_order else None,
        met_alone=_write_met_alone(task, alone),
        met_far_ahead=_count_far_ahead(task, alone),
        recorded_in=recorded_in(task, pl.concat([found.asked, kept_out]))
        | _met_in(task, met)
        | left_in(task, marked, known.source),
        **_write_untraced(task, lacking.join(found.asked, on=HASH, how="semi")),
    )
    if task.is_upsert and wanted and rows is not None:
        folder = f"{task.context.window.prefix}/{task.hop.slug}/looked_up"
        return replace(answer, looked_up=task.context.storage.write_parquet(folder, rows))
    return answer


# What is known


def _met_in(task: BucketTask, met: pl.DataFrame) -> frozenset[int]:
    """Return the windows that may have seen keys on both sides; when they have been asked, none."""
    return frozenset() if task.known_since.knows_certified else frozenset(met["window"].to_list())


def _gather(task: BucketTask, first: FirstPass) -> _Gathered:
    source, target = first.source, first.target
    handed = task.handed_over.select(*NAMED_KEYS)
    keys = keys_of_bucket(task, source, target, handed)
    elsewhere = source_copies_outside(task, keys)
    if len(handed):
        source = pl.concat([source, *handed_over_copies(task, handed)], how="diagonal_relaxed")
        elsewhere = elsewhere.join(source, on=[*HASH, "place"], how="anti")  # the index has the same records
    names, rows = _judged_again(task, elsewhere)
    source = pl.concat([source, rows.join(source, on=[*HASH, "place"], how="anti")], how="diagonal_relaxed")
    anew = names.join(handed, on=HASH, how="anti")
    own = pl.concat([source.select(HASH), handed.select(HASH), anew.select(HASH)])
    target = without_reported_rows(task, target, own)
    target = without_rows_of_others(task, target, pl.concat([own, elsewhere.select(HASH)]))
    waiting = waiting_keys(task, source)
    known = BucketInput(
        hop=task.hop.name,
        source=source,
        target=target,
        source_elsewhere=elsewhere,
        target_elsewhere=with_values_of_now(task, target_copies_outside(task, target, keys), source.select(HASH)),
        handed_over=pl.concat([handed, anew]),
        overdue=overdue_keys(task, waiting),
        replays=task.replays,
        has_gone=not task.is_topic(task.hop.source) and _logs(task)[1].has_unread,
        has_cut=bool(task.source.log.truncations),
        version_unit=task.context.pipeline.version_unit(task.hop),
    )
    known = replace(known, unsettled=_unsettled_offsets(task, source, known.overdue))
    return _Gathered(known=known, judged_again=anew, waiting=waiting)


def _judged_again(task: BucketTask, elsewhere: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the keys whose copies at the target a truncation took and that the source has or had; and its copies."""
    names = newly_truncated_keys(task)
    of_windows = (window.source_files for window in task.elsewhere.truncated if window.limits_now)
    rows = rows_of_windows(task, task.hop.source, sum(of_windows, WindowFiles())).join(names, on=HASH, how="semi")
    rows = rows.unique(subset=[*HASH, "place"], keep="first", maintain_order=True)
    others = names.join(rows, on=HASH, how="anti")
    point = task.context.pipeline.points[task.hop.source]
    if isinstance(point, TablePoint) and len(others):
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


def _logs(task: BucketTask) -> tuple[LogHistory, LogHistory]:
    """Return the histories of both ends, with what the rest of their logs says."""
    source, target = (
        replace(log, is_partial=log.is_partial or point in task.known_since.partial_tails)
        for log, point in ((task.source.log, task.hop.source), (task.target.log, task.hop.target))
    )
    return source, target


def _undecidable_spans(task: BucketTask) -> UndecidableSpans:
    return undecidable_spans(*_logs(task), _lags(task))


def _lags(task: BucketTask) -> Lags:
    pipeline = task.context.pipeline
    return Lags(settle=pipeline.settle, longest=pipeline.late + pipeline.pending_max_age)


def _met_alone(task: BucketTask, target: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the hashes of the target's slice that have no record in the window, sorted.

    A later window that has the record sees the rows of its own times only: it looks these keys up.
    """
    alone = target.select(HASH).unique().join(judged.filter("in_source"), on=HASH, how="anti").sort(HASH)
    return alone if task.has_slices else alone.clear()


def _count_far_ahead(task: BucketTask, alone: pl.DataFrame) -> int:
    """Count the keys of which the rest of the log has a record of a time so far ahead that a later window with it does
    not know from its own time that it must ask this one. Of a record in a window that was judged already, the time is
    not known: it counts."""
    pipeline = task.context.pipeline
    since = task.context.window.end + pipeline.late + pipeline.pending_max_age
    in_tail = source_tail(task).filter(pl.col("is_later") & (pl.col("time") >= since)).select(HASH)
    in_windows = alone.filter(known_later(task, alone))
    return pl.concat([in_tail.join(alone, on=HASH, how="semi"), in_windows]).n_unique()


def _write_met_alone(task: BucketTask, alone: pl.DataFrame) -> str | None:
    """Write hashes with a filter; return the file, None for no key."""
    folder = f"{task.context.window.prefix}/{task.hop.slug}/met_alone"
    return write_index_file(task.context.storage, folder, [alone]) if len(alone) else None


def _write_untraced(task: BucketTask, lacking: pl.DataFrame) -> dict[str, Any]:
    """Write the keys (`UNTRACED`) that other windows may be asked for; return how the answer names them."""
    if lacking.is_empty() or task.known_since.knows_certified:
        return {}
    folder = f"{task.context.window.prefix}/{task.hop.slug}/lacking"
    return {
        "lacking": task.context.storage.write_parquet(folder, lacking),
        "untraced_since": lacking["met_from"].min(),
    }


# The answer


def _write(
    task: BucketTask,
    first: FirstPass,
    gathered: _Gathered,
    found: NotLost,
    wanted: Mapping[str, str],
    of_others: Mapping[str, dict[str, Any]],
) -> BucketAnswer:
    known, judged = gathered.known, found.judged

    def known_besides(key_hash: str) -> dict[str, Any]:
        return {**found.evidence_of(key_hash), **of_others.get(key_hash, {})}

    findings = explain(judged, replace(_hop_context(task, gathered), not_lost=known_besides))
    folder, storage = f"{task.context.window.prefix}/{task.hop.slug}", task.context.storage
    causes = findings.select("key_hash", "cause")
    verdicts = (
        judged.join(causes, on="key_hash", how="left", maintain_order="left")
        .with_columns(
            pl.lit(task.hop.name).alias("hop"),
            pl.lit(task.bucket).alias("bucket"),
            (pl.col("target_copies") > 0).alias("is_held"),
        )
        .select(*VERDICTS)
    )
    not_in_source = judged.filter(~pl.col("in_source"))
    without_source: dict[str, int] = dict(not_in_source["verdict"].value_counts().rows())
    return BucketAnswer(
        hop=task.hop.name,
        bucket=task.bucket,
        counts=_counts(first, known, judged),
        digest=rollup.add_digests([first.digest, rollup.digest(judged)]),
        expected=_count_source_keys(task, first, known)
        + sum(
            without_source.get(verdict.value, 0)
            for verdict in (*GAPS, Verdict.PENDING, Verdict.UNDECIDABLE, Verdict.BEFORE_BASELINE)
        ),
        without_source=without_source.get(Verdict.DUPLICATE.value, 0),
        undecidable_without_source=without_source.get(Verdict.UNDECIDABLE.value, 0),
        before_baseline_without_source=without_source.get(Verdict.BEFORE_BASELINE.value, 0),
        differing_without_source=sum(without_source.get(verdict.value, 0) for verdict in DIFFERING),
        pending_without_source=without_source.get(Verdict.PENDING.value, 0),
        unexpected_with_source=len(
            judged.filter(pl.col("in_source") & (pl.col("verdict") == Verdict.UNEXPECTED.value))
        ),
        older_than_log=len(judged.filter(pl.col("hint") == Cause.OLDER_THAN_LOG.value)),
        judged_again=len(gathered.judged_again),
        unreached=unreached(task, known.source, first.narrow),
        clean=first.number,
        verdicts=storage.write_parquet(f"{folder}/verdicts", verdicts),
        findings=storage.write_parquet(f"{folder}/findings", findings) if len(findings) else None,
        wanted=wanted,
    )


def _hop_context(task: BucketTask, gathered: _Gathered) -> HopContext:
    points, known = task.context.pipeline.points, gathered.known
    return HopContext(
        hop=task.hop.name,
        source_kind=points[task.hop.source].kind,
        target_kind=points[task.hop.target].kind,
        source=_marked(known.source, task.source_replays),
        target=_marked(known.target.unique(subset="place", keep="first", maintain_order=True), task.replays),
        source_elsewhere=known.source_elsewhere,
        written=task.written,
        inserted=task.followed.select(HASH),
        group=task.hop.consumer_group,
        progress=None if task.hop.progress is None else task.hop.progress.text,
        committed=task.limits.group_committed,
        unconsumed=unconsumed_copies(task, known.source).select(HASH),
        waiting=gathered.waiting,
        opened_at=task.context.window.opened_at,
        target_elsewhere=known.target_elsewhere,
        truncated=newly_truncated_keys(task).select(HASH),
        open_copies=open_copies(task, task.hop.target),
        source_log=task.source.log,
        target_log=task.target.log,
        source_sequences=StoredSequences(task.context.storage, task.source.sequences),
        target_sequences=StoredSequences(task.context.storage, task.target.sequences),
        is_upsert=task.is_upsert,
    )


def _marked(copies: pl.DataFrame, replays: pl.DataFrame) -> pl.DataFrame:
    """Add to the copies of a topic whether compensation wrote them."""
    return mark_replays(copies, replays) if "offset" in copies.columns else copies


def _counts(first: FirstPass, known: BucketInput, judged: pl.DataFrame) -> HopCounts:
    """Count the keys by verdict, the clean ones as matched."""
    rest = rollup.counts(
        judged,
        source_rows=len(committed_copies(known.source)),
        # By place: where a table has versions, or no times, it is read by keys, and by its times again.
        target_rows=len(committed_copies(known.target.unique(subset="place"))),
    )
    clean = HopCounts(
        matched=first.number,
        source_keys=first.number,
        source_rows=first.source_rows,
        target_rows=first.target_rows,
    )
    return rollup.add_counts([rest, clean])


def _count_source_keys(task: BucketTask, first: FirstPass, known: BucketInput) -> int:
    """Count the keys of the source that must have a verdict, from the slice's rows and the keys handed over:
    independently of the pairing and of the kernel's join."""
    beyond = known.source.filter(~pl.col("excluded_by").list.contains(task.hop.name))
    named = pl.concat([committed_copies(beyond).select(HASH), known.handed_over.select(HASH)])
    return first.count_keys(task.hop.name, named)
