"""What comes after a fault: the task's retries, and a look at what is there then."""

import time
from typing import Any

from tests.crash import durable
from tests.crash.durable import Durable
from tests.crash.invariants import assert_whole
from tests.crash.runner import Report
from tests.crash.runners import Run
from tests.crash.state_graph import Atlas
from tests.crash.world import Case, World

IDLE_MS = 1000
PATIENT_IDLE_MS = 6000
"""How long the servers wait for a runner that stands still in a transaction; the longer one for a runner that has a
transaction open while it works elsewhere, and must not be taken for one that stands still."""

TRY_AGAIN = ("TransientError", "LeaseLostError", "FencedError")
"""How a runner ends that has met a fault or another runner; a task is tried again then."""

REFUSED = "RefusedError"
"""How a runner ends whose plan does not go on, or was never begun."""

TRIES = 6
_PAUSE_SECONDS = 0.2


def ended(run: Run, *others: str) -> Report:
    """The report of a run that was left alone, or woken; `others` are further ways in which it may end."""
    run.wait("ended")
    report = run.report()
    assert report.outcome in ("done", *TRY_AGAIN, *others), f"ended with {report.outcome}: {report.says}"
    return report


def run_to_the_end(world: World, case: Case) -> Report:
    """The one retry that must be enough when nobody else is about."""
    report = ended(world.start(case))
    assert report.outcome == "done", f"{report.outcome}: {report.says}"
    return report


def run_until_done(
    world: World, case: Case, *, tries: int = TRIES, enough: tuple[str, ...] = ("done",), **order: Any
) -> None:
    """As many retries as a task is given, while a zombie holds locks or takes the transactional id."""
    for _ in range(tries):
        report = ended(world.start(case, **order), *enough)
        if report.outcome in enough:
            return
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError(f"not done after {tries} tries: {report.outcome}: {report.says}")


def look(world: World, case: Case) -> Durable:
    """The durable state when the sessions of the dead have ended."""
    durable.settle(world)
    return durable.read(world, case)


def assert_known(atlas: Atlas, state: Durable) -> None:
    """The state is one that a kill leaves too: whatever may happen from there on is enumerated there."""
    assert atlas.knows(state.fingerprint), f"a state that no kill leaves: {state.summary}"


def assert_over(world: World, atlas: Atlas, case: Case) -> None:
    """All is as an undisturbed run leaves it."""
    state = look(world, case)
    assert_whole(atlas.phase, state)
    assert state.fingerprint == atlas.end, f"over, but in another state than an undisturbed run: {state.summary}"
