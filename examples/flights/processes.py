"""Run the producer and the loader as processes of their own, and kill them where they pause."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from examples.flights.settings import Systems

CHECKOUT = Path(__file__).resolve().parents[2]
PAUSE_MS = 30_000  # long enough that the kill always falls into it
RUN_SECONDS = 900


class Parts:
    """A starter of the example's parts against the same systems."""

    def __init__(self, systems: Systems) -> None:
        self._environment = {**os.environ, **systems.environment, "PYTHONUNBUFFERED": "1"}

    def start(self, module: str, arguments: list[str]) -> subprocess.Popen[str]:
        """Start one part; what it prints comes through a pipe."""
        command = [sys.executable, "-m", f"examples.flights.{module}", *arguments]
        return subprocess.Popen(command, cwd=CHECKOUT, env=self._environment, stdout=subprocess.PIPE, text=True)

    def start_detached(self, module: str, arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
        """Start one part that outlives us; what it prints goes to `log`."""
        command = [sys.executable, "-m", f"examples.flights.{module}", *arguments]
        with log.open("wb") as output:
            return subprocess.Popen(
                command,
                cwd=CHECKOUT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(self, module: str, arguments: list[str]) -> None:
        """Run one part to its end.

        Raises:
            RuntimeError: it failed.
        """
        process = self.start(module, arguments)
        output, _ = process.communicate(timeout=RUN_SECONDS)
        if process.returncode or "done" not in [_event(line) for line in output.splitlines()]:
            raise RuntimeError(
                f"{module} ended with {process.returncode} before its work was done; its message is above"
            )

    def run_and_kill(self, module: str, arguments: list[str]) -> int:
        """Run one part and SIGKILL it between its two steps; return the process id it had.

        Raises:
            RuntimeError: it ended, or went on, instead of pausing.
        """
        process = self.start(module, [*arguments, "--pause-ms", str(PAUSE_MS)])
        assert process.stdout is not None
        last = ""
        for line in process.stdout:
            last = _event(line) or last
            if last == "pause":
                process.send_signal(signal.SIGKILL)
                break
        rest = process.stdout.read()
        code = process.wait(timeout=RUN_SECONDS)
        if last != "pause" or code != -signal.SIGKILL or rest:
            raise RuntimeError(f"{module} was to be killed in its pause, but ended with {code} after {last!r}")
        return process.pid


def _event(line: str) -> str | None:
    return str(json.loads(line)["event"]) if line.startswith("{") else None


def is_alive(pid: int, word: str) -> bool:
    """Return whether `pid` is still the process we started (its command line has `word` in it)."""
    try:
        return word in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def end(pid: int, word: str, *, patience_seconds: float = 15.0) -> bool:
    """Send SIGTERM, then SIGKILL when patience is over; return False when it was not running."""
    if not is_alive(pid, word):
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + patience_seconds
    while is_alive(pid, word) and time.monotonic() < deadline:
        time.sleep(0.1)
    if is_alive(pid, word):
        os.kill(pid, signal.SIGKILL)
    return True
