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
from tests.histories.draw import default_kinds, draw
from tests.histories.events import History
from tests.histories.play import Player
from tests.histories.said import Said
from tests.histories.shrink import shrunk

pytestmark = [pytest.mark.histories, pytest.mark.timeout(600)]

Stage = Callable[[History], AbstractContextManager[Player]]


def test_every_answer_of_a_random_history_is_right(seed: int, stage: Stage, request: pytest.FixtureRequest) -> None:
    """Takes long: a history has some ten windows, most of them with a repair."""
    option = request.config.getoption
    history = draw(seed, _kinds(option("kinds", default="")))
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
    if wrong and option("shrink", default=False):
        history = shrunk(history, lambda one: bool(_play(stage, one)[0]))
        wrong, *_ = _play(stage, history)
    told = "\n".join(wrong)
    assert not wrong, f'{told}\n{history.text}\nagain: make histories HISTORIES_ARGS="--histories 1 --seed {seed}"'


def _play(stage: Stage, history: History) -> tuple[list[str], dict[str, float], list[str | None], list[str]]:
    """Play a history to its end, or to the first window that is answered wrongly."""
    wrong: list[str] = []
    states: list[str | None] = []
    reasons: list[str] = []

    class _EnoughError(Exception):
        pass

    def check(said: Said) -> None:
        states.append(said.state)
        reasons.extend([said.reason] if said.reason else [])
        wrong.extend(differences(history, said))
        if wrong:
            raise _EnoughError

    with stage(history) as player:
        try:
            player.play(check)
        except _EnoughError:
            pass
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}")
    return wrong, {name: round(taken, 2) for name, taken in player.seconds.items()}, states, reasons


def _kinds(asked: str) -> frozenset[str]:
    """Return the kinds to draw."""
    names = [name for name in asked.split(",") if name]
    if all(name[0] in "+-" for name in names):
        more = {name[1:] for name in names if name[0] == "+"}
        return (default_kinds() | more) - {name[1:] for name in names if name[0] == "-"}
    return frozenset(names)
