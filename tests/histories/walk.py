"""Walk the windows of a history by the steps that Airflow runs, and keep what was true and what makewhole said of each.

A player of a family says what its events do, and what its places hold.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.gate import GateAnswer
from makewhole.model.plan import PlanState
from makewhole.window.context import WindowContext
from tests.histories.drawn import Drawn
from tests.histories.watched import Watch
from tests.world.windows import ReconciledShop

H = TypeVar("H")


class SeenWindow(Protocol[H]):
    """The rows held at the snapshot, at the end, and around the repair; and the answers of makewhole."""

    moments: list[H]
    before: H | None
    after: H | None
    found: Mapping[Any, Any]
    state: str | None
    reason: str | None


S = TypeVar("S", bound=SeenWindow[Any])


class Walk(ABC, Generic[S]):
    """A history being played. `seen`: its windows so far. `watch`: holds what makewhole writes against its plans."""

    history: Drawn
    shop: ReconciledShop
    seen: list[S]
    watch: Watch | None

    @abstractmethod
    def happen(self, event: Any) -> None:
        """Make an event happen. One that cannot happen now does nothing."""

    @abstractmethod
    def held(self) -> Any:
        """Return what each place holds now."""

    @abstractmethod
    def found(self, context: WindowContext) -> Mapping[Any, Any]:
        """Return what makewhole found in a window."""

    @abstractmethod
    def read_again(self, seen: S) -> None:
        """Take what makewhole wrote into what is known, and keep in `seen.after` what is held then."""

    def begin(self, seen: S, context: WindowContext) -> None:
        """Keep what is known of a window when it is opened."""

    def judged(self, seen: S) -> None:
        """Keep what follows from what was found."""

    def play(self, after: Callable[[S], None]) -> None:
        """Play all events; `after` is called when a window has come to its end."""
        for event in self.history.events:
            windows = len(self.seen)
            self.happen(event)
            if len(self.seen) > windows:
                after(self.seen[-1])

    def take_window(self, day: int, seen: S) -> None:
        """Take the window of a day all the way."""
        shop = self.shop
        if self.watch is not None:
            self.watch.begin()
        context = shop.open(day)
        self.begin(seen, context)
        self.seen.append(seen)
        shop.snapshot(context, 1)
        seen.moments.append(self.held())
        shop.reconcile(context)
        seen.found = self.found(context)
        self.judged(seen)
        if shop.validate(context).answer is GateAnswer.FAIL:
            self._repair(seen, context)
        closed = shop.certify(context)
        seen.state, seen.reason = closed.state.value, closed.reason
        seen.moments.append(self.held())
        if self.watch is not None:
            self.watch.expect_nothing()

    def _repair(self, seen: S, context: WindowContext) -> None:
        plan = plan_window(context).plan
        if plan is not None and plan.state in (PlanState.APPROVED, PlanState.FROZEN):
            seen.before = self.held()
            if self.watch is not None:
                self.watch.expect_nothing()
            compensate_window(context, lambda _: None)
            if self.watch is not None:
                self.watch.expect_what_is_named(context.window.number)
            self.read_again(seen)
        verify_window(context, lambda *_: None, patience_seconds=0.0)
