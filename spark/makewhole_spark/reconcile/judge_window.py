"""Judge every hop and every topic alone of a window bucket by bucket, and commit verdicts, findings and the key index.

First every bucket is judged from the snapshots, the key index and look-ups by key in tables. Where only a topic's log
behind the window can tell (a record may have come later, or be in an open transaction), the rest of the log is read
once for just those keys, and their buckets are judged again.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import polars as pl

from makewhole.compute import rollup
from makewhole.compute.frames import BUCKETS
from makewhole.compute.judge.copier_commits import COPIER, CopierCommits
from makewhole.gate.summary import HopSummary
from makewhole.journal import acceptances, incidents
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.needed import kinds_needed
from makewhole.journal.history.older_results import MET_FAR_AHEAD
from makewhole.journal.key_index.runs import put_key_run
from makewhole.journal.results import handover_keys, hop_results, snapshot_manifests
from makewhole.journal.results.hop_results import HopResult
from makewhole.kafka.iceberg_sink.standing import SinkStanding
from makewhole.lake.stored_verdicts import judged_as
from makewhole.model.errors import PermanentError
from makewhole.model.hops import Hop
from makewhole.model.points import TopicPoint, has_log
from makewhole.model.verdict import HopCounts
from makewhole.sql import PgConnection
from makewhole.window.configuration import judging_sha256
from makewhole.window.consumer_groups import GROUP, GroupStanding
from makewhole.window.context import WindowContext
from makewhole.window.reach.limits import history_begins_document
from makewhole.window.readers.partitions_missing import PARTITIONS, partitions_missing
from makewhole.window.readers.sink_text import SINK
from makewhole_spark.carrier import Carrier, carry_released
from makewhole_spark.reconcile.bucket.answer import BucketAnswer
from makewhole_spark.reconcile.bucket.task import BucketTask, SecondRound, has_slices
from makewhole_spark.reconcile.count_repeated import (
    RepeatsOfBucket,
    RepeatTask,
    count_repeats,
    repeat_incidents,
    repeat_tasks,
)
from makewhole_spark.reconcile.gather.baseline import baseline_incidents
from makewhole_spark.reconcile.gather.bucket_tasks import bucket_tasks
from makewhole_spark.reconcile.gather.certified_windows import to_judge_again
from makewhole_spark.reconcile.gather.compacted_tails import (
    CompactedTail,
    PieceOfTail,
    compacted_tail,
    compacted_with_tails,
)
from makewhole_spark.reconcile.gather.consumer_groups import HopGroup, hop_groups
from makewhole_spark.reconcile.gather.doubt_incidents import doubt_incidents
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.reconcile.gather.never_compared import NEVER_COMPARED, never_compared, never_compared_incident
from makewhole_spark.reconcile.gather.point_facts import point_evidence
from makewhole_spark.reconcile.gather.truncated_keys import count_truncated_keys
from makewhole_spark.reconcile.gather.unread_records import compared_around
from makewhole_spark.reconcile.judge.judge_bucket import judge_bucket
from makewhole_spark.reconcile.stored_findings import first_findings, pending_keys
from makewhole_spark.reconcile.tails.log_tail import KeysOfTopic, TailRead, TailTask, head_tasks, read_tail, tail_tasks
from makewhole_spark.reconcile.topics_alone import results_of_topics
from makewhole_spark.reconcile.write_index import IndexTask, KeyRuns, WrittenRun, index_tasks, key_runs, write_run
from makewhole_spark.replayed import require_replayed

logger = logging.getLogger(__name__)
_JOURNAL_FINDINGS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class HopOutcome:
    """The results of one hop over all its buckets: the files of verdicts by bucket, of findings in the order of the
    buckets, and of the keys by bucket whose rows had no record in the window (None where the target is not read by its
    times), `met_far_ahead` the number of those with a record far ahead; `buckets`: the file of their numbers;
    `judged_as`: how clean keys are found again.
    `history_begins`: by point, the moment from which on its keys are known; None: from its first window."""

    summary: HopSummary
    digest: str
    verdicts: Mapping[str, tuple[str, ...]]
    findings: tuple[str, ...]
    buckets: str
    judged_as: Mapping[str, Any]
    met_alone: Mapping[str, str] | None = None
    met_far_ahead: int = 0
    standing: GroupStanding | None = None
    sink: SinkStanding | None = None
    copier: CopierCommits | None = None
    partitions: Mapping[str, Any] | None = None
    history_begins: Mapping[str, datetime | None] = field(default_factory=dict)
    never_compared: Sequence[str] = ()

    def result(self, handovers_written: int, judging_sha256: str) -> HopResult:
        """Return what is committed, once the journal has counted the keys that it hands over."""
        summary = replace(self.summary, handovers_written=handovers_written)
        return HopResult(
            hop=summary.hop,
            counts=summary.counts,
            digest=self.digest,
            files={
                "verdicts": sorted(path for paths in self.verdicts.values() for path in paths),
                "verdicts_by_bucket": {bucket: list(paths) for bucket, paths in sorted(self.verdicts.items())},
                "findings": list(self.findings),
                "buckets": self.buckets,
                "summary": summary.to_json_dict(),
                **({} if self.met_alone is None else {"met_alone": dict(sorted(self.met_alone.items()))}),
                **({MET_FAR_AHEAD: self.met_far_ahead} if self.met_far_ahead else {}),
                **({} if self.standing is None else {GROUP: self.standing.to_json_dict()}),
                **({} if self.sink is None else {SINK: self.sink.to_json_dict()}),
                **({} if self.copier is None else {COPIER: self.copier.to_json_dict()}),
                **({} if self.partitions is None else {PARTITIONS: self.partitions}),
                **({NEVER_COMPARED: list(self.never_compared)} if self.never_compared else {}),
                **self.judged_as,
                **history_begins_document(self.history_begins),
                "judging_sha256": judging_sha256,
            },
        )


def reconcile(carrier: Carrier, journal: PgConnection, context: WindowContext) -> dict[str, HopResult]:
    """Judge every hop and every topic alone of the window and commit what was found, in one transaction of the journal.

    Called again after it committed, it returns the committed results.

    Raises:
        PermanentError: a point has no committed snapshot.
        CorruptionError: a file of a manifest is missing.
    """
    committed = hop_results.results(journal, context.window)
    if len(committed) == len(context.pipeline.judged_names):
        return committed
    manifests = snapshot_manifests.snapshots(journal, context.window)
    _require_snapshots(context, manifests)
    require_replayed(journal, context)
    neighbours = NeighbouringWindows(journal=journal, context=context, manifests=manifests)
    tasks = [task for hop in context.pipeline.hops for task in bucket_tasks(neighbours, hop)]
    of_index = index_tasks(neighbours)
    every: list[IndexTask | RepeatTask | BucketTask] = [*of_index, *repeat_tasks(neighbours), *tasks]
    done = carry_released(carrier, journal, every, _run)
    runs = key_runs(neighbours, of_index, [run for run in done if isinstance(run, WrittenRun)])
    answers = judge_again(carrier, neighbours, tasks, [answer for answer in done if isinstance(answer, BucketAnswer)])
    groups = hop_groups(neighbours, answers)
    outcomes = [
        _add_up(
            neighbours,
            hop,
            [answer for answer in answers if answer.hop == hop.name],
            groups.get(hop.name),
            copier=next((task.limits.copier for task in tasks if task.hop.name == hop.name), None),
            handed_over=sum(task.keys.handed_over.number for task in tasks if task.hop.name == hop.name),
        )
        for hop in context.pipeline.hops
    ]
    count_truncated_keys(carrier, neighbours)
    happened = [incident for group in groups.values() for incident in group.incidents]
    happened += doubt_incidents(context.pipeline, answers)
    happened += baseline_incidents(neighbours, _older_than_log(answers))
    columns = {outcome.summary.hop: outcome.never_compared for outcome in outcomes if outcome.never_compared}
    hops = (hop for hop in context.pipeline.hops if hop.name in columns)
    happened += [never_compared_incident(hop, columns[hop.name]) for hop in hops]
    repeats = [answer for answer in done if isinstance(answer, RepeatsOfBucket)]
    happened += repeat_incidents(neighbours, repeats)
    incidents.put(journal, context.window, happened)
    return _commit(journal, context, outcomes, runs, list(results_of_topics(neighbours, runs, repeats)))


def _run(task: IndexTask | RepeatTask | BucketTask) -> WrittenRun | RepeatsOfBucket | BucketAnswer:
    """Run any kind of task: together they leave no core idle between them."""
    if isinstance(task, RepeatTask):
        return count_repeats(task)
    return write_run(task) if isinstance(task, IndexTask) else judge_bucket(task)


def _older_than_log(answers: Sequence[BucketAnswer]) -> dict[str, int]:
    """Return the number of keys by hop that are undecidable because the file does not say from when on to judge."""
    older: dict[str, int] = {}
    for answer in answers:
        older[answer.hop] = older.get(answer.hop, 0) + answer.older_than_log
    return older


def _require_snapshots(context: WindowContext, manifests: Mapping[str, Any]) -> None:
    missing = sorted({point.name for point in context.pipeline.ordered_points()} - set(manifests))
    if missing:
        raise PermanentError(
            f"{context.window.label}: no snapshot of {', '.join(missing)}; without it nothing can be judged. "
            "Clear the task `snapshot` of this run, or run the window again"
        )


def judge_again(
    carrier: Carrier, neighbours: NeighbouringWindows, tasks: Sequence[BucketTask], answers: list[BucketAnswer]
) -> list[BucketAnswer]:
    """Judge buckets again with what is found out for the keys that are left: from the rest of a topic's log, then from
    the certified windows in which missing keys have records."""
    for tasks_again in (_tasks_with_tails, to_judge_again):
        again = {(task.hop.name, task.bucket): task for task in tasks_again(carrier, neighbours, tasks, answers)}
        judged = carry_released(carrier, neighbours.journal, list(again.values()), judge_bucket) if again else []
        second = {(answer.hop, answer.bucket): answer for answer in judged}
        answers = [second.get((answer.hop, answer.bucket), answer) for answer in answers]
        tasks = [again.get((task.hop.name, task.bucket), task) for task in tasks]
    return answers


def _tasks_with_tails(
    carrier: Carrier, neighbours: NeighbouringWindows, tasks: Sequence[BucketTask], answers: Sequence[BucketAnswer]
) -> list[BucketTask]:
    """Read the rest of a topic's log for the keys that only it can decide, and return the tasks of the buckets of which
    it says anything: where it has none of their keys, they are as they were judged."""
    keys = {
        point: KeysOfTopic(
            buckets=neighbours.buckets,
            wanted=_files_at(point, (answer.wanted for answer in answers)),
            late=_files_at(point, (answer.late_wanted for answer in answers)),
            to_order=_files_at(point, (answer.to_order for answer in answers)),
            compared=compared_around(neighbours, point),
        )
        for point in sorted({name for answer in answers for name in (*answer.wanted, *answer.to_order)})
    }
    if not keys:
        return []
    pieces = [
        piece
        for point in (neighbours.context.pipeline.points[name] for name in keys)
        if has_log(point)
        for piece in _tasks_outside(neighbours, point, keys[point.name])
    ]
    reads = carry_released(carrier, neighbours.journal, pieces, read_tail)
    tails: dict[str, list[str]] = {name: [] for name in keys}
    ordered: dict[str, list[str]] = {name: [] for name in keys}
    unread, buckets_found = set(), set[str]()
    compacted = _compacted_tails(keys, list(zip(pieces, reads, strict=True)))
    of_hops = {hop.name: compacted_with_tails(neighbours, hop, compacted) for hop in neighbours.context.pipeline.hops}
    for piece, read in zip(pieces, reads, strict=True):
        tails[piece.point.name] += read.files
        ordered[piece.point.name] += read.ordered_files
        unread |= {(piece.point.name, piece.range.partition)} if read.expired else set()
        buckets_found |= read.buckets
    return [
        replace(
            task,
            second=SecondRound(
                tails=tails,
                partial_tails=frozenset(name for name, _ in unread),
                looked_up=answer.looked_up,
                kept=answer.kept,
                tail_records=ordered,
                unread_tails=frozenset(unread),
                compacted=of_hops[task.hop.name],
                compacted_tails=frozenset((point, at) for point, tail in compacted.items() for at in tail.partitions),
                in_doubt=answer.in_doubt,
            ),
        )
        for task, answer in zip(tasks, answers, strict=True)
        if (answer.wanted or answer.to_order) and (unread or compacted or answer.bucket in buckets_found)
    ]


def _compacted_tails(
    keys: Mapping[str, KeysOfTopic], read: Sequence[tuple[TailTask, TailRead]]
) -> dict[str, CompactedTail]:
    """Return by point what the rest of its log says of compaction, where it says more than the windows do."""
    tails = {}
    for point in {piece.point.name: piece.point for piece, _ in read}.values():
        own = [
            PieceOfTail(partition=piece.range.partition, compacted=answer.compacted, compared=answer.compared)
            for piece, answer in read
            if piece.point.name == point.name
        ]
        tail = compacted_tail(point, keys[point.name].compared, own)
        if tail is not None:
            tails[point.name] = tail
    return tails


def _files_at(point: str, by_point: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    return tuple(paths[point] for paths in by_point if point in paths)


def _tasks_outside(neighbours: NeighbouringWindows, point: TopicPoint, keys: KeysOfTopic) -> Iterator[TailTask]:
    """Yield the tasks that look for keys in a topic's log after the windows, and before the first one of them: there
    for all keys of the first window, and for the late ones of another."""
    covered = neighbours.covered(point.name)
    yield from tail_tasks(neighbours.context, point, covered, keys, neighbours.replays_behind)
    is_first = neighbours.first_reading(point.name) is neighbours.context.window
    of_before = keys.wanted if is_first else keys.late
    if of_before:
        of_head = replace(keys, late=of_before)
        yield from head_tasks(neighbours.context, point, neighbours.first_ranges(point.name), of_head)


def _add_up(
    neighbours: NeighbouringWindows,
    hop: Hop,
    answers: list[BucketAnswer],
    group: HopGroup | None,
    *,
    copier: CopierCommits | None,
    handed_over: int,
) -> HopOutcome:
    """Add the answers of a hop's buckets up. `handed_over`: number of keys that the window before left to this one."""
    counts = rollup.add_counts([HopCounts(), *(answer.counts for answer in answers)])
    summary = HopSummary(
        hop=hop.name,
        counts=counts,
        expected_rows=sum(answer.expected for answer in answers),
        source=point_evidence(hop.source, neighbours.manifests),
        target=point_evidence(hop.target, neighbours.manifests),
        duplicates_without_source=sum(answer.without_source for answer in answers),
        undecidable_without_source=sum(answer.undecidable_without_source for answer in answers),
        before_baseline_without_source=sum(answer.before_baseline_without_source for answer in answers),
        differing_without_source=sum(answer.differing_without_source for answer in answers),
        pending_without_source=sum(answer.pending_without_source for answer in answers),
        unexpected_with_source=sum(answer.unexpected_with_source for answer in answers),
        handed_over=handed_over + sum(answer.truncated for answer in answers),
        clean=sum(answer.clean for answer in answers),
    )
    return HopOutcome(
        summary=summary,
        digest=rollup.digest_text(rollup.add_digests(answer.digest for answer in answers)),
        verdicts={answer.bucket: (answer.verdicts,) for answer in answers},
        findings=tuple(answer.findings for answer in answers if answer.findings),
        buckets=_write_buckets(neighbours.context, hop, answers),
        judged_as=judged_as(neighbours.context.pipeline, hop),
        met_alone={answer.bucket: answer.met_alone for answer in answers if answer.met_alone}
        if has_slices(neighbours.context.pipeline, hop)
        else None,
        met_far_ahead=sum(answer.met_far_ahead for answer in answers),
        standing=None if group is None else group.standing,
        sink=None if group is None else group.sink,
        copier=copier,
        partitions=_partitions(neighbours.manifests[hop.source], answers),
        history_begins={point: neighbours.history_begins(point) for point in (hop.source, hop.target)},
        never_compared=never_compared(neighbours, hop),
    )


def _partitions(manifest: Mapping[str, Any], answers: Sequence[BucketAnswer]) -> dict[str, Any] | None:
    """Return the partitions of a hop's source of which nothing has reached its end, if there are any."""
    accounts = manifest.get("accounting_by_partition", {})
    missing: dict[int, int] = {}
    for answer in answers:
        for partition, records in answer.missing_records.items():
            missing[partition] = missing.get(partition, 0) + records
    return partitions_missing(missing, {int(name): account["data"] for name, account in accounts.items()})


def _write_buckets(context: WindowContext, hop: Hop, answers: Sequence[BucketAnswer]) -> str:
    """Write the numbers of the hop's buckets (`BUCKETS`), by which the gate holds each of them to its keys."""
    rows = [(hop.name, answer.bucket, answer.clean, answer.expected) for answer in answers]
    frame = pl.DataFrame(rows, schema=BUCKETS, orient="row")
    return context.storage.write_parquet(f"{context.window.prefix}/{hop.slug}/buckets", frame)


def _commit(
    journal: PgConnection,
    context: WindowContext,
    outcomes: Sequence[HopOutcome],
    runs: KeyRuns,
    of_topics: Sequence[HopResult],
) -> dict[str, HopResult]:
    """Commit everything in one transaction; handovers before results, whose summaries say how many were written.

    Where another process has committed meanwhile, its results stand: what they say may have been planned and written.
    """
    hop_results.lock_results(journal, context.window)
    committed = hop_results.results(journal, context.window)
    if len(committed) == len(context.pipeline.judged_names):
        journal.rollback()
        logger.warning(
            "%s: another process has compared this revision meanwhile; its results stand", context.window.label
        )
        return committed
    window, paths = context.window, [path for outcome in outcomes for path in outcome.findings]
    findings = first_findings(context.storage, paths, _JOURNAL_FINDINGS, kinds_needed(context.pipeline))
    window_findings.commit_findings(journal, window, findings)
    # From the files, not from the findings in the journal: of these there may be more.
    written = handover_keys.commit_handovers(journal, window, pending_keys(context.storage, paths))
    judged_with = judging_sha256(context.pipeline)
    results = [outcome.result(written.get(outcome.summary.hop, 0), judged_with) for outcome in outcomes]
    results += of_topics
    hop_results.commit_results(journal, window, hop_results.RECONCILED, results)
    acceptances.pass_on(journal, window)
    for point, run in runs.items():
        put_key_run(journal, window, point, run.files, run.keys, is_partial=run.is_partial)
    journal.commit()
    return {result.hop: result for result in results}
