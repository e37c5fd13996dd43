"""Carry the tasks of a window within this process, as Spark does between processes."""

import pickle
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark import cloudpickle

from makewhole.compute.frames import Schema
from makewhole.gate.frame import Frame, NamedFiles
from makewhole_spark.carrier import PackedTasks, Result, Task


class TaskFailedError(Exception):
    """A task raised what is none of makewhole's own errors, as often as it may be tried."""


@dataclass(frozen=True)
class InProcessCarrier:
    """Runs tasks one after the other, without a session, its Java and its Python workers.

    What travels is what travels with Spark: pickles of tasks and answers, and the function by Spark's own pickler. A
    task that fails by anything but makewhole's own errors is run again, `tries` times in all (Spark's
    `spark.task.maxFailures`, which is 1 on one machine), and then ends the work; the tasks after it are not run.
    """

    parallelism: int = 2
    tries: int = 1

    def carry(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> list[Result]:
        """Run every task; return the answers in the order of the tasks."""
        if not tasks:
            return []
        packed = PackedTasks.of(tasks, run)
        received: PackedTasks = pickle.loads(cloudpickle.dumps(packed))  # type: ignore[no-untyped-call]
        return packed.unpack((number, self._answer(received, number)) for number in range(len(tasks)))

    def _answer(self, packed: PackedTasks, number: int) -> bytes:
        for tried in range(1, self.tries + 1):
            try:
                return packed.answer(number)
            except Exception as error:
                if tried == self.tries:
                    raise TaskFailedError(traceback.format_exc()) from error
        raise AssertionError("a task is tried once at least")

    def frame(self, uris: Sequence[str], schema: Schema) -> Frame | NamedFiles:
        """Refuse: more verdicts than the driver checks by itself are checked by Spark alone."""
        raise AssertionError(f"{len(uris)} files have more verdicts than a test without Spark may have")
