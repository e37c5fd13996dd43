"""One session of cases: the atlas of each phase, who works, and the table of what was done."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.crash import scenario
from tests.crash.atlas import Atlas, explore
from tests.crash.crew import Crew, Job
from tests.crash.servers import Servers
from tests.crash.world import World

PHASES = tuple(scenario.PHASES)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table: `points` of `what`, in so many cases."""

    phase: str
    what: str
    points: int
    cases: int
    seconds: float
    failed: int


@dataclass(kw_only=True)
class Enumeration:
    """`is_short`: only the points around the steps that change the durable state."""

    servers: Servers
    crew: Crew
    is_short: bool
    rows: list[Row] = field(default_factory=list)
    _atlases: dict[str, Atlas] = field(default_factory=dict)

    def atlas(self, phase: str) -> Atlas:
        """Explored when first asked for; its states are closed unless this is the short version."""
        if phase not in self._atlases:
            atlas = explore(self.crew, phase)
            if not self.is_short:
                atlas.close(self.crew)
            self._atlases[phase] = atlas
        return self._atlases[phase]

    def steps(self, phase: str) -> list[int]:
        """The steps of an undisturbed run that are enumerated, counted from 0."""
        start = self.atlas(phase).start
        return list(start.changes) if self.is_short else list(range(len(start.steps)))

    def points(self, phase: str) -> list[int]:
        """Before and after each of these."""
        return [point for step in self.steps(phase) for point in (2 * step, 2 * step + 1)]

    def do(self, phase: str, what: str, jobs: Sequence[Job[Any]], points: int | None = None) -> list[Any]:
        """All of them; a line in the table, and what they gave."""
        done = self.crew.do(f"{phase}: {what}", jobs)
        self.rows.append(
            Row(
                phase=phase,
                what=what,
                points=len(jobs) if points is None else points,
                cases=len(jobs),
                seconds=done.seconds,
                failed=len(done.failures),
            )
        )
        assert not done.failures, "\n".join(f"{failure}" for failure in done.failures)
        return done.results


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
    cases, seconds = sum(row.cases for row in rows), sum(row.seconds for row in rows)
    failed = sum(row.failed for row in rows)
    lines.append(f"{'':<60}{'':>8}{cases:>8,}{seconds:>9,.0f}  {f'{failed} failed' if failed else 'all passed'}")
    return "\n".join(lines)
