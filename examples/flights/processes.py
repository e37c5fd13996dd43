"""Runs the producer and the loader as processes of their own, and kills them where they pause."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PAUSE_MS = 30_000  # long enough that the kill always falls into it
RUN_SECONDS = 900


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a run ended: the last thing it said, and its process id."""

    pid: int
    event: str


def start(
    module: str, arguments: list[str], *, detached: bool = False, log: Path | None = None
) -> subprocess.Popen[str]:
    """Start one part of the example."""
    output = log.open("a", encoding="utf-8") if log else subprocess.PIPE
    try:
        return subprocess.Popen(
            [sys.executable, "-m", f"examples.flights.{module}", *arguments],
            cwd=CHECKOUT,
            stdout=output,
            stderr=subprocess.STDOUT if log else None,
            text=True,
            start_new_session=detached,
        )
    finally:
        if log and not isinstance(output, int):
            output.close()


def run(module: str, arguments: list[str]) -> Ended:
    """Run one part to its end.

    Raises:
        RuntimeError: it failed.
    """
    process = start(module, arguments)
    output, _ = process.communicate(timeout=RUN_SECONDS)
    events = [json.loads(line)["event"] for line in output.splitlines() if line.startswith("{")]
    if process.returncode or "done" not in events:
        raise RuntimeError(f"{module} ended with {process.returncode} before its work was done; see its message above")
    return Ended(pid=process.pid, event=events[-1])


def run_and_kill(module: str, arguments: list[str]) -> Ended:
    """Run one part and SIGKILL it between its two steps.

    Raises:
        RuntimeError: it ended, or went on, instead of pausing.
    """
    process = start(module, [*arguments, "--pause-ms", str(PAUSE_MS)])
    assert process.stdout is not None
    last = ""
    for line in process.stdout:
        last = json.loads(line)["event"] if line.startswith("{") else last
        if last == "pause":
            process.send_signal(signal.SIGKILL)
            break
    rest = process.stdout.read()
    code = process.wait(timeout=RUN_SECONDS)
    if last != "pause" or code != -signal.SIGKILL or rest:
        raise RuntimeError(f"{module} was to be killed in its pause, but ended with {code} after {last!r}")
    return Ended(pid=process.pid, event=last)


def is_alive(pid: int, word: str) -> bool:
    """Whether `pid` is still the process we started (its command line has `word` in it)."""
    try:
        return word in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def end(pid: int, word: str, *, patience_seconds: float = 15.0) -> bool:
    """SIGTERM, then SIGKILL when patience is over; False when it was not running."""
    if not is_alive(pid, word):
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + patience_seconds
    while is_alive(pid, word) and time.monotonic() < deadline:
        time.sleep(0.1)
    if is_alive(pid, word):
        os.kill(pid, signal.SIGKILL)
    return True
