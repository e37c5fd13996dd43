"""Start runner processes, wait until they are stopped or ended, wake them, read what they did."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.runners.runner import Instruction, Report, instruction_line, read_report

_DEADLINE_SECONDS = 90.0


@dataclass(kw_only=True, eq=False)
class Run:
    """A runner process."""

    pid: int
    folder: Path
    state: str = "running"
    changed: threading.Condition = field(default_factory=threading.Condition)

    def becomes(self, state: str) -> None:
        """Note its state."""
        with self.changed:
            self.state = state
            self.changed.notify_all()

    def wait(self, *states: str, seconds: float = _DEADLINE_SECONDS) -> str:
        """Wait until it is in one of these states: `stopped`, `ended`."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.state in states, seconds), (
                f"the runner is {self.state} and not {' or '.join(states)} after {seconds:.0f} s"
            )
            return self.state

    def resume(self) -> None:
        """Send SIGCONT, after a stop that was waited for."""
        self.becomes("running")
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        if self.state != "ended":
            os.kill(self.pid, signal.SIGKILL)
            self.wait("ended")

    def report(self) -> Report:
        """Read what it has done so far."""
        return read_report(self.folder, self.pid)


class Runners:
    """A parent that forks runners. Each run's report is in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: dict[int, Run] = {}
        self._started = threading.Condition()
        self._fresh: list[Run] = []
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.runners.runner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # What the killed leave behind goes with the rest; what is done by threads is done in one order.
            env={**os.environ, "TMPDIR": str(folder), "PYICEBERG_MAX_WORKERS": "1"},
        )
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def folder(self) -> str:
        return str(self._folder)

    def start(self, instruction: Instruction) -> Run:
        """Fork a runner; one start at a time."""
        assert self._parent.stdin is not None
        self._parent.stdin.write(instruction_line(instruction))
        self._parent.stdin.flush()
        with self._started:
            assert self._started.wait_for(lambda: self._fresh, _DEADLINE_SECONDS), "no runner was started"
            return self._fresh.pop()

    def close(self) -> None:
        assert self._parent.stdin is not None
        for run in list(self._runs.values()):
            run.kill()
        self._parent.stdin.close()
        self._parent.wait(timeout=20)

    def _listen(self) -> None:
        assert self._parent.stdout is not None
        for line in self._parent.stdout:
            what, pid = line.decode().split()
            if what == "started":
                self._begin(int(pid))
            else:
                self._runs[int(pid)].becomes(what)
                if what == "ended":
                    del self._runs[int(pid)]

    def _begin(self, pid: int) -> None:
        run = self._runs[pid] = Run(pid=pid, folder=self._folder)
        with self._started:
            self._fresh.append(run)
            self._started.notify_all()
