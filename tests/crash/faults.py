"""What happens to runners, and what must be true afterwards: one function a case, each in a fresh world."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from makewhole.compensation.execution.control import stop
from tests.crash import durable
from tests.crash.durable import Durable
from tests.crash.invariants import assert_told, assert_whole
from tests.crash.phase_start import NO_LEASE, fresh, revise
from tests.crash.retries import (
    IDLE_MS,
    PATIENT_IDLE_MS,
    REFUSED,
    assert_known,
    assert_over,
    ended,
    look,
    run_to_the_end,
    run_until_done,
)
from tests.crash.runners import Run
from tests.crash.scenario import FREEZING
from tests.crash.state_graph import Atlas, Known, follow
from tests.crash.world import Case, World

SHORT_LEASE = {"lease_seconds": 1.0}
ANOTHERS_TRIES = 60


def killed(world: World, atlas: Atlas, known: Known, point: int) -> None:
    """SIGKILL. What is left is what the walk saw there; the next run does what it does from such a state, and ends."""
    with fresh(world, atlas.phase) as case:
        follow(world, case, known.way)
        run = world.start(case, point=point, how="kill")
        run.wait("ended")
        assert run.report().at == known.name(point), f"killed {run.report().at}"
        left = look(world, case)
        assert left.fingerprint == known.state_at(point), f"a kill left another state than the walk: {left.summary}"
        report = run_to_the_end(world, case)
        if left.fingerprint in atlas.states:
            _assert_same_steps(report.steps, atlas.states[left.fingerprint].steps)
        assert_over(world, atlas, case)


def woken_afterwards(world: World, atlas: Atlas, point: int) -> None:
    """SIGSTOP; a second runner does all; then the zombie wakes, and adds nothing."""
    with fresh(world, atlas.phase) as case:
        zombie = _stopped(world, case, atlas.start, point)
        run_until_done(world, case)
        before = durable.read(world, case)
        assert_whole(atlas.phase, before)
        zombie.resume()
        ended(zombie)
        after = look(world, case)
        assert after.fingerprint == before.fingerprint, f"the zombie has changed something: {after.summary}"
        assert_over(world, atlas, case)


def woken_afterwards_by_another(world: World, atlas: Atlas, point: int) -> None:
    """The same, but the second one comes under another name and waits until the lease of the zombie has expired."""
    with fresh(world, atlas.phase) as case:
        zombie = _stopped(world, case, atlas.start, point, through=SHORT_LEASE)
        run_until_done(world, case, tries=ANOTHERS_TRIES, through={**SHORT_LEASE, "holder": "another"})
        before = durable.read(world, case)
        zombie.resume()
        ended(zombie)
        after = look(world, case)
        assert after.fingerprint == before.fingerprint, f"the zombie has changed something: {after.summary}"
        assert_whole(atlas.phase, after)


def woken_after_its_plan_ended(world: World, atlas: Atlas, point: int) -> None:
    """SIGSTOP; a later revision of the window ends the plan and makes its own; then the zombie wakes, and adds nothing
    that the new plan does not know of."""
    with fresh(world, atlas.phase) as case:
        zombie = _stopped(world, case, atlas.start, point, through=NO_LEASE)
        revise(world, case)
        case.phase = "supersede"
        run_until_done(world, case)
        before = durable.read(world, case)
        assert_told(before)
        _wake_in_vain(world, case, zombie, before)


def woken_after_its_plan_was_undone(world: World, atlas: Atlas, point: int) -> None:
    """SIGSTOP; a person stops the plan, and has it undone; then the zombie wakes, and does nothing that the undoing
    does not know of."""
    with fresh(world, atlas.phase) as case:
        zombie = _stopped(world, case, atlas.start, point, through=NO_LEASE)
        stop(case.place.journal, case.place.plan, by="oncall", reason="wrong day")
        case.phase = "undo"
        run_until_done(world, case, enough=("done", REFUSED))
        before = durable.read(world, case)
        assert_told(before)
        _wake_in_vain(world, case, zombie, before)


def _wake_in_vain(world: World, case: Case, zombie: Run, before: Durable) -> None:
    """It finds that its plan does not go on."""
    zombie.resume()
    ended(zombie, REFUSED)
    after = look(world, case)
    assert after.work == before.work, f"the zombie has changed something: {after.summary}"


def woken_meanwhile(world: World, atlas: Atlas, point: int, moment: int) -> None:
    """SIGSTOP; a second runner stands still at its point `moment`; the zombie wakes and goes as far as it can; then the
    second one goes on."""
    with fresh(world, atlas.phase) as case:
        zombie = _stopped(world, case, atlas.start, point)
        second = world.start(case, point=moment, how="stop", idle_ms=_idle_ms(case.phase))
        second.wait("stopped", "ended")
        zombie.resume()
        ended(zombie)
        if second.state == "stopped":
            second.resume()
        if ended(second).outcome != "done":
            run_until_done(world, case)
        assert_over(world, atlas, case)


def woken_between(world: World, atlas: Atlas, point: int, moment: int) -> None:
    """SIGSTOP; a second runner is killed at its point `moment`; the zombie wakes and goes as far as it can; then a
    third one comes."""
    with fresh(world, atlas.phase) as case:
        zombie = _stopped(world, case, atlas.start, point)
        second = world.start(case, point=moment, how="kill", idle_ms=_idle_ms(case.phase))
        second.wait("ended")
        zombie.resume()
        ended(zombie)
        assert_known(atlas, look(world, case))
        run_to_the_end(world, case)
        assert_over(world, atlas, case)


def _stopped(world: World, case: Case, known: Known, point: int, **order: Any) -> Run:
    run = world.start(case, point=point, how="stop", idle_ms=_idle_ms(case.phase), **order)
    run.wait("stopped")
    assert run.report().at == known.name(point), f"stopped {run.report().at}"
    return run


def _idle_ms(phase: str) -> int:
    return PATIENT_IDLE_MS if phase in FREEZING else IDLE_MS


def _assert_same_steps(taken: Sequence[str], walked: Sequence[str]) -> None:
    """A recovery is a function of the durable state: from the same one it takes the same steps."""
    for number, (one, other) in enumerate(zip_longest(taken, walked)):
        assert one == other, f"from the same state, step {number} of one recovery is {one} and of another {other}"
