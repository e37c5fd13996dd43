"""Test that a window which was left in error is gone on with where it was left, before the ones after it."""

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import continuations, windows
from makewhole.journal.database import connect
from makewhole.journal.results import gate_answers, hop_results
from makewhole.model.errors import NotYetError, RefusedError
from makewhole.model.window import Window, WindowState
from makewhole.window.context import WindowContext, window_context
from makewhole.window.opening.interval import Request
from makewhole.window.opening.unfinished import OlderWindow, continue_window, find_older
from tests.world.orders import BORN, DAY, orders
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


def older(shop: ReconciledShop, day: int, asked_by: str = "tonight", *active: str) -> OlderWindow | None:
    """Return what comes before the window that ends with a day."""
    request = Request(id=asked_by, end=BORN + (day + 1) * DAY)
    with connect(shop.journal) as journal:
        return find_older(journal, shop.pipeline, request, asked_by, lambda run: run in active)


def go_on(shop: ReconciledShop, night: OlderWindow, asked_by: str = "tonight") -> WindowContext:
    """Take a window up as the run does that was started for it."""
    bounds = night.window.bounds
    with connect(shop.journal) as journal:
        continuations.put(journal, night.window, night.run, asked_by)
    with connect(shop.journal) as journal:
        window = continue_window(journal, shop.pipeline, bounds.number, bounds.revision).window
    return window_context(window, shop.pipeline)


def state(shop: ReconciledShop, window: Window) -> WindowState:
    with connect(shop.journal) as journal:
        return windows.load(journal, window.pipeline, window.number, window.revision).state


def test_a_window_in_error_is_finished_from_its_last_committed_step_and_then_the_next_is_opened(
    shop: ReconciledShop,
) -> None:
    shop.trade(orders(range(50), 0))
    first = shop.open(0)
    shop.snapshot(first)
    closed = shop.certify(first)
    assert closed.state is WindowState.ERROR
    assert closed.reason == (
        "the comparison did not finish; see the failed task of this run. The next run goes on with this window before "
        "its own, and no later window is compared before it"
    )
    shop.trade(orders(range(100, 150), 1))
    with pytest.raises(RefusedError, match=r"window 1 .* was never compared"):
        shop.open(1)

    window = older(shop, 1)
    assert window is not None
    assert str(window) == (
        f"window 1 (the beginning to {(BORN + DAY).isoformat()}) of shop was left unfinished and is gone on with by "
        "run continue__shop__1.1__1; this run's own window comes after it"
    )
    again = go_on(shop, window)
    assert (again.window.number, again.window.revision, state(shop, again.window)) == (1, 1, WindowState.OPEN)
    waited_for = older(shop, 1, "tonight", window.run)
    assert waited_for is not None and waited_for.is_worked_on
    assert shop.snapshot(again) == []
    shop.reconcile(again)
    shop.validate(again)
    assert shop.certify(again).state is WindowState.CERTIFIED

    assert older(shop, 1) is None
    second, closed = shop.whole_way(1)
    assert (second.window.number, second.window.start, closed.state) == (2, BORN + DAY, WindowState.CERTIFIED)
    with connect(shop.journal) as journal:
        assert [
            (continuation.run, continuation.asked_by) for continuation in continuations.of(journal, again.window)
        ] == [(window.run, "tonight")]


def test_a_window_whose_run_ended_in_the_middle_is_gone_on_with(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10), 0))
    left = shop.open(0)
    assert state(shop, left.window) is WindowState.OPEN

    window = older(shop, 1)

    assert window is not None
    assert (window.window.bounds.number, window.is_worked_on) == (1, False)
    with connect(shop.journal) as journal:
        ((opened_by,),) = shop_rows(shop, "select request from makewhole.window")
        busy = find_older(
            journal, shop.pipeline, Request(id="x", end=BORN + 2 * DAY), "x", lambda run: run == opened_by
        )
    assert busy is not None and busy.is_worked_on


def shop_rows(shop: ReconciledShop, statement: str) -> list[tuple[str]]:
    with connect(shop.journal) as journal, journal.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def test_a_window_that_fails_again_is_tried_by_every_run_and_those_after_it_wait(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10), 0))
    shop.certify(shop.open(0))

    for night, run in enumerate(("continue__shop__1.1__1", "continue__shop__1.1__2"), start=1):
        window = older(shop, night, f"night {night}")
        assert window is not None and window.run == run
        shop.certify(go_on(shop, window, f"night {night}"))
        with pytest.raises(RefusedError, match=rf"was gone on with by run {run} and was left again .* No later window"):
            older(shop, night, f"night {night}")

    third = older(shop, 3, "night 3")
    assert third is not None
    context = go_on(shop, third, "night 3")
    shop.judge(context)
    shop.validate(context)
    assert shop.certify(context).state is WindowState.CERTIFIED
    assert older(shop, 3, "night 3") is None
    second = shop.open(3)
    assert (second.window.number, second.window.start, second.window.end) == (2, BORN + DAY, BORN + 4 * DAY)


def test_a_gate_that_could_not_answer_is_asked_again_and_holds_up_no_later_window(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10), 0))
    first = shop.open(0)
    shop.judge(first)
    assert shop.certify(first).state is WindowState.ERROR
    shop.trade(orders(range(100, 110), 1))

    window = older(shop, 1)
    assert window is not None and window.window.is_compared
    again = go_on(shop, window)
    shop.certify(again)
    assert older(shop, 1) is None, "it failed again, and the own window is opened all the same"
    second, closed = shop.whole_way(1)
    assert (second.window.number, closed.state) == (2, WindowState.CERTIFIED)

    next_night = older(shop, 2, "next night")
    assert next_night is not None and next_night.run == "continue__shop__1.1__2"
    context = go_on(shop, next_night, "next night")
    shop.validate(context)
    assert shop.certify(context).state is WindowState.CERTIFIED


def test_a_window_that_is_finished_cannot_be_gone_on_with(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10), 0))
    context, closed = shop.whole_way(0)
    assert closed.state is WindowState.CERTIFIED
    with (
        connect(shop.journal) as journal,
        pytest.raises(RefusedError, match="is certified, or was judged again since; there is nothing left to go on"),
    ):
        continue_window(journal, shop.pipeline, context.window.number, context.window.revision)
    assert state(shop, context.window) is WindowState.CERTIFIED


def test_what_consumers_have_yet_to_load_is_come_back_for_and_nothing_is_decided_meanwhile(
    shop: ReconciledShop,
) -> None:
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)

    with pytest.raises(NotYetError, match=r"2 keys may still arrive, for which consumers have 3600 s more"):
        verify_window(context, lambda *_: None, patience_seconds=3600.0, stays_seconds=0.0)
    with connect(shop.journal) as journal:
        assert set(gate_answers.gate_reports(journal, context.window)) == {hop_results.RECONCILED}

    shop.write("warehouse", made[4:6])
    verified = verify_window(context, lambda *_: None, patience_seconds=3600.0, stays_seconds=0.0)
    assert (verified.whole, verified.gaps) == (2, 2)
    assert shop.certify(context).state is WindowState.CERTIFIED
