"""Compensate one window in a process of its own, as a task's attempt does, to be frozen and woken."""

import json
import os
import signal
import subprocess
import sys
from types import TracebackType
from typing import Self

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.model.errors import MakewholeError
from makewhole.window.context import WindowContext, window_context

_DEADLINE_SECONDS = 120


class Runner:
    """The process, as the lab sees it. A context manager: killed at the end."""

    def __init__(self, context: WindowContext) -> None:
        window = context.window
        work = json.dumps([window.pipeline, window.number, window.revision])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.lab.processes.runner", work], stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def pause(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)

    def outcome(self) -> str:
        """How it ended by itself: `done`, or the name of its error."""
        answer, _ = self._process.communicate(timeout=_DEADLINE_SECONDS)
        return answer.strip()


def main() -> None:
    """Do what is left of the window's plan, and say how it ended."""
    pipeline, number, revision = json.loads(sys.argv[1])
    with connect() as journal:
        window = windows.load(journal, pipeline, number, revision)
    try:
        compensate_window(window_context(window), lambda _: None)
    except MakewholeError as error:
        print(type(error).__name__)
    else:
        print("done")


if __name__ == "__main__":
    main()
