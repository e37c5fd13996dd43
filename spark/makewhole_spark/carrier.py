"""Carry a list of tasks to where they run: each runs in Python, and a small answer comes back.

The row work happens inside the tasks, in Arrow and polars; what a task makes goes to storage, and only names and
numbers return to the driver.
"""

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from makewhole.model.errors import MakewholeError
from makewhole.sql import PgConnection
from makewhole_spark.same_code import code_digest, require_same_code

if TYPE_CHECKING:  # of these neither a session nor a process that workers are forked from needs the libraries
    from makewhole.compute.frames import Schema
    from makewhole.gate.frame import Frame, NamedFiles

Task = TypeVar("Task")
Result = TypeVar("Result")


class Carrier(Protocol):
    """Where the tasks of a window run."""

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at once."""

    def carry(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> list[Result]:
        """Run every task; return the answers in the order of the tasks.

        Tasks and answers travel as pickles; they must be small, and hold no secrets. A task that fails may be run
        again, so `run` must be able to run twice: it writes to names of its own, and only the answer that comes back
        is used.

        Raises:
            MakewholeError: the first that any task raised, as it was raised.
            PermanentError: what runs the tasks has no makewhole, or another one than this.
        """

    def frame(self, uris: Sequence[str], schema: "Schema") -> "Frame | NamedFiles":
        """Return what reads these Parquet files, for more rows than the driver holds."""


def carry_released(
    carrier: Carrier, journal: PgConnection, tasks: Sequence[Task], run: Callable[[Task], Result]
) -> list[Result]:
    """Carry tasks after ending the transaction at the journal: they may work for hours, and a session that is idle in a
    transaction for so long keeps vacuum from the whole database.

    What was written before is committed by this.
    """
    journal.commit()
    return carrier.carry(tasks, run)


@dataclass(frozen=True, kw_only=True)
class PackedTasks:
    """Tasks as they travel: pickled, with the function that runs each, and the digest of the code that it is of."""

    pickled: Sequence[bytes]
    run: Callable[[Any], Any]
    code: str

    @classmethod
    def of(cls, tasks: Sequence[Any], run: Callable[[Any], Any]) -> Self:
        """Return tasks packed by this process."""
        return cls(pickled=[pickle.dumps(task) for task in tasks], run=run, code=code_digest())

    def answer(self, number: int) -> bytes:
        """Run a task where it was carried to, and return its answer, pickled.

        makewhole's own errors travel as answers: a carrier would wrap them beyond recognition.
        """
        return pickle.dumps(self._answer(number))

    def _answer(self, number: int) -> Any:
        try:
            require_same_code(self.code)
            return self.run(pickle.loads(self.pickled[number]))
        except MakewholeError as error:
            error.__cause__ = None
            return error

    def unpack(self, answers: Iterable[tuple[int, bytes]]) -> list[Any]:
        """Return the answers, which come with the numbers of their tasks, in the order of the tasks.

        Raises:
            MakewholeError: the first among the answers.
        """
        by_number = {number: pickle.loads(answer) for number, answer in answers}
        in_order = [by_number[number] for number in range(len(self.pickled))]
        for answer in in_order:
            if isinstance(answer, MakewholeError):
                raise answer
        return in_order
