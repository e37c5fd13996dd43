"""Test what a comparison of a self-check says where there is nothing to compare."""

from contextlib import nullcontext
from datetime import UTC, datetime
from unittest.mock import MagicMock

import pytest
from airflow.sdk.exceptions import AirflowFailException

from makewhole.journal import database
from makewhole.journal.results import self_check_rounds
from makewhole.journal.results.self_check_rounds import PlantedRound
from makewhole.orchestration.steps import self_checking
from makewhole.self_check import compare
from makewhole.window import context

pytestmark = pytest.mark.unit

WAITING = PlantedRound(
    round=4, run="run 4", name="r4", records=10, begins={}, planted=(), begun_at=datetime(2026, 3, 7, tzinfo=UTC)
)


@pytest.mark.parametrize(
    ("planted", "message"),
    [
        ({"round": 4}, "round 4 could not be compared: no window of it came to its end; the next run goes on with it"),
        (None, "nothing was planted in this run; see the task plant_faults"),
    ],
)
def test_a_round_without_a_window_is_red_and_says_so(
    monkeypatch: pytest.MonkeyPatch, planted: dict[str, int] | None, message: str
) -> None:
    task = MagicMock()
    task.xcom_pull.return_value = planted
    monkeypatch.setattr(self_checking, "get_current_context", lambda: {"ti": task})
    monkeypatch.setattr(self_checking, "load_pipeline", MagicMock())
    monkeypatch.setattr(context, "connections_of", MagicMock())
    monkeypatch.setattr(compare, "compare", lambda *_: [])
    monkeypatch.setattr(database, "connect", lambda: nullcontext(object()))
    monkeypatch.setattr(self_check_rounds, "newest", lambda *_: [WAITING])

    with pytest.raises(AirflowFailException, match=f"^{message}$"):
        self_checking.compare_faults("self_check")
