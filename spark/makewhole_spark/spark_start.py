"""Start the Spark of an application, and its Python workers, while the driver loads its own modules."""

import gc
import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark import SparkContext

from makewhole_spark import worker_daemon
from makewhole_spark.python_worker import memory_of_polars
from makewhole_spark.spark_carrier import spark_context

STARTING = "start Spark"
"""The name of the thread that starts it."""


@dataclass
class StartingSpark:
    """A Spark that is being started. `worker_modules`: what the process is to load from which workers are forked,
    beside what it always loads. The context is not there before they are known."""

    context: "Future[SparkContext]" = field(default_factory=Future)
    worker_modules: "Future[Sequence[str]]" = field(default_factory=Future)


def spark_in_thread(name: str) -> StartingSpark:
    """Begin to start Spark. Java does nearly all of it, and waits otherwise while Python imports.

    The thread is not waited for when the job fails before: on a cluster it can take minutes.
    """
    starting = StartingSpark()
    threading.Thread(target=_start, args=(name, starting), name=STARTING, daemon=True).start()
    return starting


def _start(name: str, starting: StartingSpark) -> None:
    try:
        context = spark_context(name)
        context.setLogLevel("ERROR")
        context.environment |= memory_of_polars(os.environ)
        context.environment[worker_daemon.MORE_MODULES] = ",".join(starting.worker_modules.result())
    except BaseException as error:
        starting.context.set_exception(error)
        return
    starting.context.set_result(context)
    if (context.master or "").startswith("local"):
        start_workers(context)


def start_workers(context: SparkContext) -> None:
    """Have a Python worker ready for each core of this machine before the first task is known.

    On a cluster, tasks may be given to machines that none was prepared on. What fails here, a task meets again.
    """
    with suppress(Exception):
        context.parallelize(range(context.defaultParallelism), context.defaultParallelism).foreachPartition(_load)


def _load(_: Iterable[int]) -> None:
    """Load the modules of the tasks, in a worker."""
    gc.disable()
    import makewhole_spark.reconcile.judge.judge_bucket
    import makewhole_spark.reconcile.tails.log_tail
    import makewhole_spark.reconcile.write_index
    import makewhole_spark.snapshot.read_piece  # noqa: F401

    gc.freeze()
    gc.enable()
