"""Test what is said at the end of parts that were run, and which of them pass."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.parts.__main__ import Ended, summary
from tests.parts.parts import PARTS, STAGES, Part
from tests.parts.timings import FailedTest, TimedTest, Timings

pytestmark = pytest.mark.unit


def ended(
    name: str, *, code: int = 0, seconds: float = 1.0, tests: tuple[TimedTest, ...] = (), **outcomes: int
) -> Ended:
    return Ended(
        part=Part(name=name, arguments=()),
        code=code,
        seconds=seconds,
        timings=Timings(outcomes={name: outcomes} if outcomes else {}, tests=tests),
    )


def ended_with(code: int = 0, **folders: Mapping[str, int]) -> Ended:
    part = Part(name="all", arguments=(), folders=("lab", "unit"))
    return Ended(part=part, code=code, seconds=1.0, timings=Timings(outcomes=folders, tests=()))


@pytest.mark.parametrize(
    ("part", "is_good"),
    [
        (ended("a", passed=3), True),
        (ended("a", passed=3, skipped=1), True),
        (ended("a", code=1, passed=3, failed=1), False),
        (ended("a", code=1, passed=3), False),  # an error that belongs to no test
        (ended("a", skipped=3), False),
        (ended("a", code=5), False),
        (ended("a"), False),  # it ended well, and ran nothing
    ],
)
def test_a_part_is_good_when_it_ran_tests_and_all_of_them_passed(part: Ended, is_good: bool) -> None:
    assert part.is_good is is_good


def test_the_end_says_how_long_parts_took_what_was_slow_and_what_became_of_them() -> None:
    tests = tuple(TimedTest(name=f"t{number}", seconds=number, is_explained=number == 12) for number in range(1, 13))

    lines = list(summary([ended("one", seconds=61.4, tests=tests, passed=12), ended("two", code=5)]))

    assert lines == [
        "\nhow long each part took",
        "     61 s  one",
        "      1 s  two",
        "\nthe slowest tests, with what they set up",
        *(f"{number:7.1f} s  t{number}" for number in range(12, 2, -1)),
        "over 10 s, and no docstring that says why: t11",
        "",
        "one: 12 passed, 0 failed",
        "two ran no test (exit code 5)",
    ]


def test_a_part_of_several_folders_says_the_outcomes_of_each_and_is_good_when_all_of_them_are() -> None:
    both = ended_with(lab={"passed": 1, "skipped": 2}, unit={"passed": 3})
    assert (both.counts, both.is_good) == (["lab: 1 passed, 0 failed, 2 skipped", "unit: 3 passed, 0 failed"], True)
    run = ended_with(lab={"passed": 1})
    assert (run.counts, run.is_good) == (["lab: 1 passed, 0 failed", "unit ran no test (exit code 0)"], False)
    assert not ended_with(1, lab={"passed": 1}, unit={"passed": 1}).is_good


def test_what_every_change_runs_is_in_what_is_run_before_work_is_called_done() -> None:
    every, all_ = (
        {name for stage in STAGES[name] for part in stage for name in (part.folders or (part.name,))}
        for name in ("test", "test-all")
    )
    assert every == {"unit", "integration", "e2e", "lab", "crash", "histories", "fuzz"}
    assert every < all_ <= set(PARTS)


def test_failed_tests_are_named_with_their_reasons_before_the_outcomes() -> None:
    failures = tuple(FailedTest(name=f"t{number}", phase="call", reason="assert 1 == 2\nE") for number in range(22))
    timings = Timings(outcomes={"one": {"failed": 22}}, tests=(), failures=failures)

    lines = list(summary([Ended(part=Part(name="one", arguments=()), code=1, seconds=1.0, timings=timings)]))

    first = lines.index("FAILED (call) t0")
    assert lines[first + 1 : first + 3] == ["    assert 1 == 2", "    E"]
    assert lines[-2:] == ["FAILED and not named here: 2", "one: 0 passed, 22 failed"]


def test_what_failed_and_why_is_noted(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert [1] == [2]\n")
    noted = tmp_path / "noted.json"

    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "tests.parts.timings", "-p", "no:cacheprovider"),
            *("--timings", str(noted), f"--rootdir={tmp_path}", "-c", "/dev/null", "test_it.py"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        check=False,
        capture_output=True,
    )

    (failure,) = Timings.read(noted).failures
    assert (failure.name, failure.phase) == ("test_it.py::test_it", "call")
    assert failure.reason.startswith("assert [1] == [2]")
