"""Verify a window: judge its gaps again, ask the gate about the result, and commit both."""

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from makewhole.compensation.planning.to_repair import is_to_repair
from makewhole.compensation.verification.committed_since import StartOffsets
from makewhole.compensation.verification.ends_now import EndsNow
from makewhole.compensation.verification.judge_gaps import GapContext, judge_gaps_again, may_change
from makewhole.compensation.verification.judge_key import KeyJudge
from makewhole.compensation.verification.other_hops import open_other_hops
from makewhole.compensation.verification.other_stores import open_other_stores, put_new
from makewhole.compensation.verification.repaired_keys import RepairedKeys
from makewhole.compensation.verification.verified_results import WHOLE, is_found_by_verify, verified_result
from makewhole.gate import HopSummary, check_summaries
from makewhole.journal import acceptances, incidents, observations, plan_progress, plans, windows
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.stored_findings import StoredFindings
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.history.judged import JudgedWindows
from makewhole.journal.history.record_windows import KNOWN_BY
from makewhole.journal.results import gate_answers, hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.journal.written_keys import reversals_of
from makewhole.lake.local_files import BatchFile
from makewhole.model.errors import NotYetError
from makewhole.model.gate import GateReport
from makewhole.model.plan import PlanState
from makewhole.model.points import has_log
from makewhole.model.reversal import NOTHING_REVERSED, PastReversals
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.configuration import judging_sha256
from makewhole.window.context import WindowContext

_LEAST_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class VerifiedWindow:
    """The result of verify: the number of gaps, of those that are whole now, and the gate's report on the window. Gaps
    that the journal did not take are not whole."""

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
    """Judge the gaps of a window again, and commit their outcomes and the gate's report.

    `patience_seconds`: the time that consumers get to load what was replayed; None: the settle time since the last
    chunk, if a plan ran. `stays_seconds`: how much of that is waited for here at a time.

    Raises:
        NotYetError: some keys may still arrive, and the rest of the patience is longer than `stays_seconds`.
    """
    with ExitStack() as stack:
        findings = stack.enter_context(BatchFile[JudgedFinding]())
        with connect() as journal:
            _mark_refused(journal, context.window)
            _read_findings(journal, context.window, findings)
            since = _start_offsets(journal, context)
            patience = _patience_seconds(journal, context) if patience_seconds is None else patience_seconds
            newest = JudgedWindows(journal=journal, pipeline=context.pipeline.name).newest_few(KNOWN_BY)
            results_before = hop_results.results(journal, context.window)
            others = stack.enter_context(open_other_stores(journal, context))
            copies_at = EndsNow(context=context, since=since).copies
            hops = stack.enter_context(open_other_hops(journal, context, copies_at, results_before))

        def is_awaited() -> bool:
            return others.is_awaited() or hops.is_awaited()

        known = GapContext(open_judge=KeyJudge, past=partial(_past, context), windows=newest, is_awaited=is_awaited)
        judged = stack.enter_context(
            judge_gaps_again(context, findings, since, min(patience, stays_seconds), progress, known)
        )
        if patience > stays_seconds:
            _require_settled(context, judged, is_awaited, patience - stays_seconds)
        new = stack.enter_context(BatchFile[JudgedFinding]())
        for batch in chain(others.findings(results_before), hops.findings()):
            new.add(batch)
            judged.add(batch)
        with connect() as journal:
            for batch in new:
                put_new(journal, context, batch)
            return _commit(journal, context, judged)


def _read_findings(journal: PgConnection, window: Window, into: BatchFile[JudgedFinding]) -> None:
    """Keep the findings of a window in a file, but for those that verify found."""
    for batch in StoredFindings(window=window).batches(journal):
        into.add([item for item in batch if not is_found_by_verify(item)])


def _past(context: WindowContext, key_hashes: set[str]) -> PastReversals:
    if not key_hashes:
        return NOTHING_REVERSED
    with connect() as journal:
        return reversals_of(journal, context.pipeline, context.window.number, key_hashes)


def _require_settled(
    context: WindowContext, judged: BatchFile[JudgedFinding], is_awaited: Callable[[], bool], more_seconds: float
) -> None:
    """Give the worker back while keys may still arrive.

    Raises:
        NotYetError: they may.
    """
    if not (any(may_change(context, batch) for batch in judged) or is_awaited()):
        return
    left = sum(item.outcome == "open" for batch in judged for item in batch)
    what = f"{left} keys may still arrive" if left else "other readers may still load what was sent again"
    raise NotYetError(f"{context.window.label}: {what}, for which consumers have {more_seconds:.0f} s more")


def _commit(journal: PgConnection, context: WindowContext, judged: BatchFile[JudgedFinding]) -> VerifiedWindow:
    """Commit the outcomes, the results with what is whole now, and the gate's report on them."""
    left_out = window_findings.count_left_out(journal, context.window)
    whole, gaps = 0, sum(number for (_, verdict), number in left_out.items() if verdict.is_gap)
    with RepairedKeys(context) as repaired:
        results = {
            name: verified_result(result, ()) for name, result in hop_results.results(journal, context.window).items()
        }
        for batch in judged:
            to_repair = [item for item in batch if is_to_repair(context.pipeline, item.finding)]
            window_findings.set_outcomes(journal, context.window, to_repair)
            results = {name: verified_result(result, batch) for name, result in results.items()}
            repaired.add(batch)
            gaps, whole = gaps + len(to_repair), whole + sum(item.outcome in WHOLE for item in to_repair)
    acceptances.end_whole(journal, context.window)
    accepted = acceptances.count_accepted(journal, context.window)
    summaries = _summaries(results.values(), accepted)
    report = check_summaries(context.pipeline, summaries, incidents.of(journal, context.window)).asked_with(accepted)
    done = [repaired.named_with(result) for result in results.values()]
    hop_results.commit_results(journal, context.window, hop_results.VERIFIED, done)
    asked = replace(report, document={**report.document, "judging_sha256": judging_sha256(context.pipeline)})
    gate_answers.put_gate_report(journal, context.window, hop_results.VERIFIED, asked)
    return VerifiedWindow(whole=whole, gaps=gaps, gate=report)


def _summaries(results: Iterable[HopResult], accepted: Mapping[str, Mapping[str, int]]) -> list[HopSummary]:
    """Return what the gate is asked about, with how many keys of each hop a person has accepted."""
    summaries = [HopSummary.from_json_dict(result.files["summary"]) for result in results]
    return [replace(summary, accepted=accepted.get(summary.hop, {})) for summary in summaries]


def _mark_refused(journal: PgConnection, window: Window) -> None:
    """Record the refusals of the plan as outcomes of its findings, with the reasons."""
    stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
    if stored is not None:
        plan_progress.refuse_findings_of(journal, stored.plan)


def _patience_seconds(journal: PgConnection, context: WindowContext) -> float:
    """Return the time that consumers still get, from the last chunk on; 0 where nothing was written."""
    stored = plans.plan_of_window(journal, context.window.pipeline, context.window.number, context.window.revision)
    if stored is None or stored.plan.state not in (PlanState.RUNNING, PlanState.DONE):
        return 0.0
    patience = max(_LEAST_PATIENCE_SECONDS, context.pipeline.settle.total_seconds())
    written = windows.last_chunk(journal, context.window.pipeline, context.window.number)
    passed = 0.0 if written is None else (observations.moment_now(journal) - written).total_seconds()
    return max(_LEAST_PATIENCE_SECONDS, patience - passed)


def _start_offsets(journal: PgConnection, context: WindowContext) -> StartOffsets:
    """Return the stable offsets of the last observation before the first plan of this window was frozen and before its
    revision was opened: what came while it was judged counts, too."""
    moments = [plans.frozen_at(journal, plan) for plan in plans.ids_of_window(journal, context.window)]
    first = min([*moments, context.window.opened_at])
    offsets = {}
    for point in context.pipeline.points.values():
        if has_log(point):
            before = observations.last(journal, context.pipeline.name, point.name, first)
            offsets[point.name] = {} if before is None else dict(before.stable_offsets or {})
    return StartOffsets(offsets=offsets)
