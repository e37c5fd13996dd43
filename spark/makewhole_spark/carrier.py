"""Spark as the carrier: a list of tasks goes out, each runs in Python on an executor, a small answer comes back.

The row work happens inside the tasks, in Arrow and polars; what a task makes goes to storage, and only names and
numbers return to the driver.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from makewhole.model.errors import MakewholeError
from makewhole.sql import PgConnection
from makewhole_spark import worker_daemon
from makewhole_spark.python_worker import keep_freed_memory, shorten_next_start
from makewhole_spark.same_code import absence_told, code_digest, require_same_code

Task = TypeVar("Task")
Result = TypeVar("Result")


def session(name: str) -> SparkSession:
    """The session of a job. Master, deploy mode and memory come from spark-submit, so from the Airflow connection."""
    builder = SparkSession.builder.appName(name)
    settings = {
        "spark.python.daemon.module": worker_daemon.MODULE,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.adaptive.enabled": "true",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def carry(spark: SparkSession, tasks: Sequence[Task], run: Callable[[Task], Result]) -> list[Result]:
    """Run every task on an executor; the answers in the order of the tasks.

    Tasks and answers travel as pickles; they must be small, and hold no secrets. One Spark task runs several, one after
    the other: starting each costs a tenth of a second, which is more than a small bucket takes. Spark retries a task
    that fails, so `run` must be able to run twice: it writes to names of its own, and only the answer that comes back
    is used.

    Raises:
        MakewholeError: the first that any task raised, as it was raised.
        PermanentError: the workers' Python has no makewhole, or another one than this.
    """
    if not tasks:
        return []
    pickled, code = [pickle.dumps(task) for task in tasks], code_digest()

    def work(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        keep_freed_memory()
        for number in numbers:
            yield number, pickle.dumps(_answer(run, pickled[number], code))
        shorten_next_start()

    # Not a data frame: nothing is to be planned, and Spark takes longer to plan it than a small task takes.
    context = spark.sparkContext
    slots = min(len(tasks), _WAVES * context.defaultParallelism)
    with absence_told():
        found = context.parallelize(range(len(tasks)), slots).mapPartitions(work).collect()
    answers: dict[int, Any] = {number: pickle.loads(answer) for number, answer in found}
    for answer in answers.values():
        if isinstance(answer, MakewholeError):
            raise answer
    return [answers[number] for number in range(len(tasks))]


def carry_released(
    spark: SparkSession, journal: PgConnection, tasks: Sequence[Task], run: Callable[[Task], Result]
) -> list[Result]:
    """Do as `carry`, after ending the transaction at the journal: Spark may work for hours, and a session that is idle
    in a transaction for so long keeps vacuum from the whole database.

    What was written before is committed by this.
    """
    journal.commit()
    return carry(spark, tasks, run)


def _answer(run: Callable[[Any], Any], pickled: bytes, code: str) -> Any:
    """What the task answers; our own errors travel as answers, since Spark would wrap them beyond recognition."""
    try:
        require_same_code(code)
        return run(pickle.loads(pickled))
    except MakewholeError as error:
        error.__cause__ = None
        return error


_WAVES = 4  # Spark tasks per core: enough to even out buckets of different size
