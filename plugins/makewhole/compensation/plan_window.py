"""The steps that repair a window: plan, compensate, verify. They read the journal, do one thing, and commit once."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from makewhole.compensation.execution.run_plan import PlanProgress, RunOptions
from makewhole.compensation.execution.run_plan import compensate as run_plan
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.freezing.freeze import FreezeRequest, FreezeSources, Frozen, freeze
from makewhole.compensation.freezing.original_records import WindowRecords
from makewhole.compensation.planning.deadlines import read_deadlines, soonest
from makewhole.compensation.planning.draft import keys_to_reverse
from makewhole.compensation.verification.committed_since import LogStart
from makewhole.compensation.verification.outcome import WHOLE, results_after
from makewhole.compensation.verification.verify import verify
from makewhole.gate import HopSummary, check_summaries
from makewhole.journal import evidence, incidents, observations, plans, windows
from makewhole.journal.database import connect, journal_dsn
from makewhole.journal.reversals import reversals_of
from makewhole.kafka.retention import RecordRetention
from makewhole.model.errors import RefusedError
from makewhole.model.gate import GateReport
from makewhole.model.pipeline import TopicPoint
from makewhole.model.plan import PlanState, Receipt
from makewhole.model.verdict import Finding
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext
from makewhole.window.observe import look, observe, topic_logs

logger = logging.getLogger(__name__)
_LEAST_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What verify found: how many gaps are whole now, and what the gate says of the window as it is."""

    whole: int
    gaps: int
    gate: GateReport


def plan_window(context: WindowContext) -> Frozen:
    """Freeze the plan of a window whose gate failed; asked again, the one that is frozen."""
    with connect() as journal:
        _observe_topics(journal, context)
        findings = [item.finding for item in evidence.findings(journal, context.window)]
        results = evidence.results(journal, context.window)
        earlier = windows.newest_judged(journal, context.pipeline.name)
    _tell_deadlines(context, findings)
    request = FreezeRequest(
        pipeline=context.pipeline,
        window=context.window,
        findings=findings,
        window_keys=max((result.counts.source_keys for result in results.values()), default=0),
    )
    sources = FreezeSources(
        storage=context.storage.root, records=WindowRecords(context, earlier), connections=context.connections
    )
    return freeze(journal_dsn(), request, sources)


def _tell_deadlines(context: WindowContext, findings: Sequence[Finding]) -> None:
    """Whether Kafka is about to delete what the findings are about. A frozen plan has its own copy."""
    ranked = soonest(read_deadlines(context.pipeline, context.connections), findings)
    deleted = sum(deadline.fate is RecordRetention.DELETED for _, deadline in ranked)
    due = [deadline.at for _, deadline in ranked if deadline.at is not None]
    if deleted:
        logger.warning("Kafka deleted the originals of %d findings already; the snapshot has them", deleted)
    if due:
        logger.info(
            "Kafka may delete the originals of %d findings, from %s on; the snapshot has them", len(due), due[0]
        )


def _observe_topics(journal: PgConnection, context: WindowContext) -> None:
    """Where the logs stand before anything is written to them, those that no hop joins as well: verify reads from
    there."""
    with topic_logs(context.pipeline.points.values(), context.connections) as logs:
        observe(journal, context.pipeline, context.connections, {name: look(log) for name, log in logs.items()})


def require_own_plan(journal: PgConnection, window: tuple[str, int, int], plan_id: str) -> None:
    """A run answers for the plan of its own window revision (pipeline, number, revision) and for no other, whatever it
    was handed: who may say yes differs from pipeline to pipeline.

    Raises:
        RefusedError: the plan is another one's.
    """
    stored = plans.plan_of_window(journal, *window)
    if stored is None or stored.plan.id != plan_id:
        own = "which has none" if stored is None else f"whose plan is {stored.plan.id}"
        raise RefusedError(
            f"plan {plan_id} is not for window {window[1]} (revision {window[2]}) of {window[0]}, {own}; "
            "the answer is not taken"
        )


def compensate_window(context: WindowContext, progress: Callable[[PlanProgress], None]) -> list[Receipt]:
    """Do what is left of the window's plan."""
    with connect() as journal:
        stored = plans.plan_of_window(journal, context.window.pipeline, context.window.number, context.window.revision)
    if stored is None:
        return []
    return carry_out(context, stored.plan.id, progress)


def carry_out(context: WindowContext, plan_id: str, progress: Callable[[PlanProgress], None]) -> list[Receipt]:
    """Do what is left of a plan of the window, the one that repairs it or one that undoes that.

    The lease is held in the plan's name: a later try takes over at once, and the one before is fenced.
    """
    return run_plan(
        journal_dsn(),
        plan_id,
        targets_of(context.pipeline, context.connections),
        progress,
        RunOptions(records_per_second=context.pipeline.limits.records_per_second, holder=f"plan {plan_id}"),
    )


def verify_window(
    context: WindowContext, progress: Callable[[int, int], None], *, patience_seconds: float | None = None
) -> Verified:
    """Judge the gaps of a window anew and commit what became of each, with what the gate says now.

    `patience_seconds`: how long consumers are given to load what was replayed; None: as long as the plan asks for.
    """
    with connect() as journal:
        _mark_refused(journal, context.window)
        findings = evidence.findings(journal, context.window)
        since = _since(journal, context)
        patience = _patience_seconds(journal, context) if patience_seconds is None else patience_seconds
        to_reverse = keys_to_reverse(context.pipeline, [item.finding for item in findings])
        past = reversals_of(journal, context.pipeline, context.window.number, to_reverse)
    judged = verify(context, findings, since, patience, progress, past)
    with connect() as journal:
        evidence.set_outcomes(journal, context.window, [item for item in judged if item.finding.verdict.is_gap])
        results = [results_after(result, judged) for result in evidence.results(journal, context.window).values()]
        summaries = [HopSummary.from_json_dict(result.files["summary"]) for result in results]
        report = check_summaries(context.pipeline, summaries, incidents.of(journal, context.window))
        evidence.commit_results(journal, context.window, evidence.VERIFIED, results)
        evidence.put_gate_report(journal, context.window, evidence.VERIFIED, report)
    gaps = [item for item in judged if item.finding.verdict.is_gap]
    whole = sum(item.outcome in WHOLE for item in gaps)
    return Verified(whole=whole, gaps=len(gaps), gate=report)


def _mark_refused(journal: PgConnection, window: Window) -> None:
    """What the plan refused to do becomes the outcome of its finding: the reason is what a person has to know."""
    stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
    if stored is not None:
        refused = plans.refused_keys(journal, stored.plan.id)
        plans.refuse_findings(journal, (window.pipeline, window.number, window.revision), refused)


def _patience_seconds(journal: PgConnection, context: WindowContext) -> float:
    """Where nothing was written, nothing is waited for."""
    stored = plans.plan_of_window(journal, context.window.pipeline, context.window.number, context.window.revision)
    if stored is None or stored.plan.state not in (PlanState.RUNNING, PlanState.DONE):
        return 0.0
    return max(_LEAST_PATIENCE_SECONDS, context.pipeline.settle.total_seconds())


def _since(journal: PgConnection, context: WindowContext) -> LogStart:
    """The last observation of each topic before the first plan of this window was frozen."""
    moments = [evidence.frozen_at(journal, plan) for plan in evidence.plans_of(journal, context.window)]
    first = min(moments, default=datetime.now(UTC))
    offsets = {}
    for point in context.pipeline.points.values():
        if isinstance(point, TopicPoint):
            seen = [
                entry
                for entry in observations.of(journal, context.pipeline.name, point.name)
                if entry.observed_at <= first
            ]
            offsets[point.name] = dict(seen[-1].stable_offsets or {}) if seen else {}
    return LogStart(offsets=offsets)
