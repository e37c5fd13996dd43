"""Run a program of the lab in a process of its own, step by step, and kill it where a scenario wants it dead.

A program says which step it has reached, and waits there for a word. What it said is its crash log: whoever kills it
knows what it was about to do.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_END_SECONDS = 60
END = "end"
"""The step of a program that has done all of its work."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A point that a program has reached: its name, in which batch (counted from 0), and what it noted there."""

    batch: int
    name: str
    notes: Any = None


At = Callable[[Step], str | None]
"""What is done at a step, while the program waits there. What it returns is the program's word to go on with."""

GO_ON = "go on"


def do_nothing(_: Step) -> None:
    """Do nothing at a step."""


def play(
    program: str,
    work: Mapping[str, Any],
    *,
    killed_at: tuple[int, str] | None = None,
    at: At = do_nothing,
) -> list[Step]:
    """Run a program of tests/lab/processes to its end, or kill it (SIGKILL) at a step of a batch; return its steps."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.lab.processes.{program}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    steps: list[Step] = []
    try:
        _write(process, json.dumps(work))
        while not steps or steps[-1].name != END:
            line = process.stdout.readline()
            assert line, f"the {program} has ended by itself after {steps[-1:]}"
            steps.append(Step(**json.loads(line)))
            word = at(steps[-1])
            if (steps[-1].batch, steps[-1].name) == killed_at:
                return steps
            _write(process, word or GO_ON)
        assert killed_at is None, f"the {program} has ended and was not at {killed_at}"
        process.communicate(timeout=_END_SECONDS)
        return steps
    finally:
        process.kill()
        process.communicate()


def _write(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def work_of_process() -> dict[str, Any]:
    """Return what the program was started for; called in its process."""
    work: dict[str, Any] = json.loads(sys.stdin.readline())
    return work


def reached(batch: int, name: str, notes: Any = None) -> str:
    """Report a step and wait for the word to go on with; called in the program's process."""
    print(json.dumps({"batch": batch, "name": name, "notes": notes}), flush=True)
    return sys.stdin.readline().strip()
