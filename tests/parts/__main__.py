"""Run parts of the tests, and print at the end how long each took, which tests took longest and which failed.

python -m tests.parts test                       what every change runs
python -m tests.parts test-fast                  an answer in three minutes
python -m tests.parts test-all                   everything
python -m tests.parts unit integration -- -x     some parts, each by itself, with arguments for pytest

Exit code 0 when every part ran tests and all of them passed.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from tests.parts.parts import PARTS, STAGES, Part
from tests.parts.timings import Timings

_SLOWEST, _LONG_SECONDS = 10, 10.0
_NAMED, _LINE = 20, 300
_YIELDING = ("nice", "-n", "10")
_OUTCOMES = ("passed", "failed", "skipped")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A part that was run, with pytest's exit code and the seconds from start to end."""

    part: Part
    code: int
    seconds: float
    timings: Timings

    @property
    def is_good(self) -> bool:
        """Whether it ran tests of each of its folders, and all of them passed."""
        return self.code == 0 and all(outcomes.get("passed", 0) > 0 for outcomes in self._outcomes.values())

    @property
    def counts(self) -> Sequence[str]:
        """The outcomes as a line for the part, or for each of its folders, which programs read, too."""
        return [_counts(name, outcomes, self.code) for name, outcomes in self._outcomes.items()]

    @property
    def _outcomes(self) -> Mapping[str, Mapping[str, int]]:
        by_folder = self.timings.outcomes
        if self.part.folders:
            return {folder: by_folder.get(folder, {}) for folder in self.part.folders}
        return {self.part.name: sum((Counter(outcomes) for outcomes in by_folder.values()), Counter())}


def _counts(name: str, outcomes: Mapping[str, int], code: int) -> str:
    if not outcomes:
        return f"{name} ran no test (exit code {code})"
    passed, failed, skipped = (outcomes.get(outcome, 0) for outcome in _OUTCOMES)
    return f"{name}: {passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


class Runner:
    """Runs parts, and prints what pytest prints, each line behind the name of its part."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self._folder, self._arguments = folder, arguments
        self._printing = threading.Lock()

    def run(self, stages: Sequence[Sequence[Part]]) -> list[Ended]:
        """Run the stages one after the other, and the parts of a stage side by side."""
        return [ended for stage in stages for ended in self._run_stage(stage)]

    def _run_stage(self, stage: Sequence[Part]) -> list[Ended]:
        with ThreadPoolExecutor(len(stage)) as pool:
            return list(pool.map(self._run, stage))

    def _run(self, part: Part) -> Ended:
        noted = self._folder / f"{part.name}.json"
        command = [
            *(_YIELDING if part.gives_way else ()),
            *(sys.executable, "-m", "pytest", "-p", "tests.parts.timings", "--timings", str(noted)),
            *(*part.arguments, *self._arguments),
        ]
        self._print(part, " ".join(command[command.index("pytest") :]))
        began = time.monotonic()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_environment()
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                self._print(part, line.rstrip("\n"))
        return Ended(part=part, code=process.returncode, seconds=time.monotonic() - began, timings=Timings.read(noted))

    def _print(self, part: Part, line: str) -> None:
        with self._printing:
            print(f"{part.name:<12}{line}", flush=True)


def _environment() -> dict[str, str]:
    """Return the environment, with compiled files kept: else each process compiles all tests that it loads."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}


def summary(ended: Sequence[Ended]) -> Iterator[str]:
    """Yield how long each part took, the slowest tests, and the outcomes."""
    yield "\nhow long each part took"
    for ended_part in ended:
        yield f"{ended_part.seconds:7.0f} s  {ended_part.part.name}"
    tests = sorted((test for part in ended for test in part.timings.tests), key=lambda test: -test.seconds)
    yield "\nthe slowest tests, with what they set up"
    for test in tests[:_SLOWEST]:
        yield f"{test.seconds:7.1f} s  {test.name}"
    for test in tests:
        if test.seconds > _LONG_SECONDS and not test.is_explained:
            yield f"over {_LONG_SECONDS:.0f} s, and no docstring that says why: {test.name}"
    yield ""
    for ended_part in ended:
        yield from _failures(ended_part.timings)
    for ended_part in ended:
        yield from ended_part.counts


def _failures(timings: Timings) -> Iterator[str]:
    """Yield the failed tests with their reasons: last of all, since a log is often cut to its end."""
    for failure in timings.failures[:_NAMED]:
        yield f"FAILED ({failure.phase}) {failure.name}"
        yield from (f"    {line[:_LINE]}" for line in failure.reason.splitlines())
    if len(timings.failures) > _NAMED:
        yield f"FAILED and not named here: {len(timings.failures) - _NAMED}"


def main(wanted: Sequence[str]) -> int:
    """Run what is wanted; return the exit code."""
    names = list(takewhile("--".__ne__, wanted))
    arguments = wanted[len(names) + 1 :]
    stages = STAGES[names[0]] if names[0] in STAGES else [[PARTS[name]] for name in names]
    with tempfile.TemporaryDirectory() as folder:
        ended = Runner(Path(folder), arguments).run(stages)
    print("\n".join(summary(ended)), flush=True)
    return 0 if all(ended_part.is_good for ended_part in ended) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
