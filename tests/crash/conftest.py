"""Start one set of servers and one pool of workers for all cases, and show the table of their results."""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash import points, report
from tests.crash.enumeration import PHASES, Enumeration, table
from tests.crash.servers.servers import Servers
from tests.crash.worker_pool import WorkerPool

_ENUMERATION = pytest.StashKey[Enumeration]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("crash")
    group.addoption("--crash-points", choices=["all", "short"], default="all", help="`short`: what every change runs")
    group.addoption("--crash-phases", type=_phases, default=PHASES, help="some, with commas between them")
    group.addoption("--crash-workers", type=int, default=2 * (os.cpu_count() or 1), help="cases at once")
    group.addoption("--crash-results", type=Path, help="put what was done into this JSON file")
    group.addoption("--crash-record", action="store_true", help="write the number of points into tests/crash")


def _phases(text: str) -> tuple[str, ...]:
    wanted = text.split(",")
    if not set(wanted) <= set(PHASES):
        raise argparse.ArgumentTypeError(f"the phases are {', '.join(PHASES)}")
    return tuple(phase for phase in PHASES if phase in wanted)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of phases that were not asked for."""
    wanted = config.getoption("crash_phases")
    if wanted == PHASES:
        return
    phases = {
        item: item.callspec.params.get("phase")
        for item in items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    }
    left = [item for item, phase in phases.items() if phase is not None and phase not in wanted]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def _is_part(config: pytest.Config) -> bool:
    return bool(config.getoption("keyword")) or config.getoption("crash_phases") != PHASES


@pytest.fixture(scope="session")
def enumeration(request: pytest.FixtureRequest, server_folder: Path) -> Iterator[Enumeration]:
    config = request.config
    capture = config.pluginmanager.getplugin("capturemanager")

    def report(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"  {line}", flush=True)

    with Servers(server_folder / "crash") as servers:
        pool = WorkerPool([servers.world() for _ in range(config.getoption("crash_workers"))], report)
        made = Enumeration(
            servers=servers,
            pool=pool,
            is_short=config.getoption("crash_points") == "short",
            is_recording=config.getoption("crash_record"),
            wanted=config.getoption("crash_phases"),
            is_part=_is_part(config),
        )
        config.stash[_ENUMERATION] = made
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    made = config.stash.get(_ENUMERATION, None)
    if made is None:
        return
    terminalreporter.section("crashes")
    terminalreporter.write_line(table(made.rows))
    _record(config, made, is_part=_is_part(config))


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Write down what each test has done: what ends a run of hours does not take that away."""
    made = item.config.stash.get(_ENUMERATION, None)
    if made is not None:
        _record(item.config, made, is_part=True)


def _record(config: pytest.Config, made: Enumeration, *, is_part: bool) -> None:
    if made.is_recording:
        points.record(made.section, made.kinds, is_part=is_part)
    if config.getoption("crash_results") is not None:
        report.record(config.getoption("crash_results"), made)
