"""Retry after a fault as the task does, and check the state that is there then."""

import time
from typing import Any

from tests.crash.plan.invariants import assert_invariants
from tests.crash.runners.processes import Run
from tests.crash.runners.runner import Report
from tests.crash.servers.world import Case, CrashWorld
from tests.crash.states import durable
from tests.crash.states.durable_state import Durable
from tests.crash.states.state_graph import StateGraph

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


def report_of_end(run: Run, *others: str) -> Report:
    """Wait for the end of a run that was left alone, or woken; return its report. `others`: further outcomes it may
    have."""
    run.wait("ended")
    report = run.report()
    assert report.outcome in ("done", *TRY_AGAIN, *others), f"ended with {report.outcome}: {report.says}"
    return report


def run_to_the_end(world: CrashWorld, case: Case) -> Report:
    """Make the one retry that must be enough when no other runner is about."""
    report = report_of_end(world.start(case))
    assert report.outcome == "done", f"{report.outcome}: {report.says}"
    return report


def run_until_done(
    world: CrashWorld, case: Case, *, tries: int = TRIES, enough: tuple[str, ...] = ("done",), **order: Any
) -> None:
    """Make as many retries as a task is given, while a zombie holds locks or takes the transactional id."""
    for _ in range(tries):
        report = report_of_end(world.start(case, **order), *enough)
        if report.outcome in enough:
            return
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError(f"not done after {tries} tries: {report.outcome}: {report.says}")


def settled_state(world: CrashWorld, case: Case) -> Durable:
    """Read the durable state when the sessions of the dead have ended."""
    durable.settle(world)
    return durable.read(world, case)


def assert_state_known(graph: StateGraph, state: Durable) -> None:
    """Check that the state is one that a kill leaves too: whatever may happen from there on is enumerated there."""
    assert graph.knows(state.fingerprint), f"a state that no kill leaves: {state.summary}"


def assert_finished(world: CrashWorld, graph: StateGraph, case: Case) -> None:
    """Check that all is as an undisturbed run leaves it."""
    state = settled_state(world, case)
    assert_invariants(graph.phase, state)
    assert state.fingerprint == graph.end, f"over, but in another state than an undisturbed run: {state.summary}"
