"""One session of cases: the atlas of each phase, who works, and the table of what was done."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tests.crash import points as points_of_kinds
from tests.crash import scenario
from tests.crash.servers import Servers
from tests.crash.state_graph import Atlas, explore
from tests.crash.worker_pool import Crew, Job
from tests.crash.world import World

PHASES = tuple(scenario.PHASES)
_LIKE = {"first": "compensate", "marker lost": "compensate"}


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
    """`is_short`: only the points after the steps that change the durable state. `is_recording`: how many points there
    are is written down, instead of held against what was."""

    servers: Servers
    crew: Crew
    is_short: bool
    is_recording: bool
    rows: list[Row] = field(default_factory=list)
    _atlases: Mapping[str, Atlas] = field(default_factory=dict)
    _closed: set[str] = field(default_factory=set)

    @property
    def section(self) -> str:
        """Of what is recorded."""
        return "short" if self.is_short else "all"

    def atlas(self, phase: str) -> Atlas:
        """Its states are closed unless this is the short version. All phases are explored when the first is wanted."""
        if not self._atlases:
            self._atlases = explore(self.crew, PHASES)
        atlas = self._atlases[phase]
        if not self.is_short and phase not in self._closed:
            atlas.close(self.crew)
            self._closed.add(phase)
        return atlas

    def is_explored(self, phase: str) -> bool:
        """Whether its states are known, all of them."""
        return phase in self._closed

    def steps(self, phase: str) -> list[int]:
        """The steps of an undisturbed run that are enumerated, counted from 0.

        From where a run has come to a state of a run of another phase, it is like that one, and enumerated there.
        """
        start = self.atlas(phase).start
        known = set(self.atlas(_LIKE[phase]).start.states if phase in _LIKE else ())
        wanted = start.changes if self.is_short else range(len(start.steps))
        return [number for number in wanted if not known.issuperset(start.states[number : number + 2])]

    def points(self, phase: str) -> list[int]:
        """Around each of these; in the short version after each, which leaves what there is before the next."""
        start, steps = self.atlas(phase).start, self.steps(phase)
        return sorted({start.after(step) for step in steps}) if self.is_short else start.points(steps)

    def do(self, phase: str, what: str, jobs: Sequence[Job[Any]], points: int | None = None) -> list[Any]:
        """All of them; a line in the table, and what they gave. `points`: as many of them are there in every run."""
        row = Row(phase=phase, what=what, points=len(jobs) if points is None else points, cases=len(jobs))
        if not self.is_recording:
            recorded = points_of_kinds.recorded(self.section).get(row.kind, 0)
            assert row.points >= recorded, f"{row.kind}: {row.points} points and {recorded} recorded"
        done = self.crew.do(row.kind, jobs)
        self.rows.append(replace(row, seconds=done.seconds, failed=len(done.failures)))
        assert not done.failures, "\n".join(f"{failure}" for failure in done.failures)
        return done.results

    @property
    def kinds(self) -> dict[str, int]:
        """How many points each kind of fault was tried at, in each phase."""
        return {row.kind: row.points for row in self.rows if row.points}


def jobs(work: Callable[..., Any], cases: Iterable[tuple[str, tuple[Any, ...]]]) -> list[Job[Any]]:
    """A job for each (name, arguments); the world that it is done in comes first of the arguments."""

    def call(arguments: tuple[Any, ...], world: World) -> Any:
        return work(world, *arguments)

    return [Job(name=name, work=partial(call, arguments)) for name, arguments in cases]


def table(rows: Sequence[Row]) -> str:
    """For people, at the end."""
    lines = [f"{'phase':<12}{'what happens':<48}{'points':>8}{'cases':>8}{'seconds':>9}  result"]
    for row in rows:
        result = f"{row.failed} failed" if row.failed else "all passed"
        lines.append(f"{row.phase:<12}{row.what:<48}{row.points:>8,}{row.cases:>8,}{row.seconds:>9,.0f}  {result}")
    points, cases = sum(row.points for row in rows), sum(row.cases for row in rows)
    seconds, failed = sum(row.seconds for row in rows), sum(row.failed for row in rows)
    result = f"{failed} failed" if failed else "all passed"
    lines.append(f"{'crash points':<60}{points:>8,}{cases:>8,}{seconds:>9,.0f}  {result}")
    return "\n".join(lines)
