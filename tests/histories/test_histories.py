"""Test that makewhole answers random histories rightly: over whole windows, by the real steps, on real servers.

make histories                                                       a dozen
make histories HISTORIES_ARGS="--histories 1000 --seed 1"            any number
make histories HISTORIES_ARGS="--histories 1 --seed 17 --shrink"     one, and the least of it that still fails
"""

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.histories.check import differences
from tests.histories.draw import KINDS, draw
from tests.histories.drawn import expect_right, kinds_asked_for, played
from tests.histories.events import History, Step
from tests.histories.play import Player
from tests.histories.said import Said

pytestmark = [pytest.mark.histories, pytest.mark.timeout(600)]

Stage = Callable[[History], AbstractContextManager[Player]]


def test_every_answer_of_a_random_history_is_right(seed: int, stage: Stage, request: pytest.FixtureRequest) -> None:
    """Takes long: a history has some ten windows, most of them with a repair."""
    option = request.config.getoption
    history = draw(seed, kinds_asked_for(request, KINDS))
    began = time.monotonic()
    wrong, seconds, states, reasons = _play(stage, history)
    results = option("results", default=None)
    if results is not None:
        line = {
            "seed": seed,
            "seconds": round(time.monotonic() - began, 1),
            "wrong": wrong,
            "states": states,
            "reasons": reasons,
            "steps": seconds,
        }
        with results.open("a") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    expect_right(history, wrong, lambda shorter: _play(stage, shorter)[0], Step, request)


def _play(stage: Stage, history: History) -> tuple[list[str], dict[str, float], list[str | None], list[str]]:
    """Play a history to its end, or to the first window that is answered wrongly."""
    said: list[Said] = []

    def noted(latest: Said) -> list[str]:
        said.append(latest)
        return differences(history, latest)

    with stage(history) as player:
        wrong = played(lambda check: player.play(lambda latest: check(noted(latest))))
    states, reasons = [window.state for window in said], [window.reason for window in said if window.reason]
    return wrong, {name: round(taken, 2) for name, taken in player.seconds.items()}, states, reasons
