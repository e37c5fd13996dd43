"""Do jobs by workers with a world of their own each: most of a case is waiting, so that several go on at once."""

import queue
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tests.crash.servers.world import CrashWorld

_T = TypeVar("_T")
_REPORT_SECONDS = 20.0
_ENOUGH_FAILURES = 20


@dataclass(frozen=True, kw_only=True)
class Job(Generic[_T]):
    """Work to be done in any world. `name` is what it is called in reports."""

    name: str
    work: Callable[[CrashWorld], _T]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A job that did not come out as it must."""

    name: str
    error: BaseException

    def __str__(self) -> str:
        return f"{self.name}: {type(self.error).__name__}: {self.error}"


@dataclass(frozen=True, kw_only=True)
class Done:
    """The results of jobs, in the order in which they ended, and those that failed."""

    results: list[Any]
    failures: list[Failure]
    seconds: float


class WorkerPool:
    """A worker for each world. `report` is given a line now and then."""

    def __init__(self, worlds: Sequence[CrashWorld], report: Callable[[str], None]) -> None:
        self._worlds: queue.Queue[CrashWorld] = queue.Queue()
        for world in worlds:
            self._worlds.put(world)
        self._size = len(worlds)
        self._report = report

    def do(self, what: str, jobs: Sequence[Job[Any]]) -> Done:
        """Do all jobs; after many failures the rest is left."""
        began = reported_at = time.monotonic()
        results: list[Any] = []
        failures: list[Failure] = []
        with ThreadPoolExecutor(self._size) as workers:
            names = {workers.submit(self._do, job): job.name for job in jobs}
            try:
                for number, future in enumerate(as_completed(names), 1):
                    error = future.exception()
                    if error is not None:
                        failures.append(Failure(name=names[future], error=error))
                        self._report(f"{what}: {failures[-1]}")
                    else:
                        results.append(future.result())
                    if len(failures) >= _ENOUGH_FAILURES:
                        break
                    if time.monotonic() - reported_at > _REPORT_SECONDS:
                        reported_at = time.monotonic()
                        self._report(_progress(what, number, len(jobs), reported_at - began, len(failures)))
            finally:
                workers.shutdown(cancel_futures=True)
        return Done(results=results, failures=failures, seconds=time.monotonic() - began)

    def _do(self, job: Job[Any]) -> Any:
        world = self._worlds.get()
        try:
            return job.work(world)
        finally:
            self._worlds.put(world)


def _progress(what: str, done: int, jobs: int, seconds: float, failures: int) -> str:
    left = seconds / done * (jobs - done)
    failed = f", {failures} failed" if failures else ""
    return f"{what}: {done:,} of {jobs:,}{failed}, about {left:,.0f} s left"
