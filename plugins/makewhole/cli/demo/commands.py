"""Run the commands of a demo as processes of their own: people see what they print, programs read it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from makewhole.model.errors import TransientError
from makewhole.stack.settings import project_root


def makewhole(*arguments: str) -> list[str]:
    """Return a command of makewhole."""
    return [str(Path(sys.executable).with_name("makewhole")), *arguments]


def example(name: str, *arguments: str) -> list[str]:
    """Return a command of an example."""
    return [sys.executable, "-m", f"examples.{name}", *arguments]


def show(out: Console, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Run a command whose output people shall see, and send it where our own goes.

    Raises:
        TransientError: it failed.
    """
    require(command, exit_code(out, command, environment))


def exit_code(out: Console, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run a command whose output people shall see, and return its exit code."""
    out.file.flush()
    return subprocess.run(command, cwd=project_root(), env=_with(environment), stdout=out.file.fileno()).returncode


def output_of(command: Sequence[str], environment: Mapping[str, str] | None = None, *, may_fail: bool = False) -> str:
    """Run a command for its output. `may_fail`: its exit code says what it found, not that it could not run.

    Raises:
        TransientError: it failed.
    """
    done = subprocess.run(command, cwd=project_root(), env=_with(environment), stdout=subprocess.PIPE, text=True)
    if not may_fail:
        require(command, done.returncode)
    return done.stdout


def require(command: Sequence[str], code: int) -> None:
    """Refuse an exit code that is not 0.

    Raises:
        TransientError: it is not.
    """
    if code:
        name = " ".join([Path(command[0]).name, *command[1:]])
        raise TransientError(f"`{name}` ended with {code}; its message is above")


def json_lines(text: str) -> list[dict[str, Any]]:
    """Return the objects of some lines of JSON."""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _with(environment: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, **(environment or {})}
