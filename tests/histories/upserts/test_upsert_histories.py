"""Test that makewhole answers random histories of versions rightly, and writes nothing but what was proved wrong."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.histories.drawn import expect_right, kinds_asked_for
from tests.histories.upserts.check import differences
from tests.histories.upserts.draw import KINDS, draw
from tests.histories.upserts.events import History, Window
from tests.histories.upserts.held import Seen
from tests.histories.upserts.play import UpsertPlayer

pytestmark = [pytest.mark.histories, pytest.mark.timeout(600)]

Stage = Callable[[History], AbstractContextManager[UpsertPlayer]]


class _EnoughError(Exception):
    """A window was answered wrongly."""


def test_versions_are_judged_and_mended_rightly(seed: int, upsert_stage: Stage, request: pytest.FixtureRequest) -> None:
    """Takes long: each history has four windows, most of them with a repair."""
    history = draw(seed, kinds_asked_for(request, KINDS))
    expect_right(history, _play(upsert_stage, history), lambda one: _play(upsert_stage, one), Window, request)


def _play(stage: Stage, history: History) -> list[str]:
    """Play a history to its end, or to the first window that is answered wrongly; return what was wrong."""
    wrong: list[str] = []
    with stage(history) as player:

        def check(_: Seen) -> None:
            wrong.extend(differences(history, player.seen))
            if wrong:
                raise _EnoughError

        try:
            player.play(check)
        except _EnoughError:
            pass
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}")
    return wrong
