"""Kill a step of a window, and check that no file of it is left for ever."""

from pathlib import Path

from tests.crash.faults.retries import report_of_end, settled_state
from tests.crash.plan.phase_start import case_at_phase_start
from tests.crash.servers.world import Case, CrashWorld
from tests.crash.states import durable
from tests.crash.states.window_state import WindowDurable
from tests.crash.windows.stages import age

_MARK = ".removed"
"""Ends the name of a file that says that an archive is gone: it is kept on purpose."""


def swept(world: CrashWorld, phase: str, point: int) -> None:
    """SIGKILL. The next run goes on to the end, and a night comes when all is old: what is left is named."""
    with case_at_phase_start(world, phase) as case:
        world.start(case, point=point, how="kill").wait("ended")
        durable.settle(world)
        _done(world, case, "rest")
        age(world, Path(case.settings.storage))
        _done(world, case, "night")
        state = settled_state(world, case)
    assert isinstance(state, WindowDurable)
    left = {path for path in state.found - state.named if not path.endswith(_MARK)}
    of_newest = f"window={max(row['number'] for row in state.journal['window'])}/"
    assert {path for path in left if of_newest not in path} == set()


def _done(world: CrashWorld, case: Case, work: str) -> None:
    report = report_of_end(world.start(case, phase=work))
    assert report.outcome == "done", f"{work}: {report.outcome}: {report.says}"
