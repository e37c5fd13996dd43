"""Test what a step's errors become in Airflow: a failure, a retry, or a worker given back."""

import logging
from datetime import UTC, datetime, timedelta

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

from makewhole.model.errors import NotYetError, PlanPausedError, RefusedError, TransientError
from makewhole.orchestration.steps import opening
from makewhole.orchestration.steps.step import step

pytestmark = pytest.mark.unit


def raised_for(error: Exception) -> BaseException:
    @step
    def broken() -> None:
        raise error

    with pytest.raises(BaseException) as caught:
        broken()
    return caught.value


def test_a_permanent_error_fails_the_task_at_once_and_a_transient_one_is_left_to_the_retries() -> None:
    assert isinstance(raised_for(RefusedError("no")), AirflowFailException)
    away = TransientError("away")
    assert raised_for(away) is away


@pytest.mark.parametrize("error", [PlanPausedError("plan p waits"), NotYetError("3 keys may still arrive")])
def test_what_has_to_wait_gives_its_worker_back_and_comes_again_in_a_minute(error: Exception) -> None:
    raised = raised_for(error)
    assert isinstance(raised, AirflowRescheduleException)
    wait = raised.reschedule_date - datetime.now(UTC)
    assert timedelta(seconds=55) < wait <= timedelta(seconds=60)


@pytest.mark.parametrize(
    ("seconds", "is_over", "said"),
    [
        (90, False, ["shop window 1: an absence counts from {} on; looking again then"]),
        (0.05, True, ["shop window 1: waiting 0 s until an absence counts"]),
        (-5, True, []),
    ],
)
def test_settle_gives_its_worker_back_until_the_last_minute_and_says_until_when(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, seconds: float, is_over: bool, said: list[str]
) -> None:
    settled_at = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
    monkeypatch.setattr(opening, "get_current_context", dict)
    monkeypatch.setattr(opening, "opened_window", lambda _: {"settled_at": settled_at, "label": "shop window 1"})
    with caplog.at_level(logging.INFO, opening.logger.name):
        assert opening.settle() is is_over
    assert [record.getMessage() for record in caplog.records] == [line.format(settled_at) for line in said]
    assert (datetime.now(UTC) >= datetime.fromisoformat(settled_at)) is is_over
