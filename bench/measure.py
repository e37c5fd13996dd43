"""Measure what a run costs: wall time, processor time and memory of a process and everything it started."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, Self

import psutil

_SAMPLE_SECONDS = 0.25


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of one run. Processor seconds are user and system time; memory is the peak seen, shared pages counted
    once."""

    wall_seconds: float
    python_cpu_seconds: float
    jvm_cpu_seconds: float
    python_bytes: int
    jvm_bytes: int

    @property
    def cpu_seconds(self) -> float:
        return self.python_cpu_seconds + self.jvm_cpu_seconds


class _Split(NamedTuple):
    """A figure for the Python processes of a tree and for the Java ones."""

    python: float
    jvm: float


@dataclass
class Meter:
    """A meter of a process tree while the block runs; then `cost` is there."""

    pid: int
    _peak: _Split = field(default_factory=lambda: _Split(0, 0))
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._cpu, self._start = cpu_seconds(self.pid), time.perf_counter()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wall, cpu = time.perf_counter() - self._start, cpu_seconds(self.pid)
        self._over.set()
        self._thread.join()
        self.cost = Cost(
            wall_seconds=wall,
            python_cpu_seconds=cpu.python - self._cpu.python,
            jvm_cpu_seconds=cpu.jvm - self._cpu.jvm,
            python_bytes=int(self._peak.python),
            jvm_bytes=int(self._peak.jvm),
        )

    def _watch(self) -> None:
        while True:
            now = memory_bytes(self.pid)
            self._peak = _Split(max(self._peak.python, now.python), max(self._peak.jvm, now.jvm))
            if self._over.wait(_SAMPLE_SECONDS):
                return


def cpu_seconds(pid: int) -> _Split:
    """Return user and system time of a tree so far, of its ended and awaited children too."""
    python = jvm = 0.0
    for process, is_java in _tree(pid):
        with suppress(psutil.Error):
            times = process.cpu_times()
            own, children = times.user + times.system, times.children_user + times.children_system
            python += children + (0.0 if is_java else own)
            jvm += own if is_java else 0.0
    return _Split(python, jvm)


def memory_bytes(pid: int) -> _Split:
    """Return resident memory of the tree now, a page that several processes share counted once."""
    python = jvm = 0
    for process, is_java in _tree(pid):
        with suppress(psutil.Error):
            size: int = process.memory_full_info().pss
            python, jvm = (python, jvm + size) if is_java else (python + size, jvm)
    return _Split(python, jvm)


def _tree(pid: int) -> list[tuple[psutil.Process, bool]]:
    """Return the process and all below it, each with whether it is a Java machine."""
    found = []
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error):
                found.append((process, process.name().startswith("java")))
    return found
