"""Note how many tests of a run passed, which failed and why, and how long each took, for the summary over all parts
(`-p tests.parts.timings`).

Of a run in several processes the first one notes, to which the others report.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

import pytest

_EXPLAINED = "docstring"
_REASON_LINES = 12


@dataclass(frozen=True, kw_only=True)
class TimedTest:
    """A test with its seconds, fixtures included. `is_explained`: its docstring can say why it takes so long."""

    name: str
    seconds: float
    is_explained: bool


@dataclass(frozen=True, kw_only=True)
class FailedTest:
    """A test that failed, in which phase of it (`setup`, `call`, `teardown`), and the text of the exception's first
    lines."""

    name: str
    phase: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Timings:
    """The outcomes of a run (folder below `tests` → `passed`, `failed`, `skipped` → number of tests), and its tests."""

    outcomes: Mapping[str, Mapping[str, int]]
    tests: tuple[TimedTest, ...]
    failures: tuple[FailedTest, ...] = ()

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read what a run noted; of one that broke off there is nothing."""
        if not file.exists():
            return cls(outcomes={}, tests=())
        noted = json.loads(file.read_text())
        return cls(
            outcomes=noted["outcomes"],
            tests=tuple(TimedTest(**test) for test in noted["tests"]),
            failures=tuple(FailedTest(**test) for test in noted["failures"]),
        )


@dataclass(kw_only=True, eq=False)  # pytest keeps its plugins in sets
class _Noted:
    file: Path
    outcomes: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    seconds: Counter[str] = field(default_factory=Counter)
    explained: set[str] = field(default_factory=set)
    failures: list[FailedTest] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test: what fails before or after the test itself is an error, and counts as failed."""
        self.seconds[report.nodeid] += report.duration  # type: ignore[assignment]
        if dict(report.user_properties).get(_EXPLAINED):
            self.explained.add(report.nodeid)
        if report.when == "call" or not report.passed:
            self.outcomes[_folder(report.nodeid)][report.outcome] += 1
        if report.failed:
            self.failures.append(FailedTest(name=report.nodeid, phase=report.when or "", reason=_reason(report)))

    def pytest_sessionfinish(self) -> None:
        """Write everything down."""
        tests = [
            TimedTest(name=name, seconds=seconds, is_explained=name in self.explained)
            for name, seconds in self.seconds.items()
        ]
        outcomes = {folder: dict(numbers) for folder, numbers in self.outcomes.items()}
        noted = Timings(outcomes=outcomes, tests=tuple(tests), failures=tuple(self.failures))
        self.file.write_text(json.dumps(asdict(noted)))


def _reason(report: pytest.TestReport) -> str:
    """Return the first lines of what the exception says, or of what there is in its place."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return "\n".join((crash.message if crash else report.longreprtext).strip().splitlines()[:_REASON_LINES])


def _folder(test: str) -> str:
    """Return the folder of a test below the first one of its path."""
    return test.partition("::")[0].removeprefix("tests/").partition("/")[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--timings", type=Path, help="write outcomes and seconds of the tests into this JSON file")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("timings")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Noted(file=file))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Report of a test whether it has a docstring: the process that notes does not load the tests."""
    if getattr(getattr(item, "function", None), "__doc__", None) and (_EXPLAINED, True) not in item.user_properties:
        item.user_properties.append((_EXPLAINED, True))
    return (yield)
