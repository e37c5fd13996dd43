"""Enumerate the cases of one session: the state graph of each phase, the workers, and the table of what was done."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tests.crash import points as points_of_kinds
from tests.crash.plan import scenario
from tests.crash.servers.servers import Servers
from tests.crash.servers.world import CrashWorld
from tests.crash.states.state_graph import KnownState, StateGraph, explore
from tests.crash.windows import window_scenario
from tests.crash.worker_pool import Job, WorkerPool

PHASES = (*scenario.PHASES, *window_scenario.PHASES)
_LIKE = {"first": "compensate", "marker lost": "compensate"}
_LONG = frozenset(
    ("datasets freeze", "datasets undo", "datasets restore", "avro freeze", *({*window_scenario.PHASES} - {"certify"}))
)
_LONG_FORMATS = ("protobuf", "connect")
KILLS = {"merge": 1}
"""Phases of which each killed attempt leaves one thing more: their states are those of so many kills."""
_OF_DATASETS = ("files:", "catalog:")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table: `points` of `what`, in so many cases."""

    phase: str
    what: str
    points: int
    cases: int
    seconds: float = 0.0
    failed: int = 0

    @property
    def kind(self) -> str:
        return f"{self.phase}: {self.what}"


@dataclass(kw_only=True)
class Enumeration:
    """`is_short`: only the points after the steps that change the durable state, and not of all phases. `wanted`: the
    phases that are enumerated. `is_part`: a phase is explored when it is wanted, for not all will be. `is_recording`:
    how many points there are is written down, instead of held against what was."""

    servers: Servers
    pool: WorkerPool
    is_short: bool
    is_recording: bool
    wanted: Sequence[str] = PHASES
    is_part: bool
    rows: list[Row] = field(default_factory=list)
    _graphs: Mapping[str, StateGraph] = field(default_factory=dict)
    _closed: set[str] = field(default_factory=set)

    @property
    def section(self) -> str:
        """Section of what is recorded."""
        return "short" if self.is_short else "all"

    def graph(self, phase: str) -> StateGraph:
        """Return the graph of a phase. Its states are closed unless this is the short version. All phases are
        explored when the first is wanted, unless this is a part."""
        if phase not in self._graphs:
            self._graphs = {**self._graphs, **explore(self.pool, [phase] if self.is_part else self.phases)}
        graph = self._graphs[phase]
        if not self.is_short and phase not in self._closed:
            graph.close(self.pool, KILLS.get(phase))
            self._closed.add(phase)
        return graph

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases that are enumerated: in the short version of formats one, of datasets the repair, of windows the
        end."""
        return tuple(phase for phase in self.wanted if not self.is_short or not is_long(phase))

    def known_elsewhere(self, phase: str) -> set[str]:
        """Return the states that are recovered from in another phase: those where one begins, and those of the phases
        before this one. Of a part, the phase that this one is like is one of them."""
        if phase in _LIKE:
            self.graph(_LIKE[phase])
        begin = {graph.start.fingerprint for graph in self._graphs.values()}
        before = [self._graphs[earlier] for earlier in PHASES[: PHASES.index(phase)] if earlier in self._graphs]
        return begin.union(*(graph.states for graph in before))

    def is_explored(self, phase: str) -> bool:
        """Return whether all its states are known."""
        return phase in self._closed

    def steps(self, phase: str) -> list[int]:
        """Return the steps of an undisturbed run that are enumerated, counted from 0.

        From where a run has come to a state of a run of another phase, it is like that one, and enumerated there.
        """
        start = self.graph(phase).start
        known = set(self.graph(_LIKE[phase]).start.states if phase in _LIKE else ())
        wanted = self._changes(start) if self.is_short else range(len(start.steps))
        return [number for number in wanted if not known.issuperset(start.states[number : number + 2])]

    @staticmethod
    def _changes(start: KnownState) -> list[int]:
        """Return the steps that change the durable state; of a plan for datasets, those that do it there."""
        of_datasets = [step for step in start.changes if start.steps[step].startswith(_OF_DATASETS)]
        return of_datasets or list(start.changes)

    def points(self, phase: str) -> list[int]:
        """Return the points around each of these steps; in the short version after each, which is the one before the
        next."""
        start, steps = self.graph(phase).start, self.steps(phase)
        return sorted({start.after(step) for step in steps}) if self.is_short else start.points(steps)

    def do(self, phase: str, what: str, jobs: Sequence[Job[Any]], points: int | None = None) -> list[Any]:
        """Do all jobs, and return their results; a line in the table. `points`: as many of them are there in every
        run."""
        row = Row(phase=phase, what=what, points=len(jobs) if points is None else points, cases=len(jobs))
        if not self.is_recording:
            recorded = points_of_kinds.recorded(self.section).get(row.kind, 0)
            assert row.points >= recorded, f"{row.kind}: {row.points} points and {recorded} recorded"
        done = self.pool.do(row.kind, jobs)
        self.rows.append(replace(row, seconds=done.seconds, failed=len(done.failures)))
        assert not done.failures, "\n".join(f"{failure}" for failure in done.failures)
        return done.results

    @property
    def kinds(self) -> dict[str, int]:
        """How many points each kind of fault was tried at, in each phase."""
        return {row.kind: row.points for row in self.rows if row.points}


def is_long(phase: str) -> bool:
    """Return whether a phase is left to the whole enumeration."""
    return phase in _LONG or phase.startswith(_LONG_FORMATS)


def jobs(work: Callable[..., Any], cases: Iterable[tuple[str, tuple[Any, ...]]]) -> list[Job[Any]]:
    """Return a job for each (name, arguments); the world that it is done in comes first of the arguments."""

    def call(arguments: tuple[Any, ...], world: CrashWorld) -> Any:
        return work(world, *arguments)

    return [Job(name=name, work=partial(call, arguments)) for name, arguments in cases]


def table(rows: Sequence[Row]) -> str:
    """Return the table for people, at the end."""
    lines = [f"{'phase':<12}{'what happens':<48}{'points':>8}{'cases':>8}{'seconds':>9}  result"]
    for row in rows:
        result = f"{row.failed} failed" if row.failed else "all passed"
        lines.append(f"{row.phase:<12}{row.what:<48}{row.points:>8,}{row.cases:>8,}{row.seconds:>9,.0f}  {result}")
    points, cases = sum(row.points for row in rows), sum(row.cases for row in rows)
    seconds, failed = sum(row.seconds for row in rows), sum(row.failed for row in rows)
    result = f"{failed} failed" if failed else "all passed"
    lines.append(f"{'crash points':<60}{points:>8,}{cases:>8,}{seconds:>9,.0f}  {result}")
    return "\n".join(lines)
