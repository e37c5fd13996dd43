"""Test that makewhole answers random histories of versions rightly, and writes nothing but what was proved wrong."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.histories.drawn import expect_right, kinds_asked_for, played
from tests.histories.upserts.check import differences
from tests.histories.upserts.draw import KINDS, draw
from tests.histories.upserts.events import History, Window
from tests.histories.upserts.play import UpsertPlayer

pytestmark = [pytest.mark.histories, pytest.mark.timeout(600)]

Stage = Callable[[History], AbstractContextManager[UpsertPlayer]]


def test_versions_are_judged_and_mended_rightly(seed: int, upsert_stage: Stage, request: pytest.FixtureRequest) -> None:
    """Takes long: each history has four windows, most of them with a repair."""
    history = draw(seed, kinds_asked_for(request, KINDS))

    def wrong_in(drawn: History) -> list[str]:
        with upsert_stage(drawn) as player:
            return played(lambda check: player.play(lambda _: check(differences(drawn, player.seen))))

    expect_right(history, wrong_in(history), wrong_in, Window, request)
