"""Keep the rate and the pauses of a plan between chunks, and estimate the time left."""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from makewhole.journal.plans import Control, StoredPlan
from makewhole.model.errors import PlanPausedError

_POLL_SECONDS = 1.0  # how long a waiting runner takes to notice a change
_SPEED_SECONDS = 10.0  # the speed is measured over the last so many


@dataclass(frozen=True, kw_only=True)
class PlanProgress:
    """Progress after a chunk: `chunks_done` of `chunks` at this target, `actions_done` of `actions` of the whole plan.

    `records_per_second` is the recent speed, `seconds_left` an estimate from it. None: not measured yet.
    """

    plan: str
    target: str
    chunks_done: int
    chunks: int
    actions_done: int
    actions: int
    records_per_second: float | None = None
    seconds_left: float | None = None

    def __str__(self) -> str:
        text = f"{self.target}: chunk {self.chunks_done} of {self.chunks}; {self.actions_done:,} of {self.actions:,}"
        if self.records_per_second is None or self.seconds_left is None:
            return text
        return f"{text}, {self.records_per_second:,.0f} a second, {self.seconds_left:,.0f} s left"


class Speed:
    """The recent speed of a plan. `planned`: number of its actions; `done`: those done so far, in any attempt."""

    def __init__(self, planned: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.planned, self.done = planned, 0
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque([(clock(), 0)])

    def add_recovered(self, actions: int) -> None:
        """Count actions that were done before this attempt; they do not count for the speed."""
        self.done += actions
        self._samples = deque((when, done + actions) for when, done in self._samples)

    def add(self, actions: int) -> None:
        """Count actions that were done now."""
        self.done += actions
        now = self._clock()
        self._samples.append((now, self.done))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _SPEED_SECONDS:
            self._samples.popleft()

    @property
    def records_per_second(self) -> float | None:
        """Actions per second over the last seconds; None before the first chunk."""
        (began, before), (ended, after) = self._samples[0], self._samples[-1]
        return (after - before) / (ended - began) if after > before and ended > began else None

    @property
    def seconds_left(self) -> float | None:
        """Estimate at the recent speed; None before the first chunk."""
        rate = self.records_per_second
        return None if rate is None else (self.planned - self.done) / rate


class WatchedSpeed:
    """The recent speed of a plan that another process runs, by how many of its actions were done at each look. What was
    done before the first change is not measured: its chunk may have begun at any time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._done: int | None = None
        self._speed: Speed | None = None

    def look(self, done: int, planned: int) -> None:
        """Note that so many of the planned actions are done by now."""
        before, self._done = self._done, done
        if before is None or done <= before:
            return
        if self._speed is None:
            self._speed = Speed(planned, self._clock)
            self._speed.add_recovered(done)
        else:
            self._speed.add(done - before)

    def forget(self) -> None:
        """Begin to measure again: the plan waited."""
        self._speed = None

    @property
    def records_per_second(self) -> float | None:
        """Actions per second over the last seconds; None before two changes."""
        return None if self._speed is None else self._speed.records_per_second

    @property
    def seconds_left(self) -> float | None:
        """Estimate at the recent speed; None before two changes."""
        return None if self._speed is None else self._speed.seconds_left


def paused(plan: StoredPlan) -> PlanPausedError:
    """Return what a runner raises that leaves a paused plan."""
    name, why = plan.plan.id, plan.plan.reason or "paused"
    return PlanPausedError(f"plan {name} waits ({why}); `makewhole plan resume {name}` lets it go on")


class Pace:
    """The waits between chunks, outside any transaction: for the plan's current rate, and as long as it is paused.

    With `leaves_when_paused` a pause is not waited for: whoever runs the plan comes back later.
    """

    def __init__(
        self,
        records_per_second: int | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        *,
        leaves_when_paused: bool = False,
    ) -> None:
        self._default = records_per_second
        self._leaves_when_paused = leaves_when_paused
        self._clock, self._sleep = clock, sleep
        self._began, self._records = clock(), 0  # of the chunk before

    def wait(self, plan: StoredPlan, read_plan: Callable[[], StoredPlan]) -> None:
        """Wait until the next chunk may start.

        `read_plan` returns the plan with its current controls, renews the lease, and raises when the plan was stopped.

        Raises:
            PlanPausedError: it is paused, and a pause is not waited for.
        """
        while (left := self._left(plan)) > 0:
            if math.isinf(left) and self._leaves_when_paused:
                raise paused(plan)
            self._sleep(min(left, _POLL_SECONDS))
            plan = read_plan()

    def start(self, records: int) -> None:
        """Note that a chunk of so many records starts now."""
        self._began, self._records = self._clock(), records

    def _left(self, plan: StoredPlan) -> float:
        if plan.control is Control.PAUSE:
            return math.inf
        rate = plan.records_per_second or self._default
        return self._began + self._records / rate - self._clock() if rate else 0.0
