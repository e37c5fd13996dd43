"""Find every durable state that a crash can leave, and what a runner does from there, by walking.

A walk is a run that stands still after each step that may have changed the durable state, while that is read from
outside: what is there then is what a crash at that point would leave. Walks begin from every state that a walk has met,
until none meets a new one: then the states are closed under crashes, and a recovery that is killed, killed again and
killed once more is in one of them. `tests/crash/faults/killed_and_stopped.py` does the killing, and holds what is left
against what was walked.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.crash.plan.phase_start import case_at_phase_start
from tests.crash.runners.calls import may_last
from tests.crash.servers.world import Case, CrashWorld
from tests.crash.states import durable
from tests.crash.worker_pool import Job, WorkerPool

Kills = tuple[int, ...]
"""From the start of a case: kill a runner at this point, then the next one at that, and so on."""


@dataclass(frozen=True, kw_only=True)
class KnownState:
    """A durable state, the kills that lead to it, and an undisturbed run from it. `states[k]` is there after `k`
    steps."""

    kills: Kills
    summary: str
    steps: tuple[str, ...]
    states: tuple[str, ...]
    touched: frozenset[str]

    @property
    def fingerprint(self) -> str:
        return self.states[0]

    def points(self, steps: Iterable[int]) -> list[int]:
        """Return the points before and after each of these steps. After one and before the next is one point: a
        runner sends nothing in between, and what it does when it goes on is the same."""
        return sorted({point for step in steps for point in (2 * step, self.after(step))})

    def after(self, step: int) -> int:
        """Return the point after a step: the one before the next, if there is a next."""
        return min(2 * step + 2, 2 * len(self.steps) - 1)

    def name(self, point: int) -> str:
        """Return a point's name."""
        return f"{'after' if point % 2 else 'before'} {self.steps[point // 2]}"

    def state_at(self, point: int) -> str:
        """Return the fingerprint of the state that a point leaves."""
        return self.states[(point + 1) // 2]

    @property
    def lasting(self) -> list[int]:
        """The steps that may change the durable state, counted from 0: between them, all points leave the same one."""
        return [number for number, name in enumerate(self.steps) if may_last(name)]

    @property
    def changes(self) -> tuple[int, ...]:
        """The steps that change the durable state, counted from 0."""
        return tuple(number for number in range(len(self.steps)) if self.states[number] != self.states[number + 1])


class StateGraph:
    """The states of one phase, by fingerprint, the first one first."""

    def __init__(self, phase: str, start: KnownState) -> None:
        self.phase = phase
        self.start = start
        self.states = {start.fingerprint: start}
        self.end = start.states[-1]

    def __iter__(self) -> Iterator[KnownState]:
        return iter(self.states.values())

    def knows(self, fingerprint: str) -> bool:
        """Return whether a walk has met the state; when the states are closed, one began there, too."""
        return fingerprint in self.states or fingerprint in self.start.states

    def unknown(self) -> dict[str, Kills]:
        """Return the states that were met and not walked from yet, each with kills that lead to it."""
        reached: dict[str, Kills] = {}
        for known in self:
            for number, state in enumerate(known.states[1:]):
                if state not in self.states:
                    reached.setdefault(state, (*known.kills, 2 * number + 1))
        return reached

    def close(self, pool: WorkerPool, kills: int | None = None) -> None:
        """Walk from every state that is met, until no walk meets a new one; of `kills`, from those that so many leave
        at most."""
        while unknown := {state: by for state, by in self.unknown().items() if kills is None or len(by) <= kills}:
            jobs = [Job(name=f"walk {by}", work=_walking(self.phase, by)) for by in unknown.values()]
            done = pool.do(f"{self.phase}: states", jobs)
            assert not done.failures, done.failures[0]
            for known in sorted(done.results, key=lambda known: known.kills):
                assert known.fingerprint in unknown, f"the kills {known.kills} lead to another state each time"
                self.states[known.fingerprint] = known


def explore(pool: WorkerPool, phases: Sequence[str]) -> dict[str, StateGraph]:
    """Return a graph for each, with its first state alone."""
    jobs = [Job(name=phase, work=_exploring(phase)) for phase in phases]
    done = pool.do("first walks", jobs)
    assert not done.failures, done.failures[0]
    return {graph.phase: graph for graph in done.results}


def _exploring(phase: str) -> Callable[[CrashWorld], StateGraph]:
    walk = _walking(phase, ())
    return lambda world: StateGraph(phase, walk(world))


def _walking(phase: str, kills: Kills) -> Callable[[CrashWorld], KnownState]:
    def work(world: CrashWorld) -> KnownState:
        with case_at_phase_start(world, phase) as case:
            kill_in_turn(world, case, kills)
            return _walk(world, case, kills)

    return work


def kill_in_turn(world: CrashWorld, case: Case, kills: Kills) -> None:
    """Kill one runner after the other."""
    for point in kills:
        world.start(case, point=point, how="kill").wait("ended")
    durable.settle(world)


def _walk(world: CrashWorld, case: Case, kills: Kills) -> KnownState:
    first = durable.read(world, case)
    states = [first.fingerprint]
    run = world.start(case, how="walk")
    while run.wait("stopped", "ended") == "stopped":
        steps = len(run.report().steps)
        states += [states[-1]] * (steps - len(states))
        states.append(durable.read(world, case).fingerprint)
        run.resume()
    report = run.report()
    assert report.outcome == "done", f"{report.outcome}: {report.says}"
    states += [states[-1]] * (len(report.steps) + 1 - len(states))
    return KnownState(
        kills=kills,
        summary=first.summary,
        steps=tuple(report.steps),
        states=tuple(states),
        touched=frozenset(report.touched),
    )


def uncovered(graph: StateGraph, reads: Mapping[str, str]) -> set[str]:
    """Return what runs touched and no part of a fingerprint holds."""
    return {item for known in graph for item in known.touched} - set(reads)
