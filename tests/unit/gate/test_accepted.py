"""Test that the gate counts accepted findings beside the others, and believes no more of them than there are."""

from dataclasses import replace

import pytest

from makewhole.gate import HopSummary, check_summaries
from makewhole.model.gate import Gate, GateAnswer
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import HopCounts

pytestmark = pytest.mark.unit


def of_missing(summaries: list[HopSummary], missing: int, accepted: int) -> list[HopSummary]:
    first, second = summaries
    counts = HopCounts(source_keys=3, source_rows=3, target_rows=3 - missing, matched=3 - missing, missing=missing)
    return [first, replace(second, counts=counts, accepted={"missing": accepted} if accepted else {})]


def test_what_is_accepted_does_not_fail_the_gate(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    assert check_summaries(pipeline, of_missing(summaries, 2, 0)).answer is GateAnswer.FAIL
    assert check_summaries(pipeline, of_missing(summaries, 2, 2)).answer is GateAnswer.PASS


def test_what_is_not_accepted_fails_it_and_the_sentence_says_both(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    report = check_summaries(pipeline, of_missing(summaries, 2, 1))

    assert (report.answer, report.failures) == (
        GateAnswer.FAIL,
        ("flights→warehouse: 1 key missing beside 1 accepted, 0 allowed",),
    )


def test_what_is_accepted_takes_nothing_of_the_tolerance(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    tolerant = replace(pipeline, gate=Gate(missing=1))
    assert check_summaries(tolerant, of_missing(summaries, 3, 1)).answer is GateAnswer.FAIL
    assert check_summaries(tolerant, of_missing(summaries, 2, 1)).answer is GateAnswer.PASS


def test_more_accepted_than_there_are_is_evidence_that_contradicts_itself(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    assert check_summaries(pipeline, of_missing(summaries, 1, 2)).answer is GateAnswer.ERROR
    assert check_summaries(pipeline, of_missing(summaries, 0, 1)).answer is GateAnswer.ERROR


def test_a_summary_keeps_what_is_accepted_and_one_without_is_as_it_was(summaries: list[HopSummary]) -> None:
    first, second = of_missing(summaries, 2, 1)
    assert "accepted" not in first.to_json_dict()
    assert HopSummary.from_json_dict(second.to_json_dict()) == second
