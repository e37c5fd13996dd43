"""Start one set of servers and one pool of workers for all cases, and show the table of their results."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash import points, report
from tests.crash.enumeration import Enumeration, table
from tests.crash.servers.servers import Servers
from tests.crash.worker_pool import WorkerPool

_ENUMERATION = pytest.StashKey[Enumeration]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("crash")
    group.addoption("--crash-points", choices=["all", "short"], default="all", help="`short`: what every change runs")
    group.addoption("--crash-workers", type=int, default=2 * (os.cpu_count() or 1), help="cases at once")
    group.addoption("--crash-results", type=Path, help="put what was done into this JSON file")
    group.addoption("--crash-record", action="store_true", help="write the number of points into tests/crash")


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
            is_part=bool(config.getoption("keyword")),
        )
        config.stash[_ENUMERATION] = made
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    made = config.stash.get(_ENUMERATION, None)
    if made is None:
        return
    terminalreporter.section("crashes")
    terminalreporter.write_line(table(made.rows))
    if made.is_recording:
        points.record(made.section, made.kinds, is_part=bool(config.getoption("keyword")))
    if config.getoption("crash_results") is not None:
        report.record(config.getoption("crash_results"), made)
