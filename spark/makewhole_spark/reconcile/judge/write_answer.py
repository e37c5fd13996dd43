"""Write the answer of a judged bucket: its verdicts and findings, its numbers, and what a second round is asked for."""

from dataclasses import replace
from typing import Any

import polars as pl

from makewhole.compute import rollup
from makewhole.compute.frames import HASH, VERDICTS
from makewhole.compute.judge.causes import explain
from makewhole.compute.judge.evidence import HopContext
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies, mark_replays
from makewhole.model.verdict import DIFFERING, GAPS, Cause, HopCounts, Verdict
from makewhole_spark.reconcile.bucket.answer import BucketAnswer
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.asked import AskedOfTails
from makewhole_spark.reconcile.judge.certified import recorded_in
from makewhole_spark.reconcile.judge.confirmed import Confirmed
from makewhole_spark.reconcile.judge.copies_outside import newly_truncated_keys, open_copies
from makewhole_spark.reconcile.judge.first_pass import FirstPass
from makewhole_spark.reconcile.judge.gathered import Gathered
from makewhole_spark.reconcile.judge.marks import Marked
from makewhole_spark.reconcile.judge.sequence_evidence import StoredSequences
from makewhole_spark.reconcile.judge.waiting import unconsumed_copies, unreached


def write_answer(
    task: BucketTask, first: FirstPass, gathered: Gathered, confirmed: Confirmed, marked: Marked, asked: AskedOfTails
) -> BucketAnswer:
    """Explain the findings, and write everything. `gathered`: what was known before the look-ups."""
    known, judged = confirmed.known, marked.lost.judged

    def known_besides(key_hash: str) -> dict[str, Any]:
        return {**marked.lost.evidence_of(key_hash), **confirmed.of_others.get(key_hash, {})}

    findings = explain(judged, replace(_hop_context(task, known, waiting=gathered.waiting), not_lost=known_besides))
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
        truncated=len(gathered.judged_again),
        unreached=unreached(task, known.source, first.narrow),
        clean=first.number,
        verdicts=storage.write_parquet(f"{folder}/verdicts", verdicts),
        findings=storage.write_parquet(f"{folder}/findings", findings) if len(findings) else None,
        wanted=asked.wanted,
        late_wanted=asked.late,
        to_order=asked.to_order,
        recorded_in=recorded_in(task, pl.concat([marked.lost.asked, marked.kept_out]))
        | _met_in(task, confirmed.met)
        | marked.left_in,
        **asked.keeps(task, first),
        **confirmed.alone.write(task),
        **_write_maybe_met(task, marked.maybe_met.join(marked.lost.asked, on=HASH, how="semi")),
    )


def _hop_context(task: BucketTask, known: BucketInput, *, waiting: pl.DataFrame) -> HopContext:
    points = task.context.pipeline.points
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
        waiting=waiting,
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


def _met_in(task: BucketTask, met: pl.DataFrame) -> frozenset[int]:
    """Return the windows that may have seen keys on both sides; when they have been asked, none."""
    return frozenset() if task.known_since.knows_certified else frozenset(met["window"].to_list())


def _write_maybe_met(task: BucketTask, maybe_met: pl.DataFrame) -> dict[str, Any]:
    """Write the keys (`MAYBE_MET`) that other windows may be asked for; return how the answer names them."""
    if maybe_met.is_empty() or task.known_since.knows_certified:
        return {}
    folder = f"{task.context.window.prefix}/{task.hop.slug}/untraced"
    return {
        "maybe_met": task.context.storage.write_parquet(folder, maybe_met),
        "maybe_met_since": maybe_met["met_from"].min(),
    }
