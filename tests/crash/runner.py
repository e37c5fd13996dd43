"""Runners in processes of their own: for each order on stdin, one line of JSON, one forked runner.

The parent never touches Kafka, so that forking it is safe, and has imported everything, so that it is quick. It says
`started`, `stopped` and `ended`, each with a pid; what a runner has to say is in a file named after its pid.
"""

import json
import os
import select
import signal
import socket
import sys
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas  # noqa: F401 - pyarrow imports it when it first writes: here once, and not in every runner

from makewhole.kafka import replay
from makewhole.model.errors import MakewholeError
from tests.crash.calls import Edge, Step, may_last
from tests.crash.scenario import PHASES, Place

_POLL_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a runner shall do. `point` counts from 0: 2 k is before the k-th step, 2 k + 1 after it; None: undisturbed.
    `name` is that of a point instead of its number: the first one that is called so.

    `how`: `kill`, `stop`, `walk` (stop after every step that may
    last), or for the proxy at `saboteur` `cut` or `lose`. `idle_ms` as
    `Edge` has it; `patience_seconds`: how long Kafka's calls are waited for, instead of the product's 30 s.
    """

    phase: str
    place: dict[str, Any]
    folder: str
    point: int | None = None
    name: str = ""
    how: str = "kill"
    saboteur: str = ""
    idle_ms: int | None = None
    patience_seconds: float | None = None


@dataclass(kw_only=True)
class Report:
    """What a runner did: the names of its steps, what they touched, the point at which something happened, the end."""

    steps: list[str] = field(default_factory=list)
    touched: list[str] = field(default_factory=list)
    at: str = ""
    outcome: str = ""
    says: str = ""


class Trap:
    """Counts steps, and lets happen what the order says, at its point."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.report = Report()

    def before(self, step: Step) -> None:
        self.report.steps.append(step.name)
        self.report.touched += [item for item in step.touches if item not in self.report.touched]
        self._pass(2 * len(self.report.steps) - 2, f"before {step.name}", step)

    def after(self, step: Step) -> None:
        self._pass(2 * len(self.report.steps) - 1, f"after {step.name}", step)

    def write(self) -> None:
        """Into a file that is there whole or not at all."""
        path = Path(self._order.folder) / f"{os.getpid()}.json"
        path.with_suffix(".part").write_text(json.dumps(asdict(self.report)))
        path.with_suffix(".part").rename(path)

    def _pass(self, point: int, name: str, step: Step) -> None:
        is_walking = self._order.how == "walk" and point % 2 == 1 and may_last(step.name)
        if not is_walking and point != self._order.point and name != self._order.name:
            return
        self.report.at = name
        self.write()
        match self._order.how:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop" | "walk":
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
            case _:
                self._sabotage(step)

    def _sabotage(self, step: Step) -> None:
        """Returns when the proxy is ready to do it to the next request of this connection, or to the next one made."""
        with socket.socket(socket.AF_UNIX) as wire:
            wire.connect(self._order.saboteur)
            wire.sendall(json.dumps({"port": step.port, "how": self._order.how}).encode() + b"\n")
            wire.recv(1)


def main() -> None:
    """Fork for every order, tell of every child."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    orders = sys.stdin.buffer.raw  # type: ignore[attr-defined]
    left = b""
    while True:
        ready, _, _ = select.select([orders, woken], [], [], _POLL_SECONDS)
        if woken in ready:
            os.read(woken, 4096)
        _tell_of_children()
        if orders not in ready:
            continue
        read = orders.read(1 << 16)
        if not read:
            return
        *lines, left = (left + read).split(b"\n")
        for line in lines:
            _fork(Order(**json.loads(line)))


def _fork(order: Order) -> None:
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        run(order)
    _say(f"started {pid}")


def _tell_of_children() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say(f"{'stopped' if os.WIFSTOPPED(status) else 'ended'} {pid}")


def run(order: Order) -> None:
    """One attempt in this process, which ends with it."""
    trap = Trap(order)
    try:
        Edge(trap, order.idle_ms).install()
        if order.patience_seconds is not None:
            replay._TIMEOUT_SECONDS = order.patience_seconds
        trap.report.says = PHASES[order.phase](Place(**order.place))
        trap.report.outcome = "done"
    except MakewholeError as error:
        trap.report.outcome, trap.report.says = type(error).__name__, str(error)
    except BaseException as error:
        trap.report.outcome, trap.report.says = "crash", repr(error)
    trap.write()
    os._exit(0)


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def order_line(order: Order) -> bytes:
    """As the parent reads it."""
    return json.dumps(asdict(order)).encode() + b"\n"


def read_report(folder: Path, pid: int) -> Report:
    """What a runner has written so far."""
    content: dict[str, Any] = json.loads((folder / f"{pid}.json").read_text())
    return Report(**content)


if __name__ == "__main__":
    main()
