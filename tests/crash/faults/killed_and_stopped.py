"""Kill runners, or stop and wake them, and check what must be true afterwards: one function for each kind of case."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from makewhole.compensation.execution.control import stop
from tests.crash.faults.retries import (
    IDLE_MS,
    PATIENT_IDLE_MS,
    REFUSED,
    assert_finished,
    assert_state_known,
    report_of_end,
    run_to_the_end,
    run_until_done,
    settled_state,
)
from tests.crash.plan.invariants import assert_invariants, assert_journal_knows_chunks
from tests.crash.plan.phase_start import NO_LEASE, case_at_phase_start, open_revision
from tests.crash.plan.scenario import FREEZING
from tests.crash.runners.processes import Run
from tests.crash.servers.world import Case, CrashWorld
from tests.crash.states import durable
from tests.crash.states.durable_state import Durable
from tests.crash.states.state_graph import KnownState, StateGraph, kill_in_turn
from tests.crash.windows import window_scenario

SHORT_LEASE = {"lease_seconds": 1.0}
ANOTHERS_TRIES = 60


def killed(world: CrashWorld, graph: StateGraph, known: KnownState, point: int) -> None:
    """SIGKILL. What is left is what the walk saw there; the next run does what it does from such a state, and ends."""
    with case_at_phase_start(world, graph.phase) as case:
        kill_in_turn(world, case, known.kills)
        run = world.start(case, point=point, how="kill")
        run.wait("ended")
        assert run.report().at == known.name(point), f"killed {run.report().at}"
        left = settled_state(world, case)
        assert left.fingerprint == known.state_at(point), f"a kill left another state than the walk: {left.summary}"
        report = run_to_the_end(world, case)
        if left.fingerprint in graph.states:
            _assert_same_steps(report.steps, graph.states[left.fingerprint].steps)
        assert_finished(world, graph, case)


def woken_afterwards(world: CrashWorld, graph: StateGraph, point: int) -> None:
    """SIGSTOP; a second runner does all; then the zombie wakes, and adds nothing."""
    with case_at_phase_start(world, graph.phase) as case:
        zombie = _stopped(world, case, graph.start, point)
        run_until_done(world, case)
        before = durable.read(world, case)
        assert_invariants(graph.phase, before)
        zombie.resume()
        report_of_end(zombie)
        after = settled_state(world, case)
        assert after.fingerprint == before.fingerprint, f"the zombie has changed something: {after.summary}"
        assert_finished(world, graph, case)


def woken_afterwards_by_another(world: CrashWorld, graph: StateGraph, point: int) -> None:
    """The same, but the second one comes under another name and waits until the lease of the zombie has expired."""
    with case_at_phase_start(world, graph.phase) as case:
        zombie = _stopped(world, case, graph.start, point, through=SHORT_LEASE)
        run_until_done(world, case, tries=ANOTHERS_TRIES, through={**SHORT_LEASE, "holder": "another"})
        before = durable.read(world, case)
        zombie.resume()
        report_of_end(zombie)
        after = settled_state(world, case)
        assert after.fingerprint == before.fingerprint, f"the zombie has changed something: {after.summary}"
        assert_invariants(graph.phase, after)


def woken_after_its_plan_ended(world: CrashWorld, graph: StateGraph, point: int) -> None:
    """SIGSTOP; a later revision of the window ends the plan and makes its own; then the zombie wakes, and adds nothing
    that the new plan does not know of."""
    with case_at_phase_start(world, graph.phase) as case:
        zombie = _stopped(world, case, graph.start, point, through=NO_LEASE)
        open_revision(world, case)
        case.phase = "supersede"
        run_until_done(world, case)
        before = durable.read(world, case)
        assert_journal_knows_chunks(before)
        _wake_in_vain(world, case, zombie, before)


def woken_after_its_plan_was_undone(world: CrashWorld, graph: StateGraph, point: int) -> None:
    """SIGSTOP; a person stops the plan, and has it undone; then the zombie wakes, and does nothing that the undoing
    does not know of."""
    with case_at_phase_start(world, graph.phase) as case:
        zombie = _stopped(world, case, graph.start, point, through=NO_LEASE)
        stop(case.settings.journal, case.settings.plan, by="oncall", reason="wrong day")
        case.phase = "datasets undo" if graph.phase == "datasets" else "undo"
        run_until_done(world, case, enough=("done", REFUSED))
        before = durable.read(world, case)
        assert_journal_knows_chunks(before)
        _wake_in_vain(world, case, zombie, before)


def _wake_in_vain(world: CrashWorld, case: Case, zombie: Run, before: Durable) -> None:
    """It finds that its plan does not go on."""
    zombie.resume()
    report_of_end(zombie, REFUSED)
    after = settled_state(world, case)
    assert after.work == before.work, f"the zombie has changed something: {after.summary}"


def woken_meanwhile(world: CrashWorld, graph: StateGraph, point: int, moment: int) -> None:
    """SIGSTOP; a second runner stands still at its point `moment`; the zombie wakes and goes as far as it can; then the
    second one goes on."""
    with case_at_phase_start(world, graph.phase) as case:
        zombie = _stopped(world, case, graph.start, point)
        second = world.start(case, point=moment, how="stop", idle_ms=_idle_ms(case.phase))
        second.wait("stopped", "ended")
        zombie.resume()
        report_of_end(zombie)
        if second.state == "stopped":
            second.resume()
        if report_of_end(second).outcome != "done":
            run_until_done(world, case)
        assert_finished(world, graph, case)


def woken_between(world: CrashWorld, graph: StateGraph, point: int, moment: int) -> None:
    """SIGSTOP; a second runner is killed at its point `moment`; the zombie wakes and goes as far as it can; then a
    third one comes."""
    with case_at_phase_start(world, graph.phase) as case:
        zombie = _stopped(world, case, graph.start, point)
        second = world.start(case, point=moment, how="kill", idle_ms=_idle_ms(case.phase))
        second.wait("ended")
        zombie.resume()
        report_of_end(zombie)
        assert_state_known(graph, settled_state(world, case))
        run_to_the_end(world, case)
        assert_finished(world, graph, case)


def _stopped(world: CrashWorld, case: Case, known: KnownState, point: int, **order: Any) -> Run:
    run = world.start(case, point=point, how="stop", idle_ms=_idle_ms(case.phase), **order)
    run.wait("stopped")
    assert run.report().at == known.name(point), f"stopped {run.report().at}"
    return run


def _idle_ms(phase: str) -> int:
    return PATIENT_IDLE_MS if phase in (*FREEZING, *window_scenario.PHASES) else IDLE_MS


def _assert_same_steps(taken: Sequence[str], walked: Sequence[str]) -> None:
    """A recovery is a function of the durable state: from the same one it takes the same steps."""
    for number, (step, other) in enumerate(zip_longest(taken, walked)):
        assert step == other, f"from the same state, step {number} of one recovery is {step} and of another {other}"
