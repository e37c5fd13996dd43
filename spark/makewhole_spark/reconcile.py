"""Reconcile: one kernel per bucket and hop, look-ups that confirm, findings with their causes, and the roll-up.

First every bucket is judged on the snapshots, the key index and look-ups by key in tables. Where a topic must be asked
about keys outside the window (a record that came later, or sits in an open transaction), the rest of its log is read
once for just those keys, and the buckets concerned are judged again.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import polars as pl
from pyspark.sql import SparkSession

from makewhole.compute import rollup
from makewhole.compute.frames import REPLAYS, empty
from makewhole.compute.keys import split_hex
from makewhole.config.context import WindowContext
from makewhole.gate.summary import HopSummary, PointEvidence
from makewhole.journal import evidence, windows
from makewhole.journal.database import Journal
from makewhole.journal.evidence import Handover, HopResult
from makewhole.journal.plans import replayed_keys
from makewhole.kafka.offsets import committed
from makewhole.model.errors import PermanentError
from makewhole.model.pipeline import Hop, PointKind, TopicPoint
from makewhole.model.verdict import Cause, Finding, HopCounts, Verdict
from makewhole.model.window import Accounting
from makewhole_spark.carrier import carry
from makewhole_spark.judging import BucketAnswer, BucketTask, IndexFiles, judge_bucket
from makewhole_spark.key_index import IndexTask, write_run
from makewhole_spark.snapshot import previous_window
from makewhole_spark.tail import read_tail, tail_tasks

logger = logging.getLogger(__name__)
_JOURNAL_FINDINGS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class HopOutcome:
    """One hop after its buckets were added up."""

    hop: Hop
    result: HopResult
    summary: HopSummary
    findings: tuple[str, ...]


def reconcile(spark: SparkSession, journal: Journal, context: WindowContext) -> dict[str, HopResult]:
    """Judge every hop of the window and commit what was found, in one transaction of the journal.

    Asked again after it committed, it returns what is there.

    Raises:
        PermanentError: a point has no committed snapshot.
        CorruptionError: a file of a manifest is missing.
    """
    there = evidence.results(journal, context.window)
    if len(there) == len(context.pipeline.hops):
        return there
    manifests = evidence.snapshots(journal, context.window)
    _require_snapshots(context, manifests)
    tasks = [task for hop in context.pipeline.hops for task in _bucket_tasks(journal, context, hop, manifests)]
    answers = carry(spark, tasks, judge_bucket)
    answers = _judge_with_tails(spark, journal, context, manifests, tasks, answers)
    runs = _index(spark, journal, context, manifests)
    outcomes = [
        _add_up(journal, context, hop, manifests, [answer for answer in answers if answer.hop == hop.name])
        for hop in context.pipeline.hops
    ]
    _commit(journal, context, outcomes, runs)
    return {outcome.hop.name: outcome.result for outcome in outcomes}


def _require_snapshots(context: WindowContext, manifests: Mapping[str, Any]) -> None:
    lacking = sorted(set(context.pipeline.points) - set(manifests))
    if lacking:
        raise PermanentError(
            f"{context.window.label}: no snapshot of {', '.join(lacking)}; without it nothing can be judged. "
            "Clear the task `snapshot` of this run, or run the window again"
        )


def _bucket_tasks(journal: Journal, context: WindowContext, hop: Hop, manifests: Mapping[str, Any]) -> list[BucketTask]:
    """One task per bucket that has any key on either side."""
    source, target = manifests[hop.source]["files"], manifests[hop.target]["files"]
    handed, handed_files = _handed_over(journal, context, hop)
    settled = _settled(journal, context, hop)
    replays = _replays(journal, context, hop.target, manifests[hop.target])
    source_runs, target_runs = (evidence.key_runs(journal, context.window, name) for name in (hop.source, hop.target))
    buckets = sorted({*source, *target, *handed})
    point = context.pipeline.points[hop.source]
    group = None
    if hop.consumer_group and isinstance(point, TopicPoint):
        offsets = committed(context.kafka(point), hop.consumer_group, point.topic)
        group = {partition: offset for partition, offset in offsets.items() if offset is not None}
    return [
        BucketTask(
            context=context,
            hop=hop,
            bucket=bucket,
            source_files=tuple(source.get(bucket, ())),
            target_files=tuple(target.get(bucket, ())),
            source_index=_index_files(source_runs, context.window.number, bucket),
            target_index=_index_files(target_runs, context.window.number, bucket),
            handed_over=tuple(handed.get(bucket, ())),
            handed_over_files=tuple(handed_files.get(bucket, ())),
            settled_offsets=settled.get("offsets"),
            settled_snapshot=settled.get("snapshot"),
            group_committed=group,
            replays=replays,
        )
        for bucket in buckets
    ]


def _handed_over(
    journal: Journal, context: WindowContext, hop: Hop
) -> tuple[dict[str, list[tuple[str, int, int]]], Mapping[str, list[str]]]:
    """The keys that the window before left to this one, by bucket, and the files that hold their source copies."""
    earlier = previous_window(journal, context)
    if earlier is None:
        return {}, {}
    keys: dict[str, list[tuple[str, int, int]]] = {}
    for item in evidence.handovers(journal, context.pipeline.name, earlier.number):
        if item.hop == hop.name:
            high, low = split_hex(item.key_hash)
            keys.setdefault(f"{high % context.pipeline.buckets:02d}", []).append((item.key, high, low))
    return keys, _handed_over_files(journal, context, hop) if keys else {}


def _handed_over_files(journal: Journal, context: WindowContext, hop: Hop) -> dict[str, list[str]]:
    """The source's files of the windows before, back to the first that handed anything over: a key may wait long."""
    files: dict[str, list[str]] = {}
    for earlier in windows.newest_judged(journal, context.pipeline.name):
        if earlier.number >= context.window.number:
            continue
        if not any(item.hop == hop.name for item in evidence.handovers(journal, earlier.pipeline, earlier.number)):
            break
        manifest = evidence.snapshots(journal, earlier).get(hop.source, {"files": {}})
        for bucket, paths in manifest["files"].items():
            files.setdefault(bucket, []).extend(paths)
    return files


def _settled(journal: Journal, context: WindowContext, hop: Hop) -> dict[str, Any]:
    """What had existed at the source for at least the settle time when this is read."""
    latest = datetime.now(UTC) - context.pipeline.settle
    seen = [
        entry
        for entry in windows.observations(journal, context.pipeline.name, hop.source)
        if entry.observed_at <= latest
    ]
    if not seen:
        return {"offsets": {}, "snapshot": "1:1:"}
    return {"offsets": dict(seen[-1].stable_offsets or {}), "snapshot": seen[-1].pg_snapshot}


def _replays(journal: Journal, context: WindowContext, point: str, manifest: Mapping[str, Any]) -> pl.DataFrame:
    """What compensation wrote to a topic, by the journal: a lineage header alone proves nothing.

    Of the plans that headers in the window name, and of the plans made for this window.
    """
    if context.pipeline.points[point].kind is not PointKind.TOPIC:
        return empty(REPLAYS)
    plans = {*manifest["replay_plans"], *evidence.plans_of(journal, context.window)}
    rows = [
        (plan, *split_hex(key_hash)) for plan, key_hash in replayed_keys(journal, context.pipeline.name, sorted(plans))
    ]
    return pl.DataFrame(rows, schema=REPLAYS, orient="row")


def _index_files(runs: Mapping[int, Mapping[str, str]], number: int, bucket: str) -> IndexFiles:
    return IndexFiles(
        earlier=tuple(files[bucket] for at, files in sorted(runs.items()) if bucket in files and at < number),
        later=tuple(files[bucket] for at, files in sorted(runs.items()) if bucket in files and at > number),
    )


def _judge_with_tails(
    spark: SparkSession,
    journal: Journal,
    context: WindowContext,
    manifests: Mapping[str, Any],
    tasks: Sequence[BucketTask],
    answers: list[BucketAnswer],
) -> list[BucketAnswer]:
    """Read the rest of a topic's log for the keys that only it can tell about, and judge their buckets again."""
    wanted: dict[str, list[str]] = {}
    for answer in answers:
        for point, path in answer.wanted.items():
            wanted.setdefault(point, []).append(path)
    if not wanted:
        return answers
    points = [context.pipeline.points[name] for name in sorted(wanted)]
    pieces = [
        piece
        for point in points
        if isinstance(point, TopicPoint)
        for piece in tail_tasks(
            context, point, tuple(wanted[point.name]), _replays(journal, context, point.name, manifests[point.name])
        )
    ]
    found: dict[str, list[str]] = {name: [] for name in wanted}
    for piece, paths in zip(pieces, carry(spark, pieces, read_tail), strict=True):
        found[piece.point.name] += paths
    again = [replace(task, tails=found) for task, answer in zip(tasks, answers, strict=True) if answer.wanted]
    second = {(answer.hop, answer.bucket): answer for answer in carry(spark, again, judge_bucket)}
    return [second.get((answer.hop, answer.bucket), answer) for answer in answers]


def _index(
    spark: SparkSession, journal: Journal, context: WindowContext, manifests: Mapping[str, Any]
) -> dict[str, tuple[dict[str, str], int]]:
    """The sorted run of this window's keys for every topic."""
    tasks = [
        IndexTask(
            context=context,
            point=name,
            bucket=bucket,
            files=tuple(files),
            replays=_replays(journal, context, name, manifests[name]),
        )
        for name, point in context.pipeline.points.items()
        if point.kind is PointKind.TOPIC
        for bucket, files in manifests[name]["files"].items()
    ]
    runs: dict[str, tuple[dict[str, str], int]] = {
        name: ({}, 0) for name, point in context.pipeline.points.items() if point.kind is PointKind.TOPIC
    }
    for task, (path, keys) in zip(tasks, carry(spark, tasks, write_run), strict=True):
        files, total = runs[task.point]
        runs[task.point] = (files | {task.bucket: path}, total + keys)
    return runs


def _add_up(
    journal: Journal, context: WindowContext, hop: Hop, manifests: Mapping[str, Any], answers: list[BucketAnswer]
) -> HopOutcome:
    counts = rollup.add_counts([HopCounts(), *(answer.counts for answer in answers)])
    handed, _ = _handed_over(journal, context, hop)
    handed_over = sum(len(keys) for keys in handed.values())
    beside = sum(answer.without_source for answer in answers)
    summary = HopSummary(
        hop=hop.name,
        counts=counts,
        expected_rows=sum(answer.expected for answer in answers),
        source=_point_evidence(hop.source, manifests),
        target=_point_evidence(hop.target, manifests),
        duplicates_without_source=beside,
        handed_over=handed_over,
    )
    result = HopResult(
        hop=hop.name,
        counts=counts,
        digest=rollup.digest_text(rollup.add_digests(answer.digest for answer in answers)),
        files={"verdicts": sorted(answer.verdicts for answer in answers), "summary": summary.to_json_dict()},
    )
    findings = tuple(sorted(answer.findings for answer in answers if answer.findings))
    return HopOutcome(hop=hop, result=result, summary=summary, findings=findings)


def _point_evidence(name: str, manifests: Mapping[str, Any]) -> PointEvidence:
    manifest = manifests[name]
    accounting = manifest.get("accounting")
    return PointEvidence(
        point=name,
        has_manifest=True,
        rows_read=manifest["rows"] + (manifest["undecodable"] if "rows_counted" in manifest else 0),
        rows_counted=manifest.get("rows_counted"),
        accounting=None if accounting is None else Accounting(**accounting),
        undecodable=manifest["undecodable"],
    )


def _commit(
    journal: Journal,
    context: WindowContext,
    outcomes: Iterable[HopOutcome],
    runs: Mapping[str, tuple[dict[str, str], int]],
) -> None:
    outcomes = list(outcomes)
    paths = [path for outcome in outcomes for path in outcome.findings]
    frame = context.storage.read_parquet(paths)
    found = [] if frame is None else list(_findings(frame.head(_JOURNAL_FINDINGS)))
    evidence.commit_results(journal, context.window, evidence.RECONCILED, [outcome.result for outcome in outcomes])
    evidence.commit_findings(journal, context.window, found)
    evidence.commit_handovers(
        journal,
        context.window,
        [
            Handover(hop=item.hop, key=item.key, key_hash=item.key_hash)
            for item in found
            if item.verdict is Verdict.PENDING
        ],
    )
    for point, (files, keys) in runs.items():
        evidence.put_key_run(journal, context.window, point, files, keys)
    journal.commit()


def _findings(frame: pl.DataFrame) -> Iterator[Finding]:
    for row in frame.sort("hop", "key_hash").iter_rows(named=True):
        yield Finding(
            hop=row["hop"],
            key=row["key"],
            key_hash=row["key_hash"],
            verdict=Verdict(row["verdict"]),
            cause=Cause(row["cause"]),
            evidence=json.loads(row["evidence"]),
        )
