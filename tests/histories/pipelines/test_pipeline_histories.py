"""Test that random histories of pipelines are answered rightly, whatever records and stores are made of."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.histories.drawn import expect_right, kinds_asked_for, played
from tests.histories.pipelines.check import differences
from tests.histories.pipelines.draw import KINDS, draw
from tests.histories.pipelines.events import History, Window
from tests.histories.pipelines.play import PipelinePlayer

pytestmark = [pytest.mark.histories, pytest.mark.timeout(600)]

Stage = Callable[[History], AbstractContextManager[PipelinePlayer]]


def test_what_pipelines_are_made_of_is_judged_and_mended_rightly(
    seed: int, pipeline_stage: Stage, request: pytest.FixtureRequest
) -> None:
    history = draw(seed, kinds_asked_for(request, KINDS))

    def wrong_in(drawn: History) -> list[str]:
        with pipeline_stage(drawn) as player:
            return played(lambda check: player.play(lambda seen: check(differences(seen))))

    expect_right(history, wrong_in(history), wrong_in, Window, request)
