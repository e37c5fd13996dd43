"""One set of servers and one crew for all cases, and the table of what they came to."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.crew import Crew
from tests.crash.enumeration import Enumeration, table
from tests.crash.servers import Servers

_ENUMERATION = pytest.StashKey[Enumeration]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("crash")
    group.addoption("--crash-points", choices=["all", "short"], default="all", help="`short`: what every change runs")
    group.addoption("--crash-workers", type=int, default=2 * (os.cpu_count() or 1), help="cases at once")
    group.addoption("--crash-record", action="store_true", help="write the number of points into tests/crash")


@pytest.fixture(scope="session")
def enumeration(request: pytest.FixtureRequest, server_folder: Path) -> Iterator[Enumeration]:
    config = request.config
    capture = config.pluginmanager.getplugin("capturemanager")

    def tell(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"  {line}", flush=True)

    with Servers(server_folder / "crash") as servers:
        crew = Crew([servers.world() for _ in range(config.getoption("crash_workers"))], tell)
        made = Enumeration(servers=servers, crew=crew, is_short=config.getoption("crash_points") == "short")
        config.stash[_ENUMERATION] = made
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    made = config.stash.get(_ENUMERATION, None)
    if made is not None:
        terminalreporter.section("crashes")
        terminalreporter.write_line(table(made.rows))
