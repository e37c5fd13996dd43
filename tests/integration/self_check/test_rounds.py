"""Test that a self-check finds what it plants, says what is missed, and plants each round once."""

import pytest

from makewhole.model.window import WindowState
from tests.integration.self_check.checked_world import CheckedWorld

pytestmark = pytest.mark.integration


def test_what_is_planted_is_found_and_repaired_on_days_that_follow_each_other(world: CheckedWorld) -> None:
    for day in range(1, 4):
        compared = world.round(f"run {day}")
        assert compared.result is not None
        score = compared.result.score
        assert (score.missed, score.invented, score.left, score.state, score.reason) == (
            (),
            (),
            (),
            WindowState.CERTIFIED,
            None,
        )
        assert score.found == score.planted == len(compared.planted) >= 5
        assert (score.recall, score.precision, score.is_green) == (1.0, 1.0, True)
        assert (compared.round, compared.result.window) == (day, day)
