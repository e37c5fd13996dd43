"""Judge a window that was judged once more, without the first pass: every key goes to the careful kernel."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import polars as pl

from makewhole.compute import rollup
from makewhole.compute.buckets import files_of_bucket
from makewhole.compute.frames import HASH, HASHES
from makewhole.compute.keys import hash_hex
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.results import hop_results, snapshot_manifests
from makewhole.journal.results.hop_results import HopResult
from makewhole.lake.stored_verdicts import FilesByBucket, VerdictFiles, stored_verdicts
from makewhole.model.hops import Hop
from makewhole.model.verdict import HopCounts
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile import judge_window
from makewhole_spark.reconcile.bucket.answer import BucketAnswer
from makewhole_spark.reconcile.gather.bucket_tasks import bucket_tasks
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.reconcile.judge import first_pass
from makewhole_spark.reconcile.judge.judge_bucket import judge_bucket
from tests.world.windows import ReconciledShop

Findings = list[tuple[str, str, str, Any]]
"""Key, verdict, cause and evidence, sorted."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Holds the findings of a hop. `verdicts`: of every key that was judged, by key hash; `expected`: the number of
    verdicts that there must be, by bucket."""

    counts: HopCounts
    digest: str
    verdicts: dict[str, str]
    findings: Findings
    expected: dict[str, int]

    @property
    def without_evidence(self) -> list[tuple[str, str, str]]:
        """Return the findings without their evidence."""
        return [(key, verdict, cause) for key, verdict, cause, _ in self.findings]


def as_committed(shop: ReconciledShop, context: WindowContext) -> dict[str, Judged]:
    """Return what the window's results say by hop, of clean keys as their slices do."""
    with connect(shop.journal) as journal:
        results = hop_results.results(journal, context.window)
        manifests = snapshot_manifests.snapshots(journal, context.window)
        findings = [item.finding for item in window_findings.findings(journal, context.window)]
    committed = {}
    for hop in context.pipeline.hops:
        of_hop = [
            (finding.key, finding.verdict.value, finding.cause.value, dict(finding.evidence))
            for finding in findings
            if finding.hop == hop.name
        ]
        slices = [manifests[name]["files"] for name in (hop.source, hop.target)]
        committed[hop.name] = _committed(context, hop, results[hop.name], slices, of_hop)
    return committed


def _committed(
    context: WindowContext, hop: Hop, result: HopResult, slices: Sequence[FilesByBucket], findings: Findings
) -> Judged:
    storage, verdicts = context.storage, dict[str, str]()
    numbers = storage.read_parquet([result.files["buckets"]])
    assert numbers is not None
    for bucket in numbers["bucket"]:
        files = VerdictFiles.of(hop.name, result.files, slices, bucket)
        of_slices = [storage.read_parquet(files_of_bucket(part, bucket), list(HASH)) for part in slices]
        hashes = pl.concat([pl.DataFrame(schema=HASHES), *(frame for frame in of_slices if frame is not None)])
        named = storage.read_parquet(files.verdicts, ["key_hash"])
        asked = {*hashes.select(hash_hex()).to_series(), *(() if named is None else named["key_hash"])}
        verdicts |= dict(stored_verdicts(storage, files, asked).select("key_hash", "verdict").rows())
    return Judged(
        counts=result.counts,
        digest=result.digest,
        verdicts=verdicts,
        findings=_in_order(findings),
        expected=dict(numbers.select("bucket", "expected").rows()),
    )


def otherwise(shop: ReconciledShop, context: WindowContext, *, looks_all_up: bool) -> dict[str, Judged]:
    """Return what the careful kernel finds alone, by hop; `looks_all_up`: it asks stores for all rows of every key."""
    with connect(shop.journal) as journal:
        manifests = snapshot_manifests.snapshots(journal, context.window)
        neighbours = NeighbouringWindows(journal=journal, context=context, manifests=manifests)
        tasks = [task for hop in context.pipeline.hops for task in bucket_tasks(neighbours, hop)]
        if looks_all_up:
            tasks = [replace(task, elsewhere=replace(task.elsewhere, met_alone=None)) for task in tasks]
        with (
            patch.object(first_pass, "_takes_out", lambda _: False),
            patch.object(judge_window, "carry_released", _in_this_process),
        ):
            first = [judge_bucket(task) for task in tasks]
            answers = judge_window.judge_again(shop.carrier, neighbours, tasks, first)
    return {
        hop.name: _answered(context, [answer for answer in answers if answer.hop == hop.name])
        for hop in context.pipeline.hops
    }


def _in_this_process(spark: Any, journal: Any, tasks: Sequence[Any], run: Callable[[Any], Any]) -> list[Any]:
    return [run(task) for task in tasks]


def _answered(context: WindowContext, answers: Sequence[BucketAnswer]) -> Judged:
    assert sum(answer.clean for answer in answers) == 0
    verdicts = context.storage.read_parquet([answer.verdicts for answer in answers])
    findings = context.storage.read_parquet([answer.findings for answer in answers if answer.findings])
    rows = [] if findings is None else findings.select("key", "verdict", "cause", "evidence").rows()
    return Judged(
        counts=rollup.add_counts([HopCounts(), *(answer.counts for answer in answers)]),
        digest=rollup.digest_text(rollup.add_digests(answer.digest for answer in answers)),
        verdicts={} if verdicts is None else dict(verdicts.select("key_hash", "verdict").rows()),
        findings=_in_order((key, verdict, cause, json.loads(evidence)) for key, verdict, cause, evidence in rows),
        expected={answer.bucket: answer.expected for answer in answers},
    )


def _in_order(findings: Any) -> Findings:
    return sorted(findings, key=lambda row: row[:3])
