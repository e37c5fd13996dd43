"""Verify a window: judge its gaps anew, ask the gate about the result, and commit both."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import polars as pl

from makewhole.compensation.planning.remedy_of import is_to_repair, keys_to_reverse
from makewhole.compensation.verification.committed_since import StartOffsets
from makewhole.compensation.verification.judge_gaps import GapContext, judge_gaps_anew, may_change
from makewhole.compensation.verification.judge_key import KeyJudge
from makewhole.compensation.verification.other_stores import open_other_stores, put_new
from makewhole.compensation.verification.verified_results import WHOLE, is_doubled, verified_result
from makewhole.gate import HopSummary, check_summaries
from makewhole.journal import incidents, observations, plan_progress, plans, window_results, windows
from makewhole.journal.database import connect
from makewhole.journal.history.judged import JudgedWindows
from makewhole.journal.history.record_windows import KNOWN_BY
from makewhole.journal.window_results import HopResult, JudgedFinding
from makewhole.journal.written_keys import reversals_of
from makewhole.model.errors import NotYetError
from makewhole.model.gate import GateReport
from makewhole.model.pipeline import TopicPoint
from makewhole.model.plan import PlanState
from makewhole.model.verdict import Verdict
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.configuration import judging_sha256
from makewhole.window.context import WindowContext

_LEAST_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class VerifiedWindow:
    """The result of verify: the number of gaps, of those that are whole now, and the gate's report on the window."""

    whole: int
    gaps: int
    gate: GateReport


def verify_window(
    context: WindowContext,
    progress: Callable[[int, int], None],
    *,
    patience_seconds: float | None = None,
    stays_seconds: float = math.inf,
) -> VerifiedWindow:
    """Judge the gaps of a window anew, and commit their outcomes and the gate's report.

    `patience_seconds`: the time that consumers get to load what was replayed; None: the settle time since the last
    chunk, if a plan ran. `stays_seconds`: how much of that is waited for here at a time.

    Raises:
        NotYetError: some keys may still arrive, and the rest of the patience is longer than `stays_seconds`.
    """
    with connect() as journal:
        _mark_refused(journal, context.window)
        findings = window_results.findings(journal, context.window)
        since = _start_offsets(journal, context)
        patience = _patience_seconds(journal, context) if patience_seconds is None else patience_seconds
        to_reverse = keys_to_reverse(context.pipeline, [item.finding for item in findings])
        past = reversals_of(journal, context.pipeline, context.window.number, to_reverse)
        newest = JudgedWindows(journal=journal, pipeline=context.pipeline.name).newest_few(KNOWN_BY)
        results_before = window_results.results(journal, context.window)
        others = open_other_stores(journal, context, findings)
    doubled_before = [item for item in findings if is_doubled(item)]
    findings = [item for item in findings if not is_doubled(item)]
    known = GapContext(open_judge=KeyJudge, past=past, windows=newest, is_awaited=others.is_awaited)
    judged = judge_gaps_anew(context, findings, since, min(patience, stays_seconds), progress, known)
    if patience > stays_seconds and (may_change(context, judged) or others.is_awaited()):
        left = sum(item.outcome == "open" for item in judged)
        what = f"{left} keys may still arrive" if left else "other readers may still load what was sent again"
        raise NotYetError(
            f"{context.window.label}: {what}, for which consumers have {patience - stays_seconds:.0f} s more"
        )
    doubled = others.findings(results_before, doubled_before)
    judged = [*judged, *doubled]
    with connect() as journal:
        put_new(journal, context, doubled)
        gaps = [item for item in judged if is_to_repair(context.pipeline, item.finding)]
        window_results.set_outcomes(journal, context.window, gaps)
        results = [
            _with_repaired_keys(context, verified_result(result, judged), judged)
            for result in window_results.results(journal, context.window).values()
        ]
        summaries = [HopSummary.from_json_dict(result.files["summary"]) for result in results]
        report = check_summaries(context.pipeline, summaries, incidents.of(journal, context.window))
        window_results.commit_results(journal, context.window, window_results.VERIFIED, results)
        asked = replace(report, document={**report.document, "judging_sha256": judging_sha256(context.pipeline)})
        window_results.put_gate_report(journal, context.window, window_results.VERIFIED, asked)
    whole = sum(item.outcome in WHOLE for item in gaps)
    return VerifiedWindow(whole=whole, gaps=len(gaps), gate=report)


def _with_repaired_keys(context: WindowContext, result: HopResult, judged: Sequence[JudgedFinding]) -> HopResult:
    """Name with a result the file of the keys that were repaired: later windows know by it what the store held."""
    hashes = [
        item.finding.key_hash
        for item in judged
        if item.finding.hop == result.hop and item.outcome == "repaired" and _is_now_held(item)
    ]
    if not hashes:
        return result
    slug = context.pipeline.hop(result.hop).slug
    frame = pl.DataFrame({"key_hash": sorted(hashes)}, schema={"key_hash": pl.String})
    path = context.storage.write_parquet(f"{context.window.prefix}/{slug}/repaired", frame)
    return replace(result, files={**result.files, "repaired": path})


def _is_now_held(item: JudgedFinding) -> bool:
    """Tell whether the target of a repaired key holds it: an unexpected one was moved aside."""
    return item.finding.verdict is not Verdict.UNEXPECTED


def _mark_refused(journal: PgConnection, window: Window) -> None:
    """Record the refusals of the plan as outcomes of its findings, with the reasons."""
    stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
    if stored is not None:
        refused = plan_progress.refused_keys(journal, stored.plan.id)
        plan_progress.refuse_findings(journal, (window.pipeline, window.number, window.revision), refused)


def _patience_seconds(journal: PgConnection, context: WindowContext) -> float:
    """Return the time that consumers still get, from the last chunk on; 0 where nothing was written."""
    stored = plans.plan_of_window(journal, context.window.pipeline, context.window.number, context.window.revision)
    if stored is None or stored.plan.state not in (PlanState.RUNNING, PlanState.DONE):
        return 0.0
    patience = max(_LEAST_PATIENCE_SECONDS, context.pipeline.settle.total_seconds())
    written = windows.last_chunk(journal, context.window.pipeline, context.window.number)
    passed = 0.0 if written is None else (datetime.now(UTC) - written).total_seconds()
    return max(_LEAST_PATIENCE_SECONDS, patience - passed)


def _start_offsets(journal: PgConnection, context: WindowContext) -> StartOffsets:
    """Return the stable offsets of the last observation before the first plan of this window was frozen and before its
    revision was opened: what came while it was judged counts, too."""
    moments = [window_results.frozen_at(journal, plan) for plan in window_results.plans_of(journal, context.window)]
    first = min([*moments, context.window.opened_at])
    offsets = {}
    for point in context.pipeline.points.values():
        if isinstance(point, TopicPoint):
            before = observations.last(journal, context.pipeline.name, point.name, first)
            offsets[point.name] = {} if before is None else dict(before.stable_offsets or {})
    return StartOffsets(offsets=offsets)
