"""Fork runners: for each instruction on stdin, one line of JSON, one process.

The parent never touches Kafka, so that forking it is safe, and has loaded everything, so that it is quick. It says
`started`, `stopped` and `ended`, each with a pid; the report of a runner is in a file named after its pid.
"""

import gc
import io
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas  # noqa: F401 - pyarrow imports it when it first writes: here once, and not in every runner
import pyiceberg.catalog.sql
import sqlalchemy.dialects.postgresql.psycopg2  # noqa: F401 - the library of the catalogue, likewise

from makewhole.compensation.execution.look_again import topic_tail
from makewhole.kafka import replay
from makewhole.kafka.log.records import decode
from makewhole.model.errors import MakewholeError
from tests.crash.plan import scenario
from tests.crash.plan.case_settings import CaseSettings
from tests.crash.runners.calls import ClientWrapper, Step, load_late_modules, may_last
from tests.crash.windows import window_scenario

_POLL_SECONDS = 1.0
_WORK = {**scenario.PHASES, **window_scenario.WORK}


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """The work of a runner, and what happens to it. `point` counts from 0: 2 k is before the k-th step, 2 k + 1 after
    it; None: undisturbed. `name` is that of a point instead of its number: the first one that is called so.

    `how`: `kill`, `stop`, `walk` (stop after every step that may last), or for the proxy at `proxy_control` `cut` or
    `lose`. `idle_ms` as `ClientWrapper` has it; `patience_seconds`: how long Kafka's calls are waited for, instead
    of the product's 30 s.
    """

    phase: str
    settings: dict[str, Any]
    folder: str
    point: int | None = None
    name: str = ""
    how: str = "kill"
    proxy_control: str = ""
    idle_ms: int | None = None
    patience_seconds: float | None = None


@dataclass(kw_only=True)
class Report:
    """A runner's steps by name, what they touched, the point at which something happened, outcome and message."""

    steps: list[str] = field(default_factory=list)
    touched: list[str] = field(default_factory=list)
    at: str = ""
    outcome: str = ""
    says: str = ""


class FaultInjector:
    """Counts steps, and lets happen what the instruction says, at its point."""

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction
        self.report = Report()

    def before(self, step: Step) -> None:
        self.report.steps.append(step.name)
        self.report.touched += [item for item in step.touches if item not in self.report.touched]
        self._pass(2 * len(self.report.steps) - 2, f"before {step.name}", step)

    def after(self, step: Step) -> None:
        self._pass(2 * len(self.report.steps) - 1, f"after {step.name}", step)

    def write(self) -> None:
        """Write the report into a file that is there whole or not at all."""
        path = Path(self._instruction.folder) / f"{os.getpid()}.json"
        path.with_suffix(".part").write_text(json.dumps(asdict(self.report)))
        path.with_suffix(".part").rename(path)

    def _pass(self, point: int, name: str, step: Step) -> None:
        is_walking = self._instruction.how == "walk" and point % 2 == 1 and may_last(step.name)
        if not is_walking and point != self._instruction.point and name != self._instruction.name:
            return
        self.report.at = name
        self.write()
        match self._instruction.how:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop" | "walk":
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
            case _:
                self._arm_proxy(step)

    def _arm_proxy(self, step: Step) -> None:
        """Return when the proxy is ready to do it to the next request of this connection, or to the next one made."""
        with socket.socket(socket.AF_UNIX) as wire:
            wire.connect(self._instruction.proxy_control)
            wire.sendall(json.dumps({"port": step.port, "how": self._instruction.how}).encode() + b"\n")
            wire.recv(1)


def main() -> None:
    """Fork for every instruction, report every child."""
    assert pyiceberg.catalog.sql, "loaded here once, too"
    list(decode(0, []))  # what reads records is machine code, which takes a runner half a second to load
    load_late_modules()
    gc.freeze()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    assert isinstance(sys.stdin.buffer, io.BufferedReader)
    instructions = sys.stdin.buffer.raw  # unbuffered: what is left to read, `select` must see
    left = b""
    while True:
        ready, _, _ = select.select([instructions, woken], [], [], _POLL_SECONDS)
        if woken in ready:
            os.read(woken, 4096)
        _report_children()
        if instructions not in ready:
            continue
        read = instructions.read(1 << 16)
        if not read:
            return
        *lines, left = (left + read).split(b"\n")
        for line in lines:
            _fork(Instruction(**json.loads(line)))


def _fork(instruction: Instruction) -> None:
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        run(instruction)
    _say(f"started {pid}")


def _report_children() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say(f"{'stopped' if os.WIFSTOPPED(status) else 'ended'} {pid}")


def run(instruction: Instruction) -> None:
    """Make one attempt in this process, which ends with it."""
    injector = FaultInjector(instruction)
    try:
        ClientWrapper(injector, instruction.idle_ms).install()
        _have_time_change_no_steps()
        if instruction.patience_seconds is not None:
            replay._TIMEOUT_SECONDS = instruction.patience_seconds
        injector.report.says = _WORK[instruction.phase](CaseSettings(**instruction.settings))
        injector.report.outcome = "done"
    except MakewholeError as error:
        injector.report.outcome, injector.report.says = type(error).__name__, str(error)
    except BaseException as error:
        injector.report.outcome, injector.report.says = "crash", repr(error)
    injector.write()
    os._exit(0)


def _have_time_change_no_steps() -> None:
    """Have the same steps however long a runner stood still, and however long what it waits for takes to come."""
    tail: Any = topic_tail.TopicTail
    tail._pause = lambda _: time.sleep(topic_tail._POLL_SECONDS)
    topic_tail._RENEW_SECONDS = -1.0  # always, not from time to time


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def instruction_line(instruction: Instruction) -> bytes:
    """Return an instruction as the parent reads it."""
    return json.dumps(asdict(instruction)).encode() + b"\n"


def read_report(folder: Path, pid: int) -> Report:
    """Read what a runner has written so far."""
    content: dict[str, Any] = json.loads((folder / f"{pid}.json").read_text())
    return Report(**content)


if __name__ == "__main__":
    main()
