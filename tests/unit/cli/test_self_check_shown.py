"""Test what `makewhole self-check` shows of rounds."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from makewhole.cli.check.self_check import document_of, lines_of
from makewhole.journal.results.self_check_rounds import PlantedRound, RoundResult
from makewhole.model.pipeline import Pipeline
from makewhole.model.self_check.planted import Discrepancy
from makewhole.model.self_check.score import Score
from makewhole.model.window import WindowState

pytestmark = pytest.mark.unit

PIPELINE = Pipeline(name="check", points={}, hops=(), schedule="20 5 * * *")
NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
FAULTS = tuple(Discrepancy(hop="events→stored", verdict="missing", key=f"r-{number}") for number in range(2))
GREEN = Score(planted=2, found=2, missed=(), invented=(), left=(), state=WindowState.CERTIFIED)
RED = replace(GREEN, found=1, missed=FAULTS[:1])


def round_of(number: int, day: int, score: Score | None) -> PlantedRound:
    compared_at = datetime(2026, 3, day, 5, 25, tzinfo=UTC)
    return PlantedRound(
        round=number,
        run=f"run {number}",
        name="r",
        records=100,
        begins={"0": 0},
        planted=FAULTS,
        begun_at=compared_at - timedelta(minutes=2),
        planted_at=compared_at - timedelta(minutes=1),
        compared_at=None if score is None else compared_at,
        result=None if score is None else RoundResult(window=number, revision=1, score=score),
    )


def test_the_last_round_is_shown_by_kind_and_those_before_in_one_line() -> None:
    document = document_of(PIPELINE, [round_of(3, 5, GREEN), round_of(2, 4, RED), round_of(1, 3, GREEN)], NOW)
    assert document["exit"] == "CERTIFIED"
    assert list(lines_of(document)) == [
        "check: green, round 3 of 2026-03-05 (window 3): 2 of 2 planted faults found, recall 1.000, precision 1.000",
        "  missing on events→stored: 2 of 2 found",
        "  before: 2026-03-04 RED (0.500/1.000), 2026-03-03 green",
    ]


def test_a_red_round_is_red_also_while_the_next_one_is_under_way() -> None:
    document = document_of(PIPELINE, [round_of(2, 5, None), round_of(1, 5, RED)], NOW)
    assert (document["exit"], document["waiting"]) == ("GAPS_REMAIN", 2)
    assert list(lines_of(document)) == [
        "check: RED, round 1 of 2026-03-05 (window 1): 1 of 2 planted faults found, recall 0.500, precision 1.000; "
        "1 missed: r-0 (missing on events→stored)",
        "  missing on events→stored: 1 of 2 found",
        "  round 2 is under way, or was left in the middle; the next run goes on with it",
    ]


def test_a_green_round_that_is_older_than_the_schedule_is_not_known() -> None:
    document = document_of(PIPELINE, [round_of(1, 4, GREEN)], NOW)
    assert document["exit"] == "NOT_KNOWN"
    assert list(lines_of(document))[-1] == (
        "  late: no round was compared since 2026-03-05T05:20:00+00:00; is makewhole_reconcile_check paused?"
    )
    hardly_due = document_of(PIPELINE, [round_of(1, 4, GREEN)], NOW - timedelta(hours=2))
    assert (hardly_due["exit"], hardly_due["late_since"]) == ("CERTIFIED", None)


def test_nothing_compared_is_not_known() -> None:
    document = document_of(PIPELINE, [], NOW)
    assert document["exit"] == "NOT_KNOWN"
    assert list(lines_of(document)) == ["check: nothing was compared yet; its DAG is makewhole_reconcile_check"]
