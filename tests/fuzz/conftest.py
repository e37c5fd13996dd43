"""Options of the fuzzers, and the process in which they try inputs."""

from collections.abc import Iterator

import pytest

from tests.fuzz.process import FuzzProcess

_SECONDS = 14.0


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fuzz")
    group.addoption("--fuzz-seconds", type=float, default=_SECONDS, help="how long inputs are drawn, in all")
    group.addoption("--fuzz-seed", type=int, default=1, help="the seed of what is drawn")


@pytest.fixture(scope="session")
def fuzz_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzProcess]:
    process = FuzzProcess(tmp_path_factory.mktemp("fuzz"))
    yield process
    process.close()
