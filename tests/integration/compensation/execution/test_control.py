"""Test that a running plan does what it is asked to between chunks: wait, go on, go slower, stop."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from makewhole.compensation.execution.control import pause, resume, set_rate, stop
from makewhole.compensation.execution.pace import PlanProgress
from makewhole.compensation.execution.run_plan import RunOptions, run_plan
from makewhole.model.errors import PlanPausedError, RefusedError, TransientError
from makewhole.model.verdict import Verdict
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

RECORDS = 20
CHUNK = 5


class Running:
    """A plan that runs in a thread of its own."""

    def __init__(
        self, world: PlanWorld, plan: str, on_progress: Callable[[PlanProgress], None], options: RunOptions
    ) -> None:
        self.reports: list[PlanProgress] = []
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(world, plan, on_progress, options), daemon=True)
        self._thread.start()

    def _run(
        self, world: PlanWorld, plan: str, on_progress: Callable[[PlanProgress], None], options: RunOptions
    ) -> None:
        def progress(report: PlanProgress) -> None:
            self.reports.append(report)
            on_progress(report)

        try:
            run_plan(world.journal, plan, world.targets, progress, options)
        except Exception as error:
            self.error = error

    def end(self) -> "Running":
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self


@pytest.fixture
def start(world: PlanWorld) -> Iterator[Callable[..., Running]]:
    def run(plan: str, on_progress: Callable[[PlanProgress], None] = lambda _: None, **options: Any) -> Running:
        return Running(world, plan, on_progress, RunOptions(**options))

    yield run


def test_a_paused_plan_waits_with_its_lease_and_goes_on_when_resumed(
    world: PlanWorld, start: Callable[..., Running]
) -> None:
    plan = _plan(world)

    def pause_after_the_first(report: PlanProgress) -> None:
        if report.chunks_done == 1:
            assert pause(world.journal, plan, by="ann", reason="lunch").reason == "paused by ann: lunch"

    running = start(plan, pause_after_the_first, lease_seconds=2.0)
    _wait_until(lambda: len(running.reports) == 1)
    time.sleep(4)
    assert len(running.reports) == 1
    with pytest.raises(TransientError, match=f"plan {plan} is being worked on by"):
        world.run(plan)
    assert resume(world.journal, plan, by="bob").reason == "resumed by bob"
    assert running.end().error is None
    assert len(world.replayed()) == RECORDS
    assert [report.actions_done for report in running.reports] == [5, 10, 15, 20]
    assert {(report.actions, report.chunks) for report in running.reports} == {(20, 4)}
    assert running.reports[-1].seconds_left == 0.0


def test_a_runner_that_leaves_a_paused_plan_keeps_no_lease_and_the_next_one_goes_on(
    world: PlanWorld, start: Callable[..., Running]
) -> None:
    plan = _plan(world)

    def pause_after_the_first(report: PlanProgress) -> None:
        if report.chunks_done == 1:
            pause(world.journal, plan, by="ann", reason="lunch")

    left = start(plan, pause_after_the_first, leaves_when_paused=True).end()
    assert isinstance(left.error, PlanPausedError)
    assert str(left.error) == (
        f"plan {plan} waits (paused by ann: lunch); `makewhole plan resume {plan}` lets it go on"
    )
    assert world.journal_sql("select count(*) from makewhole.lease where expires_at > clock_timestamp()") == [(0,)]
    assert len(world.replayed()) == CHUNK

    again = start(plan, leaves_when_paused=True).end()
    assert (type(again.error), again.reports) == (PlanPausedError, [])
    resume(world.journal, plan, by="bob")
    last = start(plan, leaves_when_paused=True).end()
    assert last.error is None
    assert [report.actions_done for report in last.reports] == [10, 15, 20]
    assert len(world.replayed()) == RECORDS


def test_a_plan_that_is_paused_before_it_begins_writes_nothing_until_it_is_resumed(
    world: PlanWorld, start: Callable[..., Running]
) -> None:
    plan = _plan(world)
    pause(world.journal, plan, by="ann")
    running = start(plan)
    _wait_until(lambda: world.journal_sql("select state from makewhole.plan") == [("running",)])
    time.sleep(1)
    assert world.replayed() == []
    resume(world.journal, plan, by="ann")
    running.end()
    assert len(world.replayed()) == RECORDS


def test_a_plan_that_is_stopped_while_it_is_paused_ends(world: PlanWorld, start: Callable[..., Running]) -> None:
    plan = _plan(world)
    pause(world.journal, plan, by="ann")
    running = start(plan)
    _wait_until(lambda: world.journal_sql("select state from makewhole.plan") == [("running",)])
    stop(world.journal, plan, by="bob", reason="wrong day")
    assert isinstance(running.end().error, RefusedError)
    assert str(running.error) == (
        f"plan {plan} was stopped (stopped by bob: wrong day); what was written has its receipts"
    )
    assert world.replayed() == []
    nothing_left = f"plan {plan} is rejected; there is nothing left of it to steer"
    with pytest.raises(RefusedError, match=nothing_left):
        pause(world.journal, plan, by="x")
    with pytest.raises(RefusedError, match=nothing_left):
        set_rate(world.journal, plan, 1, by="x")


def test_the_rate_can_be_changed_while_the_plan_runs(world: PlanWorld, start: Callable[..., Running]) -> None:
    plan = _plan(world)
    assert set_rate(world.journal, plan, 5, by="ann").reason == "set to 5 records a second by ann"
    moments: list[float] = []

    def faster_after_the_third(report: PlanProgress) -> None:
        moments.append(time.monotonic())
        if report.chunks_done == 3:
            set_rate(world.journal, plan, 1_000, by="ann")

    began = time.monotonic()
    assert start(plan, faster_after_the_third).end().error is None
    assert moments[2] - began > 1.9, "a chunk of five is a second's worth"
    assert len(moments) == RECORDS // CHUNK
    assert world.journal_sql("select records_per_second, reason from makewhole.plan") == [
        (1_000, "set to 1000 records a second by ann")
    ]


def test_no_rate_means_that_of_the_pipeline_and_none_is_not_zero(world: PlanWorld) -> None:
    plan = _plan(world)
    set_rate(world.journal, plan, 7, by="ann")
    assert set_rate(world.journal, plan, None, by="ann").reason == "set to the pipeline's rate by ann"
    with pytest.raises(RefusedError, match="0 records a second is no rate; pause the plan, or name 1 or more"):
        set_rate(world.journal, plan, 0, by="ann")


def _plan(world: PlanWorld) -> str:
    world.send(range(RECORDS))
    return str(world.plan([world.finding(number, Verdict.MISSING) for number in range(RECORDS)]).id)


def _wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)
