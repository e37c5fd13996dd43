"""Test that a window in error is finished by the next run, in order, without a person."""

import pytest

from tests.e2e.scenarios.failures import Healed
from tests.e2e.scenarios.pipeline_files import ORDERS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


def test_a_window_that_fails_again_is_told_plainly_and_no_later_window_is_opened(healed: Healed) -> None:
    assert "was left unfinished and is gone on with by run continue__healed__1.1__1" in healed.told
    assert "was gone on with by run continue__healed__1.1__1 and was left again" in healed.told
    assert "No later window is compared before it" in healed.told
    assert healed.held == 1


def test_the_next_run_finishes_the_window_in_error_and_then_its_own(healed: Healed) -> None:
    first, second = healed.windows
    assert [(one["window"], one["revision"], one["state"], one["reason"]) for one in healed.windows] == [
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
