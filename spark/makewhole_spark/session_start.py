"""Start the session of an application, and its Python workers, while the driver loads its own modules."""

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from makewhole_spark import worker_daemon
from makewhole_spark.spark_carrier import session


@dataclass
class StartingSession:
    """A session that is being started. `worker_modules`: what the process is to load from which workers are forked,
    beside what it always loads; as it is when the session is there."""

    session: "Future[SparkSession]" = field(default_factory=Future)
    worker_modules: Sequence[str] = ()


def session_in_thread(name: str) -> StartingSession:
    """Begin to start a session. Java does nearly all of it, and waits otherwise while Python imports.

    The thread is not waited for when the job fails before: on a cluster a session can take minutes to start.
    """
    starting = StartingSession()
    threading.Thread(target=_start, args=(name, starting), name="start session", daemon=True).start()
    return starting


def _start(name: str, starting: StartingSession) -> None:
    try:
        spark = session(name)
        spark.sparkContext.setLogLevel("ERROR")
        spark.sparkContext.environment[worker_daemon.MORE_MODULES] = ",".join(starting.worker_modules)
    except BaseException as error:
        starting.session.set_exception(error)
        return
    starting.session.set_result(spark)
    if (spark.sparkContext.master or "").startswith("local"):
        start_workers(spark)


def start_workers(spark: SparkSession) -> None:
    """Have a Python worker ready for each core of this machine before the first task is known.

    On a cluster, tasks may be given to machines that none was prepared on. What fails here, a task meets again.
    """
    context = spark.sparkContext
    with suppress(Exception):
        context.parallelize(range(context.defaultParallelism), context.defaultParallelism).foreachPartition(_load)


def _load(_: Iterable[int]) -> None:
    """Load the modules of the tasks, in a worker."""
    import makewhole_spark.reconcile.judge.judge_bucket
    import makewhole_spark.reconcile.tails.log_tail
    import makewhole_spark.reconcile.write_index
    import makewhole_spark.snapshot.read_piece  # noqa: F401
