"""Plan the gate's expectations, have them run, and turn their outcomes into PASS, FAIL or ERROR.

PASS needs every planned expectation evaluated, at least one, none broken, and no critical failure. FAIL means that the
verdicts are sound and say that something is wrong: a plan may follow. ERROR means that the check broke or that the
evidence contradicts itself: no plan may follow.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from makewhole.gate.expectations import (
    ExpectationOutcome,
    SuiteRun,
    first_line,
    library_version,
    run_on_rows,
)
from makewhole.gate.frame import FrameCounts, Keyed
from makewhole.gate.planned_expectation import IS_KNOWN, Number, Planned, Role
from makewhole.gate.suite import HopSuite, frame_suite, hop_suite, incident_suite, topic_suite
from makewhole.gate.summary import HopSummary
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.incident import Incident
from makewhole.model.pipeline import Pipeline
from makewhole.model.text import is_hop_name

logger = logging.getLogger(__name__)
_SILENCE = (
    "Silence is not proof; where quiet intervals are right, write `gate: {allow_empty: true}` into the pipeline file "
    "and run the window again"
)


def check_summaries(
    pipeline: Pipeline, summaries: Sequence[HopSummary], incidents: Sequence[Incident] = ()
) -> GateReport:
    """Check layer B alone, without Spark: one row of numbers per hop, and one of the logs' incidents.

    Never raises: what breaks becomes ERROR.
    """
    return _guarded(lambda: _check_summaries(pipeline, summaries, incidents))


def check_verdicts(
    pipeline: Pipeline, summaries: Sequence[HopSummary], frames: Keyed, incidents: Sequence[Incident] = ()
) -> GateReport:
    """Check layers A and B. Never raises: what breaks becomes ERROR."""
    return _guarded(lambda: _check_verdicts(pipeline, summaries, frames, incidents))


def error_report(sentence: str) -> GateReport:
    """Return the report of a gate that could not begin, with the reason."""
    return GateReport(answer=GateAnswer.ERROR, planned=0, evaluated=0, failures=(sentence,))


def _guarded(check: Callable[[], GateReport]) -> GateReport:
    try:
        return check()
    except Exception as error:
        logger.error("The gate broke: %s", type(error).__name__)
        return error_report(f"The gate itself broke ({type(error).__name__}): {first_line(str(error))}")


def _check_summaries(pipeline: Pipeline, summaries: Sequence[HopSummary], incidents: Sequence[Incident]) -> GateReport:
    problem = _summaries_problem(pipeline, summaries)
    if problem:
        return error_report(problem)
    return _in_one_sentence(summaries, incidents, _report(*_run_suites(_suites(pipeline, summaries, incidents, None))))


def _check_verdicts(
    pipeline: Pipeline, summaries: Sequence[HopSummary], frames: Keyed, incidents: Sequence[Incident]
) -> GateReport:
    problem = _summaries_problem(pipeline, summaries)
    if problem:
        return error_report(problem)
    planned = frame_suite(summaries)
    run, counts = frames.run(planned), frames.count([summary.hop for summary in summaries])
    suites, runs = _run_suites(_suites(pipeline, summaries, incidents, counts))
    return _in_one_sentence(summaries, incidents, _report(suites, (run, *runs), planned))


def _in_one_sentence(summaries: Sequence[HopSummary], incidents: Sequence[Incident], report: GateReport) -> GateReport:
    """Return the report of a window in which no point has anything, and nothing happened, with one sentence."""
    if report.answer is not GateAnswer.FAIL or incidents or not all(summary.is_empty for summary in summaries):
        return report
    points = dict.fromkeys(end.point for summary in summaries for end in (summary.source, summary.target))
    return replace(report, failures=(f"the window is empty: {_all_of(list(points))} in it. {_SILENCE}",))


def _all_of(points: Sequence[str]) -> str:
    return f"there is nothing of {', '.join(points[:-1])} and {points[-1]}"


def _summaries_problem(pipeline: Pipeline, summaries: Sequence[HopSummary]) -> str | None:
    """Return what is wrong unless every hop of the pipeline and every topic alone is summed up exactly once, with its
    own points."""
    expected = [(hop.name, hop.source, hop.target) for hop in pipeline.hops]
    expected += [(point.name, point.name, point.name) for point in pipeline.topics_alone]
    given = [(summary.hop, summary.source.point, summary.target.point) for summary in summaries]
    if expected and sorted(given) == sorted(expected):
        return None
    names = ", ".join(hop for hop, _, _ in given) or "none"
    return f"Pipeline {pipeline.name} has the hops {', '.join(h for h, _, _ in expected)}; summed up were: {names}."


def _suites(
    pipeline: Pipeline, summaries: Sequence[HopSummary], incidents: Sequence[Incident], counts: FrameCounts | None
) -> tuple[HopSuite, ...]:
    hops = tuple(
        hop_suite(pipeline, summary, counts) if is_hop_name(summary.hop) else topic_suite(pipeline, summary)
        for summary in summaries
    )
    # Without any number of a hop nothing is planned at all: the logs' incidents do not replace it.
    return (*hops, incident_suite(pipeline, incidents)) if any(suite.numbers for suite in hops) else hops


def _run_suites(suites: tuple[HopSuite, ...]) -> tuple[tuple[HopSuite, ...], tuple[SuiteRun, ...]]:
    return suites, run_on_rows(suites)


def _report(suites: Sequence[HopSuite], runs: Sequence[SuiteRun], of_frame: Sequence[Planned] = ()) -> GateReport:
    planned = {check.id: check for check in (*of_frame, *(check for suite in suites for check in suite.planned))}
    outcomes = [outcome for run in runs for outcome in run.outcomes]
    broken = _broken(planned, outcomes, runs)
    failed = [planned[outcome.id] for outcome in outcomes if not outcome.success and outcome.id in planned]
    values = {outcome.id: outcome.found for outcome in outcomes}
    sentences = {role: [_sentence(check, values[check.id]) for check in failed if check.role is role] for role in Role}
    return GateReport(
        answer=_answer(runs, unsound=bool(broken or sentences[Role.EVIDENCE])),
        planned=len(planned),
        evaluated=len(outcomes),
        failures=tuple(broken or (*sentences[Role.EVIDENCE], *sentences[Role.FINDING])),
        document=_document(suites, runs, sentences[Role.NOTE]),
    )


def _answer(runs: Sequence[SuiteRun], *, unsound: bool) -> GateAnswer:
    if unsound:
        return GateAnswer.ERROR
    return GateAnswer.FAIL if any(run.worst == "critical" for run in runs) else GateAnswer.PASS


def _broken(
    planned: Mapping[str, Planned], outcomes: Sequence[ExpectationOutcome], runs: Sequence[SuiteRun]
) -> list[str]:
    """Return why the runs cannot be trusted; empty when they can."""
    raised = [f"The check `{outcome.id}` itself broke: {outcome.raised}" for outcome in outcomes if outcome.raised]
    if raised:
        return raised
    if not planned:
        return ["No expectation was planned, so nothing was checked."]
    if sorted(outcome.id for outcome in outcomes) != sorted(planned):
        return [f"{len(planned)} expectations were planned, {len(outcomes)} evaluated: the check is not complete."]
    return [
        f"The check of {run.name} failed and does not say why." for run in runs if not run.success and not run.worst
    ]


def _sentence(check: Planned, observed: int | None) -> str:
    return check.sentence.replace("{found}", "an unknown number of" if observed is None else f"{observed:,}")


def _document(suites: Sequence[HopSuite], runs: Sequence[SuiteRun], notes: Sequence[str]) -> dict[str, Any]:
    """Return the runs as a document of numbers and limits only: no key and no value of any row."""
    numbers = {f"{suite.hop} {number.name}": number for suite in suites for number in suite.numbers}
    return {
        "library": f"great_expectations {library_version()}",
        "notes": list(notes),
        "runs": [_run_document(run, numbers) for run in runs],
    }


def _run_document(run: SuiteRun, numbers: Mapping[str, Number]) -> dict[str, Any]:
    """Return a run as a document, without the not-null halves of numbers that are known."""
    checks = [
        {"check": outcome.id.removeprefix(f"{run.name} "), "success": outcome.success, **_found(outcome, numbers)}
        for outcome in run.outcomes
        if not (outcome.success and outcome.id.endswith(IS_KNOWN))
    ]
    return {"name": run.name, "success": run.success, "evaluated": len(run.outcomes), "checks": checks}


def _found(outcome: ExpectationOutcome, numbers: Mapping[str, Number]) -> dict[str, int | None]:
    number = numbers.get(outcome.id)
    if number is None:
        return {"found": outcome.found}
    return {"found": number.value, "at_least": number.at_least, "at_most": number.at_most}
