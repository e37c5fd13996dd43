"""Write the answer of a judged bucket: its verdicts and findings, its numbers, and the keys that it met alone."""

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from makewhole.compute import rollup
from makewhole.compute.frames import HASH, VERDICTS
from makewhole.compute.judge.causes import explain
from makewhole.compute.judge.clean_keys import count_keys
from makewhole.compute.judge.evidence import HopContext
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies, mark_replays
from makewhole.key_index.files import write_index_file
from makewhole.model.verdict import DIFFERING, GAPS, Cause, HopCounts, Verdict
from makewhole.tables.in_doubt import evidence_of_doubt, together
from makewhole.window.masks import mask_on
from makewhole_spark.reconcile.bucket.answer import BucketAnswer
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.copies_outside import newly_truncated_keys
from makewhole_spark.reconcile.judge.first_pass import FirstPass
from makewhole_spark.reconcile.judge.gather_copies import Gathered
from makewhole_spark.reconcile.judge.grouped.kernel import group_evidence
from makewhole_spark.reconcile.judge.index import maybe_in
from makewhole_spark.reconcile.judge.marks import Marked
from makewhole_spark.reconcile.judge.missing_records import missing_records, rows_outside
from makewhole_spark.reconcile.judge.partial_transactions import partial_transactions
from makewhole_spark.reconcile.judge.pending import unconsumed_copies, unreached
from makewhole_spark.reconcile.judge.read_copies import open_copies, passing_copies, tail_of
from makewhole_spark.reconcile.judge.sequence_evidence import StoredSequences
from makewhole_spark.reconcile.judge.verdicts import has_verdict


def write_answer(
    task: BucketTask,
    first: FirstPass,
    looked_up: Gathered,
    marked: Marked,
    of_others: Mapping[str, dict[str, Any]],
    asked: Mapping[str, Any],
) -> BucketAnswer:
    """Explain the findings, and write everything. `looked_up`: what is known after the look-ups; `of_others`: by key
    hash, evidence of what other sources have; `asked`: what a second round is asked for, as the answer names it."""
    known, judged = looked_up.known, marked.judged
    groups = group_evidence(task, known, judged)
    seen = (of_others, partial_transactions(task, judged), rows_outside(task, judged), groups)

    def known_besides(key_hash: str) -> dict[str, Any]:
        return marked.evidence_of(key_hash) | dict(ChainMap(*(dict(each.get(key_hash, {})) for each in seen)))

    storage = task.context.storage
    mask = mask_on(task.context.pipeline, task.hop, storage)
    context = replace(_hop_context(task, looked_up), not_lost=known_besides)
    findings = explain(judged, context, dict if mask is None else mask.evidence)
    return BucketAnswer(
        hop=task.hop.name,
        bucket=task.bucket,
        counts=_counts(first, known, judged),
        digest=rollup.add_digests([first.digest, rollup.digest(judged)]),
        older_than_log=len(judged.filter(pl.col("hint") == Cause.OLDER_THAN_LOG.value)),
        truncated=len(looked_up.truncated),
        unreached=unreached(task.limits.group_committed, known.source, first.narrow),
        missing_records=missing_records(task, known.source, judged),
        clean=first.number,
        in_doubt=looked_up.in_doubt.transactions,
        source_in_doubt=looked_up.source_in_doubt.transactions,
        held_in_doubt=_count_held(task, looked_up, judged, findings),
        verdicts=storage.write_parquet(task.folder("verdicts"), _verdicts(task, judged, findings, known.target)),
        findings=storage.write_parquet(task.folder("findings"), findings) if len(findings) else None,
        **_expected(judged, _count_source_keys(task, first, known)),
        **_write_met_alone(task, first.target, judged),
        **asked,
    )


def _verdicts(task: BucketTask, judged: pl.DataFrame, findings: pl.DataFrame, target: pl.DataFrame) -> pl.DataFrame:
    """Return the keys as the gate reads them (`VERDICTS`). `target`: the copies that the kernel had of the target."""
    causes = findings.select("key_hash", "cause")
    return (
        judged.join(causes, on="key_hash", how="left", maintain_order="left")
        .with_columns(
            pl.lit(task.hop.name).alias("hop"),
            pl.lit(task.bucket).alias("bucket"),
            ((pl.col("target_copies") > 0) & ~_are_other_versions(task, judged, target)).alias("is_held"),
        )
        .select(*VERDICTS)
    )


def _are_other_versions(task: BucketTask, judged: pl.DataFrame, target: pl.DataFrame) -> pl.Expr:
    """Select the keys with several rows, all of which surely have other values than the latest version: a later window
    must not take them for it."""
    several = judged.filter(has_verdict(Verdict.DUPLICATE) & ~pl.col("has_later") & pl.col("row_hash").is_not_null())
    if not task.is_upsert or several.is_empty():
        return pl.lit(value=False)
    rows = target.join(several.select(*HASH, pl.col("row_hash").alias("latest")), on=HASH, how="inner")
    may_be_latest = rows.filter((pl.col("row_hash") == pl.col("latest")).fill_null(True))
    others = several.join(may_be_latest, on=HASH, how="anti")
    return pl.col("key_hash").is_in(others["key_hash"].to_list())


def _count_held(task: BucketTask, looked_up: Gathered, judged: pl.DataFrame, findings: pl.DataFrame) -> dict[str, int]:
    """Count the keys in doubt, by the point at which transactions may hold them."""
    in_doubt = findings.filter(pl.col("cause") == Cause.IN_DOUBT.value).select("key_hash")
    keys = judged.join(in_doubt, on="key_hash", how="semi")
    at_target = len(keys.join(looked_up.in_doubt.keys, on=HASH, how="semi"))
    return {task.hop.target: at_target, task.hop.source: len(keys) - at_target}


def _expected(judged: pl.DataFrame, source_keys: int) -> dict[str, Any]:
    """Return the number of verdicts that there must be, and of those of keys that the source does not have in the
    window, by the names of the answer. `source_keys`: the number of keys that it has."""
    not_in_source = judged.filter(~pl.col("in_source"))
    by_verdict: dict[str, int] = dict(not_in_source["verdict"].value_counts().rows())

    def number(*verdicts: Verdict) -> int:
        return sum(by_verdict.get(verdict.value, 0) for verdict in verdicts)

    of_target = (*GAPS, Verdict.PENDING, Verdict.UNDECIDABLE, Verdict.BEFORE_BASELINE)
    return {
        "expected": source_keys + number(*of_target),
        "without_source": number(Verdict.DUPLICATE),
        "undecidable_without_source": number(Verdict.UNDECIDABLE),
        "before_baseline_without_source": number(Verdict.BEFORE_BASELINE),
        "differing_without_source": number(*DIFFERING),
        "pending_without_source": number(Verdict.PENDING),
        "unexpected_with_source": len(judged.filter(pl.col("in_source") & has_verdict(Verdict.UNEXPECTED))),
    }


def _hop_context(task: BucketTask, looked_up: Gathered) -> HopContext:
    points, known = task.context.pipeline.points, looked_up.known
    return HopContext(
        hop=task.hop.name,
        source_kind=points[task.hop.source].kind,
        target_kind=points[task.hop.target].kind,
        source=_with_replays(known.source, task.source_replays),
        target=_with_replays(_rows_once(known.target), task.replays),
        source_elsewhere=known.source_elsewhere,
        written=task.written,
        inserted=task.followed.select(HASH),
        group=task.hop.consumer_group,
        progress=None if task.hop.progress is None else task.hop.progress.text,
        committed=task.limits.group_committed,
        sink=task.limits.sink,
        copier=task.limits.copier,
        unconsumed=unconsumed_copies(known.source, task.limits.group_committed).select(HASH),
        waiting=looked_up.waiting,
        opened_at=task.context.window.opened_at,
        target_elsewhere=known.target_elsewhere,
        truncated=newly_truncated_keys(task).select(HASH),
        open_copies=open_copies(task, task.hop.target),
        uncommitted=open_copies(task, task.hop.source),
        source_log=task.source.log,
        target_log=task.target.log,
        source_sequences=StoredSequences(task.context.storage, task.source.sequences),
        target_sequences=StoredSequences(task.context.storage, task.target.sequences),
        in_doubt=looked_up.in_doubt.keys,
        doubt=evidence_of_doubt(together(looked_up.in_doubt.transactions, looked_up.source_in_doubt.transactions)),
        is_upsert=task.is_upsert,
    )


def _with_replays(copies: pl.DataFrame, replays: pl.DataFrame) -> pl.DataFrame:
    """Add to the copies of a topic whether compensation wrote them."""
    return mark_replays(copies, replays) if "offset" in copies.columns else copies


def _rows_once(target: pl.DataFrame) -> pl.DataFrame:
    """Return each row of a table once: with versions, or without times, it is read by keys, and by its times again. A
    place in a topic may have several copies, which are elements of its record."""
    is_topic = "offset" in target.columns
    return target if is_topic else target.unique(subset="place", keep="first", maintain_order=True)


def _counts(first: FirstPass, known: BucketInput, judged: pl.DataFrame) -> HopCounts:
    """Count the keys by verdict, the clean ones as matched."""
    rest = rollup.counts(
        judged,
        source_rows=len(committed_copies(known.source)),
        target_rows=len(committed_copies(_rows_once(known.target))),
    )
    clean = HopCounts(
        matched=first.number, source_keys=first.number, source_rows=first.source_rows, target_rows=first.target_rows
    )
    return rollup.add_counts([rest, clean])


def _count_source_keys(task: BucketTask, first: FirstPass, known: BucketInput) -> int:
    """Count the keys of the source that must have a verdict, from the slice's rows and the keys handed over:
    independently of the pairing and of the kernel's join."""
    beyond = committed_copies(passing_copies(known.source, task.hop.name))
    named = pl.concat([beyond.select(HASH), known.handed_over.select(HASH)])
    return count_keys(first.narrow, task.hop.name, named)


def _write_met_alone(task: BucketTask, target: pl.DataFrame, judged: pl.DataFrame) -> dict[str, Any]:
    """Write the hashes of the keys of the target's slice that have no record in the window, with a key filter; return
    how the answer names them. A later window that has the record sees the rows of its own times only: it looks these
    keys up."""
    keys = target.select(HASH).unique().join(judged.filter("in_source"), on=HASH, how="anti").sort(HASH)
    keys = keys if task.has_slices else keys.clear()
    path = write_index_file(task.context.storage, task.folder("met_alone"), [keys]) if len(keys) else None
    return {"met_alone": path, "met_far_ahead": _count_far_ahead(task, keys)}


def _count_far_ahead(task: BucketTask, met_alone: pl.DataFrame) -> int:
    """Count the keys of which the rest of the log has a record of a time so far ahead that a later window with it does
    not know from its own time that it must ask this one. Of a record in a window that was judged already, the time is
    not known: it counts."""
    pipeline, window = task.context.pipeline, task.context.window
    is_ahead = pl.col("is_later") & (pl.col("time") >= window.end + pipeline.late + pipeline.pending_max_age)
    in_tail = tail_of(task, task.hop.source).filter(is_ahead).select(HASH)
    in_windows = maybe_in(task.context.storage, task.source.index.copies.later, met_alone)
    return pl.concat([in_tail.join(met_alone, on=HASH, how="semi"), in_windows]).n_unique()
