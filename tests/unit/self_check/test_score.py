"""Test what is drawn for a round of a self-check, and when a round is green."""

from collections import Counter
from dataclasses import replace

import pytest

from makewhole.model.self_check.planted import Discrepancy, draw, rows_of
from makewhole.model.self_check.score import Score, ratio_text
from makewhole.model.window import WindowState

pytestmark = pytest.mark.unit

FAULT = Discrepancy(hop="events→stored", verdict="missing", key="r-1")
GREEN = Score(planted=3, found=3, missed=(), invented=(), left=(), state=WindowState.CERTIFIED)


def test_each_kind_is_drawn_and_no_key_twice() -> None:
    for seed in range(50):
        planted = draw("r", str(seed), 100, 20)
        assert planted == draw("r", str(seed), 100, 20)
        assert max(Counter(fault.key for fault in planted).values()) == 1
        kinds = Counter((fault.hop, fault.verdict) for fault in planted)
        assert len(kinds) == 5 and all(1 <= count <= 20 for count in kinds.values())
        known = {row.key for row in rows_of("r", 100)}
        assert all((fault.key in known) == (fault.verdict != "unexpected") for fault in planted)
    assert draw("r", "1", 100, 20) != draw("r", "2", 100, 20)


def test_a_green_round_says_what_it_found() -> None:
    assert GREEN.is_green
    assert GREEN.sentence() == "3 of 3 planted faults found, recall 1.000, precision 1.000"


@pytest.mark.parametrize(
    ("score", "sentence"),
    [
        (
            replace(GREEN, found=2, missed=(FAULT,)),
            "2 of 3 planted faults found, recall 0.666, precision 1.000; 1 missed: r-1 (missing on events→stored)",
        ),
        (
            replace(GREEN, found=7, invented=(FAULT,) * 4),
            "3 of 3 planted faults found, recall 1.000, precision 0.428; 4 invented: "
            + "r-1 (missing on events→stored), " * 2
            + "r-1 (missing on events→stored) and 1 more",
        ),
        (
            replace(GREEN, left=(FAULT,)),
            "3 of 3 planted faults found, recall 1.000, precision 1.000; 1 still wrong: r-1 (missing on events→stored)",
        ),
        (
            replace(GREEN, state=WindowState.GAPS, reason="1 missing"),
            "3 of 3 planted faults found, recall 1.000, precision 1.000; its window is gaps (1 missing)",
        ),
        (
            replace(GREEN, planted=0, found=0),
            "0 of 0 planted faults found, recall 0.000, precision 0.000; nothing was planted",
        ),
    ],
)
def test_whatever_is_wrong_makes_a_round_red_and_is_said(score: Score, sentence: str) -> None:
    assert not score.is_green
    assert score.sentence() == sentence


def test_only_what_is_whole_reads_as_one() -> None:
    assert [ratio_text(ratio) for ratio in (1.0, 0.9999, 0.0)] == ["1.000", "0.999", "0.000"]
