"""Test that random histories of several sources, hops and stores are answered rightly, whatever types columns have."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.histories.drawn import expect_right, kinds_asked_for, played
from tests.histories.routes.check import differences
from tests.histories.routes.draw import KINDS, draw
from tests.histories.routes.events import History, Window
from tests.histories.routes.play import RoutePlayer

pytestmark = [pytest.mark.histories, pytest.mark.timeout(600)]

Stage = Callable[[History], AbstractContextManager[RoutePlayer]]


def test_places_are_judged_and_mended_rightly(seed: int, route_stage: Stage, request: pytest.FixtureRequest) -> None:
    """Takes long: each history has three windows, most of them with a repair."""
    history = draw(seed, kinds_asked_for(request, KINDS))

    def wrong_in(drawn: History) -> list[str]:
        with route_stage(drawn) as player:
            return played(lambda check: player.play(lambda seen: check(differences(seen))))

    expect_right(history, wrong_in(history), wrong_in, Window, request)
