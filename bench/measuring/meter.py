"""Measure what a run costs: wall time, processor time and memory of processes and everything they started."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import psutil

from bench.measuring.processor_time import ProcessorTime, Split

_LOOK_SECONDS, _SAMPLE_SECONDS = 0.1, 0.25
_SHARE = 0.02
"""The most of the time in which memory may be added up: the kernel walks all pages of a process meanwhile, which has to
wait where it asks for more."""


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


@dataclass
class Meter:
    """A meter of a process tree while the block runs, and of those of `others`; then `cost` is there."""

    pid: int
    others: Sequence[int] = ()
    _peak: Split = field(default_factory=Split)
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._pids = (self.pid, *self.others)
        self._time = ProcessorTime(self._pids)
        self._cpu, self._start = self._time.look(), time.perf_counter()
        # Apart, because adding up the pages of large processes takes longer than a process should go unseen.
        self._threads = [
            threading.Thread(target=watch, daemon=True) for watch in (self._watch_time, self._watch_memory)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wall = time.perf_counter() - self._start
        self._over.set()
        for thread in self._threads:
            thread.join()
        cpu = self._time.look()
        self.cost = Cost(
            wall_seconds=wall,
            python_cpu_seconds=cpu.python - self._cpu.python,
            jvm_cpu_seconds=cpu.jvm - self._cpu.jvm,
            python_bytes=int(self._peak.python),
            jvm_bytes=int(self._peak.jvm),
        )

    def _watch_time(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self._time.look()

    def _watch_memory(self) -> None:
        while True:
            begun = time.perf_counter()
            now = memory_bytes(self._pids)
            self._peak = Split(max(self._peak.python, now.python), max(self._peak.jvm, now.jvm))
            if self._over.wait(max(_SAMPLE_SECONDS, (time.perf_counter() - begun) / _SHARE)):
                return


def memory_bytes(pids: Sequence[int]) -> Split:
    """Return resident memory of the trees now, a page that several processes share counted once."""
    python = jvm = 0
    for process, is_java in (member for pid in pids for member in _tree(pid)):
        with suppress(psutil.Error):
            size: int = process.memory_full_info().pss
            python, jvm = (python, jvm + size) if is_java else (python + size, jvm)
    return Split(python, jvm)


def _tree(pid: int) -> list[tuple[psutil.Process, bool]]:
    """Return the process and all below it, each with whether it is a Java machine."""
    members = []
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error):
                members.append((process, process.name().startswith("java")))
    return members
