"""A runner keeps rate and pauses between chunks, and estimates the time left."""

from dataclasses import replace
from typing import Any

import pytest

from makewhole.compensation.execution.pace import Pace, PlanProgress, Speed, WatchedSpeed
from makewhole.journal.plans import Control, StoredPlan
from makewhole.model.errors import PlanPausedError, RefusedError
from makewhole.model.plan import Plan, PlanState

pytestmark = pytest.mark.unit


class Clock:
    """Time that passes only when a caller sleeps."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, list[float]()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_chunks_are_spread_to_keep_the_rate_and_the_first_one_waits_for_nothing() -> None:
    clock, starts = Clock(), []
    pace = Pace(100, clock, clock.sleep)
    for work in (0.1, 0.1, 2.0, 0.1):
        pace.wait(_plan(), _plan)
        starts.append(round(clock.now - 100, 3))
        pace.start(50)
        clock.now += work
    assert starts == [0, 0.5, 1.0, 3.0], "a chunk that took longer than its share is not made good by a burst"


def test_without_a_rate_nothing_is_waited_for() -> None:
    clock = Clock()
    pace = Pace(None, clock, clock.sleep)
    pace.start(1_000_000)
    pace.wait(_plan(), _plan)
    assert clock.slept == []


def test_the_rate_of_the_plan_comes_before_that_of_the_pipeline_and_is_obeyed_at_once() -> None:
    clock = Clock()
    pace = Pace(10, clock, clock.sleep)
    pace.start(100)
    reads = iter([_plan(), _plan(rate=1), _plan(rate=1), _plan(rate=25)])
    pace.wait(_plan(), lambda: next(reads))
    assert clock.now == 104.0, "100 records at 25 a second, as soon as that is set"


def test_a_pause_is_waited_out_however_long_it_is_and_whatever_the_rate() -> None:
    clock, reads = Clock(), []

    def read_plan() -> StoredPlan:
        reads.append(clock.now)
        return _plan(control=Control.RUN if len(reads) == 500 else Control.PAUSE)

    Pace(None, clock, clock.sleep).wait(_plan(control=Control.PAUSE), read_plan)
    assert clock.now == 600.0
    assert len(reads) == 500, "the lease is kept: it is renewed with every read"


def test_a_runner_that_leaves_when_paused_waits_for_the_rate_and_for_no_person() -> None:
    clock = Clock()
    began = clock()
    pace = Pace(100, clock, clock.sleep, leaves_when_paused=True)
    pace.start(200)
    pace.wait(_plan(), _plan)
    assert clock() - began == pytest.approx(2.0)

    with pytest.raises(PlanPausedError, match=r"waits .*; `makewhole plan resume .*` lets it go on"):
        pace.wait(_plan(control=Control.PAUSE), _plan)
    assert clock() - began == pytest.approx(2.0)


def test_a_plan_that_is_stopped_while_it_waits_ends_the_wait() -> None:
    def read_plan() -> StoredPlan:
        raise RefusedError("stopped")

    with pytest.raises(RefusedError, match="stopped"):
        Pace(None, Clock(), lambda _: None).wait(_plan(control=Control.PAUSE), read_plan)


def test_the_speed_is_measured_over_the_last_seconds_and_gives_the_time_left() -> None:
    clock = Clock()
    speed = Speed(10_000, clock)
    assert (speed.records_per_second, speed.seconds_left) == (None, None)
    speed.add_recovered(1_000)
    assert (speed.done, speed.records_per_second) == (1_000, None), "what was done before does not count for the speed"
    for _ in range(20):
        clock.now += 1.0
        speed.add(100)
    assert (speed.done, speed.records_per_second, speed.seconds_left) == (3_000, 100.0, 70.0)
    for _ in range(20):
        clock.now += 1.0
        speed.add(200)
    assert (speed.done, speed.records_per_second, speed.seconds_left) == (7_000, 200.0, 15.0)


def test_a_chunk_that_takes_longer_than_the_measured_seconds_still_gives_a_speed() -> None:
    clock = Clock()
    speed = Speed(400, clock)
    for _ in range(3):
        clock.now += 60.0
        speed.add(100)
    assert speed.seconds_left == 60.0


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        ({}, "flights: chunk 3 of 100; 30,000 of 1,000,000"),
        (
            {"records_per_second": 123_456.7, "seconds_left": 7.86},
            "flights: chunk 3 of 100; 30,000 of 1,000,000, 123,457 a second, 8 s left",
        ),
    ],
)
def test_progress_is_one_line(estimate: dict[str, Any], text: str) -> None:
    progress = PlanProgress(
        plan="p", target="flights", chunks_done=3, chunks=100, actions_done=30_000, actions=1_000_000, **estimate
    )
    assert str(progress) == text


def _plan(rate: int | None = None, control: Control = Control.RUN) -> StoredPlan:
    plan = Plan(
        id="p-1-f",
        pipeline="p",
        window=1,
        revision=1,
        sha256="f",
        payload_uri=None,
        counts={},
        state=PlanState.RUNNING,
    )
    return replace(StoredPlan(plan=plan, payload_sha256=None), records_per_second=rate, control=control)


def test_speed_of_a_plan_that_another_process_runs_is_of_chunks_that_were_seen_whole() -> None:
    clock = Clock()
    speed = WatchedSpeed(clock)
    for seconds, done in ((0, 400), (1, 400), (1, 500)):  # the chunk of the first hundred began before the first look
        clock.now += seconds
        speed.look(done, 1_000)
        assert (speed.records_per_second, speed.seconds_left) == (None, None)
    clock.now += 2
    speed.look(600, 1_000)
    assert (speed.records_per_second, speed.seconds_left) == (50, 8)
    clock.now += 3
    speed.look(600, 1_000)
    assert (speed.records_per_second, speed.seconds_left) == (50, 8)
    speed.forget()
    speed.look(600, 1_000)
    assert speed.records_per_second is None
