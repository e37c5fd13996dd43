"""Between chunks: the rate is kept, a pause is waited out, progress is told with an estimate."""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from makewhole.journal.plans import Control, StoredPlan

_POLL_SECONDS = 1.0  # how long a word to a waiting runner may take to reach it
_SPEED_SECONDS = 10.0  # what "of late" is


@dataclass(frozen=True, kw_only=True)
class PlanProgress:
    """After each chunk: `chunks_done` of `chunks` at this target, `actions_done` of `actions` of the whole plan.

    `records_per_second` is of late; `seconds_left` an estimate from it. None: nothing to tell it from yet.
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
    """How fast it went of late. `planned` is all that there is to do, `done` what was found done at the start."""

    def __init__(self, planned: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.planned, self.done = planned, 0
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque([(clock(), 0)])

    def found(self, actions: int) -> None:
        """These were done before this attempt: no work of it."""
        self.done += actions
        self._seen = deque((when, done + actions) for when, done in self._seen)

    def add(self, actions: int) -> None:
        """These were done now."""
        self.done += actions
        now = self._clock()
        self._seen.append((now, self.done))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _SPEED_SECONDS:
            self._seen.popleft()

    @property
    def records_per_second(self) -> float | None:
        """None before the first chunk."""
        (began, before), (ended, after) = self._seen[0], self._seen[-1]
        return (after - before) / (ended - began) if after > before and ended > began else None

    @property
    def seconds_left(self) -> float | None:
        """At the speed of late."""
        rate = self.records_per_second
        return None if rate is None else (self.planned - self.done) / rate


class Pace:
    """Spreads chunks over time, outside any transaction, as the plan says now; waits as long as it is paused."""

    def __init__(
        self,
        records_per_second: int | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._default = records_per_second
        self._clock, self._sleep = clock, sleep
        self._began, self._records = clock(), 0  # of the chunk before

    def wait(self, plan: StoredPlan, look: Callable[[], StoredPlan]) -> None:
        """Until the next chunk may start.

        `look` says how the plan is steered now, keeps the lease, and raises when the plan was stopped.
        """
        while (left := self._left(plan)) > 0:
            self._sleep(min(left, _POLL_SECONDS))
            plan = look()

    def start(self, records: int) -> None:
        """A chunk of so many records starts now."""
        self._began, self._records = self._clock(), records

    def _left(self, plan: StoredPlan) -> float:
        if plan.control is Control.PAUSE:
            return math.inf
        rate = plan.records_per_second or self._default
        return self._began + self._records / rate - self._clock() if rate else 0.0
