"""Test which unfinished window comes before a run's own, over everything that the journal and Airflow can say of it."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import MagicMock

import pytest

from makewhole.journal import continuations, windows
from makewhole.journal.continuations import UnfinishedWindow
from makewhole.journal.windows import WindowBounds
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.window.opening.interval import Request
from makewhole.window.opening.unfinished import ATTEMPTS_MOST, find_older

pytestmark = pytest.mark.unit

BORN = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SHOP = Pipeline(name="shop", points={}, hops=())
US = "scheduled__5 try 1"


def bounds(number: int) -> WindowBounds:
    return WindowBounds(number=number, revision=1, start=BORN + (number - 1) * DAY, end=BORN + number * DAY)


def left(number: int, **what: Any) -> UnfinishedWindow:
    """Return a window that was left before it was compared, unless `what` says otherwise."""
    said: dict[str, Any] = {
        "opened_at": datetime.now(UTC) - DAY,
        "reason": "the comparison did not finish",
        "is_compared": False,
        "awaits_approval": False,
        "runs": (f"run {number}",),
    }
    return UnfinishedWindow(pipeline="shop", bounds=bounds(number), **(said | what))


class Journal:
    """The answers of a journal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, unfinished: list[UnfinishedWindow]) -> None:
        monkeypatch.setattr(windows, "bounds_near", lambda *_: [bounds(number) for number in (1, 2, 3, 4)])
        monkeypatch.setattr(windows, "by_request", lambda *_: None)
        monkeypatch.setattr(continuations, "unfinished", lambda *_: unfinished)

    def ask(
        self, active: Collection[str] = (), *, day: int = 5, plan_only: bool = False
    ) -> tuple[int, str, bool] | None:
        """Return (window, run, is worked on) of what comes first; None: the own window."""
        request = Request(id="scheduled__5", end=BORN + day * DAY, plan_only=plan_only)
        older = find_older(MagicMock(), SHOP, request, US, lambda run: run in active)
        return None if older is None else (older.window.bounds.number, older.run, older.is_worked_on)


def test_nothing_is_left_and_the_own_window_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Journal(monkeypatch, []).ask() is None


def test_the_oldest_window_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(monkeypatch, [left(2, is_compared=True), left(4)])
    assert journal.ask() == (2, "continue__shop__2.1__1", False)


def test_the_next_attempt_has_a_run_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(monkeypatch, [left(4, runs=("run 4", "continue__shop__4.1__1"), askers=("scheduled__4 try 1",))])
    assert journal.ask() == (4, "continue__shop__4.1__2", False)


@pytest.mark.parametrize("at_work", ["run 4", "continue__shop__4.1__1"])
def test_a_window_that_a_run_is_at_is_waited_for_and_not_started_twice(
    monkeypatch: pytest.MonkeyPatch, at_work: str
) -> None:
    journal = Journal(monkeypatch, [left(4, runs=("run 4", "continue__shop__4.1__1"), askers=("other",))])
    assert journal.ask([at_work]) == (4, at_work, True)


def test_a_repair_that_another_run_is_at_holds_up_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Journal(monkeypatch, [left(4, is_compared=True)]).ask(["run 4"]) is None


def test_what_this_run_had_gone_on_with_is_waited_for_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = left(3, is_compared=True, runs=("run 3", "continue__shop__3.1__1"), askers=(US,))
    assert Journal(monkeypatch, [ours]).ask(["continue__shop__3.1__1"]) == (3, "continue__shop__3.1__1", True)


def test_a_plan_that_waits_for_a_person_holds_up_no_later_window(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = left(3, is_compared=True, awaits_approval=True, runs=("run 3", "again"), askers=(US,))
    assert Journal(monkeypatch, [ours]).ask(["again"]) is None


def test_a_window_that_fails_again_is_reported_plainly_and_later_ones_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    again = left(4, runs=("run 4", "continue__shop__4.1__1"), askers=(US,))
    with pytest.raises(RefusedError) as caught:
        Journal(monkeypatch, [again]).ask()
    assert str(caught.value) == (
        "window 4 (2026-03-04T00:00:00+00:00 to 2026-03-05T00:00:00+00:00) of shop was gone on with by run "
        "continue__shop__4.1__1 and was left again (the comparison did not finish). No later window is compared before "
        "it: duplicates are found against all windows before. Mend what the failed task of that run says; the next run "
        "goes on with it by itself, and then with its own window, which covers everything since"
    )


def test_a_window_that_was_compared_and_fails_again_lets_the_others_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    again = left(2, is_compared=True, runs=("run 2", "again"), askers=(US,))
    assert Journal(monkeypatch, [again]).ask() is None
    assert Journal(monkeypatch, [again, left(4)]).ask() == (4, "continue__shop__4.1__1", False)


def test_a_compared_window_is_given_up_and_one_that_others_wait_for_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    often = tuple(f"scheduled__{number} try 1" for number in range(ATTEMPTS_MOST))
    assert Journal(monkeypatch, [left(2, is_compared=True, askers=often)]).ask() is None
    assert Journal(monkeypatch, [left(4, askers=often)]).ask() == (4, "continue__shop__4.1__6", False)


def test_what_was_compared_long_ago_is_left_to_a_person_and_what_others_wait_for_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long_ago = datetime.now(UTC) - 8 * DAY
    assert Journal(monkeypatch, [left(2, is_compared=True, opened_at=long_ago)]).ask() is None
    assert Journal(monkeypatch, [left(4, opened_at=long_ago)]).ask() == (4, "continue__shop__4.1__1", False)


def test_a_run_that_changes_nothing_goes_on_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Journal(monkeypatch, [left(2, is_compared=True)]).ask(plan_only=True) is None
    with pytest.raises(RefusedError, match="a run that changes nothing does not go on with it"):
        Journal(monkeypatch, [left(4)]).ask(plan_only=True)


def test_an_interval_that_is_covered_already_waits_for_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Journal(monkeypatch, [left(4)]).ask(day=4) is None


def test_a_run_whose_window_is_open_goes_on_with_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(monkeypatch, [left(4)])
    monkeypatch.setattr(windows, "by_request", lambda *_: (5, 1))
    assert journal.ask() is None
