"""Test what heals without a person: an outage, by tries with growing delays; a window in error, by the next run."""

from datetime import timedelta

import pytest

from tests.e2e.scenarios.failures import Healed
from tests.e2e.scenarios.pipeline_files import ORDERS
from tests.e2e.scenarios.unattended import Outlasted

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


def test_an_outage_of_a_database_is_outlasted_by_tries_with_growing_delays(outlasted: Outlasted) -> None:
    outage = outlasted.outage
    assert outage.seconds > 45
    assert "ERROR makewhole: the PostgreSQL of connection far_outlasted does not answer" in outage.log
    assert outage.states == ("up_for_retry", "up_for_retry")
    assert outage.tries == {"snapshot": 3, "reconcile": 1, "validate": 1}
    (first_end, second_begin), (second_end, third_begin) = outage.pauses
    assert timedelta(seconds=15) <= second_begin - first_end < timedelta(seconds=60)
    assert timedelta(seconds=30) <= third_begin - second_end < timedelta(seconds=120)
    assert (outlasted.window["revision"], outlasted.window["state"]) == (1, "certified")


def test_a_step_that_hangs_is_ended_at_its_time_limit_and_not_tried_again(healed: Healed) -> None:
    assert (healed.hung["snapshot"], healed.hung_tries) == ("failed", 1)
    assert (
        "ERROR makewhole: healed window 1 (revision 1): snapshot: it took longer than 0:01:00, its time limit in the "
        "pipeline file (`time_limits`)"
    ) in healed.hung_log
    assert {healed.hung[step] for step in ("reconcile", "validate", "plan")} == {"upstream_failed"}
    assert healed.hung["certify"] == "failed"


def test_a_window_that_fails_again_is_reported_plainly_and_no_later_window_is_opened(healed: Healed) -> None:
    assert "was left unfinished and is gone on with by run continue__healed__1.1__1" in healed.refusal
    assert "was gone on with by run continue__healed__1.1__1 and was left again" in healed.refusal
    assert "No later window is compared before it" in healed.refusal
    assert healed.held == 1


def test_the_next_run_finishes_the_window_in_error_and_then_its_own(healed: Healed) -> None:
    first, second = healed.windows
    assert [(window["window"], window["revision"], window["state"], window["reason"]) for window in healed.windows] == [
        (1, 1, "certified", None),
        (2, 1, "certified", None),
    ]
    assert second["from"] == first["to"]
    assert [window["hops"][0]["counts"]["matched"] for window in healed.windows] == [ORDERS, 30]
    assert healed.continuations == (
        ("continue__healed__1.1__1", "second try 1"),
        ("continue__healed__1.1__2", "third try 1"),
    )
    ended, opened = healed.order
    assert ended <= opened


def test_the_run_that_waits_says_for_what(healed: Healed) -> None:
    assert "is gone on with by run continue__healed__1.1__2; this run's own window comes after it" in healed.waited
    assert healed.steps["open_window"] == healed.steps["certify"] == "success"
