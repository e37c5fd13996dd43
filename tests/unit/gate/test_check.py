"""Turning runs into an answer. The library is played by functions that lie on purpose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from makewhole.gate import HopSummary, KeyedFrames, check, check_summaries, check_verdicts
from makewhole.gate.expectations import ExpectationOutcome, SuiteRun
from makewhole.gate.planned_expectation import Planned
from makewhole.gate.suite import HopSuite
from makewhole.gate.transposed import NumberSuite
from makewhole.model.gate import GateAnswer
from makewhole.model.pipeline import Pipeline
from tests.unit.gate.conftest import accounting_of

pytestmark = pytest.mark.unit


def honest(name: str, row: Mapping[str, int | None], planned: Sequence[Planned]) -> SuiteRun:
    """Run a suite as the library should."""
    outcomes = []
    for expectation in planned:
        value = row[expectation.kwargs["column"]]
        low, high = expectation.kwargs.get("min_value"), expectation.kwargs.get("max_value")
        outcomes.append(
            ExpectationOutcome(
                id=expectation.id,
                success=value is not None if low is None or high is None else value is None or low <= value <= high,
            )
        )
    failed = {expected.severity for expected, outcome in zip(planned, outcomes, strict=True) if not outcome.success}
    worst = "critical" if "critical" in failed else next(iter(failed), None)
    return SuiteRun(name=name, success=not failed, worst=worst, outcomes=tuple(outcomes))


Run = Callable[[str, Mapping[str, int | None], Sequence[Planned]], SuiteRun]


def each(run: Run) -> Callable[[Sequence[NumberSuite]], tuple[SuiteRun, ...]]:
    """Run suites one by one."""
    return lambda suites: tuple(run(suite.name, suite.row, suite.planned) for suite in suites)


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(check, "run_on_rows", each(honest))
    monkeypatch.setattr(check, "library_version", lambda: "0")
    return monkeypatch


def test_a_whole_window_passes(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    report = check_summaries(pipeline, summaries)
    assert (report.answer, report.failures) == (GateAnswer.PASS, ())
    assert report.planned == report.evaluated > 100


def test_a_loss_beyond_tolerance_fails_and_says_what_was_found_and_allowed(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    lossy = replace(summaries[1], counts=replace(summaries[1].counts, matched=1, missing=2, target_rows=1))
    report = check_summaries(pipeline, [summaries[0], lossy])
    assert (report.answer, report.failures) == (GateAnswer.FAIL, ("flights→warehouse: 2 keys missing, 0 allowed",))


def test_findings_on_broken_evidence_are_an_error(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    counts = replace(summaries[1].counts, matched=1, missing=2, target_rows=1)
    lossy = replace(summaries[1], counts=counts, target=replace(summaries[1].target, has_manifest=False))
    report = check_summaries(pipeline, [summaries[0], lossy])
    assert report.answer is GateAnswer.ERROR
    assert report.failures == (
        "flights→warehouse: the snapshot of warehouse was never committed; take it before judging anything",
        "flights→warehouse: 2 keys missing, 0 allowed",
    )


def test_an_empty_suite_is_an_error(
    library: pytest.MonkeyPatch, pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    library.setattr(check, "hop_suite", lambda _pipeline, summary, _frame: HopSuite(hop=summary.hop, numbers=()))
    report = check_summaries(pipeline, summaries)
    assert (report.answer, report.planned) == (GateAnswer.ERROR, 0)
    assert report.failures == ("No expectation was planned, so nothing was checked.",)


def test_an_expectation_that_was_not_evaluated_is_an_error(
    library: pytest.MonkeyPatch, pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    library.setattr(check, "run_on_rows", each(lambda name, row, planned: honest(name, row, planned[1:])))
    report = check_summaries(pipeline, summaries)
    assert report.answer is GateAnswer.ERROR
    assert report.failures == (
        f"{report.planned} expectations were planned, {report.planned - 3} evaluated: the check is not complete.",
    )


def test_one_expectation_evaluated_twice_does_not_stand_for_another(
    library: pytest.MonkeyPatch, pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    twice = each(lambda name, row, planned: honest(name, row, [planned[1], *planned[1:]]))
    library.setattr(check, "run_on_rows", twice)
    report = check_summaries(pipeline, summaries)
    assert report.planned == report.evaluated
    assert report.answer is GateAnswer.ERROR


def test_a_check_that_raises_inside_the_library_is_an_error_and_never_a_finding(
    library: pytest.MonkeyPatch, pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    def breaks(name: str, row: Mapping[str, int | None], planned: Sequence[Planned]) -> SuiteRun:
        run = honest(name, row, planned)
        first = replace(run.outcomes[0], success=False, raised="column gone")
        return replace(run, success=False, worst="critical", outcomes=(first, *run.outcomes[1:]))

    library.setattr(check, "run_on_rows", each(breaks))
    report = check_summaries(pipeline, summaries)
    assert report.answer is GateAnswer.ERROR
    assert report.failures[0] == "The check `outbox→flights source_snapshots is known` itself broke: column gone"


def test_an_exception_is_an_error_with_a_sentence(
    library: pytest.MonkeyPatch, pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    def explodes(_: Any) -> tuple[SuiteRun, ...]:
        raise RuntimeError("out of memory\nrow 1: secret")

    library.setattr(check, "run_on_rows", explodes)
    report = check_summaries(pipeline, summaries)
    assert (report.answer, report.failures) == (
        GateAnswer.ERROR,
        ("The gate itself broke (RuntimeError): out of memory",),
    )


def test_a_run_that_fails_without_a_failure_is_an_error(
    library: pytest.MonkeyPatch, pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    library.setattr(check, "run_on_rows", each(lambda *given: replace(honest(*given), success=False)))
    assert check_summaries(pipeline, summaries).answer is GateAnswer.ERROR


def test_records_without_a_usable_key_fail_the_gate(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    accounting = replace(accounting_of(summaries[1].source), span=7, undecodable=2)
    summaries[1] = replace(summaries[1], source=replace(summaries[1].source, accounting=accounting))
    report = check_summaries(pipeline, summaries)
    assert report.answer is GateAnswer.FAIL
    assert report.failures == (
        "flights→warehouse: 2 records of flights have no usable key, 0 allowed; they are kept with their places in the "
        "snapshot's folder undecodable (gate.tolerance.undecodable permits some)",
    )


@pytest.mark.parametrize("given", [slice(0, 0), slice(0, 1)])
def test_a_hop_without_a_summary_is_an_error(pipeline: Pipeline, summaries: list[HopSummary], given: slice) -> None:
    report = check_summaries(pipeline, summaries[given])
    assert report.answer is GateAnswer.ERROR
    assert report.failures[0].startswith("Pipeline flights has the hops outbox→flights, flights→warehouse; summed up")


def test_the_same_hop_twice_does_not_stand_for_the_other(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    assert check_summaries(pipeline, [summaries[0], summaries[0]]).answer is GateAnswer.ERROR


def test_a_frame_that_is_no_stored_file_is_refused(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    class Computed:
        def inputFiles(self) -> list[str]:  # noqa: N802 - Spark's spelling
            return []

    report = check_verdicts(pipeline, summaries, KeyedFrames(verdicts=Computed(), buckets=Computed()))  # type: ignore[arg-type]
    assert report.answer is GateAnswer.ERROR
    assert "could change while they are checked" in report.failures[0]
