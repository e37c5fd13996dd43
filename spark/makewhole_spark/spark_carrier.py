"""Spark as the carrier: tasks run in the Python workers of its executors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException

from makewhole.model.errors import PermanentError
from makewhole_spark import worker_daemon
from makewhole_spark.carrier import PackedTasks, Result, Task
from makewhole_spark.python_worker import keep_freed_memory, shorten_next_start
from makewhole_spark.same_code import REMEDY
from makewhole_spark.watch import TaskCounts

if TYPE_CHECKING:
    from makewhole.compute.frames import Schema
    from makewhole.gate.frame import Frame, NamedFiles


def spark_context(name: str) -> SparkContext:
    """Return the context of a job. Master, deploy mode and memory come from spark-submit, so from the Airflow
    connection.

    It is all that carries tasks. A session for queries takes Java two seconds more to make, and is made by the first
    query (`SparkCarrier.frame`), which few windows have.
    """
    settings = {
        "spark.python.daemon.module": worker_daemon.MODULE,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.adaptive.enabled": "true",
    }
    return SparkContext.getOrCreate(SparkConf().setAppName(name).setAll(list(settings.items())))


def stop(context: SparkContext) -> None:
    """Stop a context as `SparkContext.stop` does, but for the thread that takes accumulators, which ends with this
    process: it looks once a second whether it is to end."""
    context._accumulatorServer = None  # type: ignore[assignment]
    context.stop()


@dataclass(frozen=True)
class SparkCarrier:
    """Carries tasks to the Python workers of an application.

    One Spark task runs several of ours, one after the other: starting each costs a tenth of a second, which is more
    than a small bucket takes. Spark runs a task again that fails by anything but makewhole's own errors, as often as
    the application's settings say. `watch`: what looks how far the tasks are, while they run.
    """

    context: SparkContext
    watch: Callable[[TaskCounts], AbstractContextManager[None]] = lambda _: nullcontext()

    @property
    def parallelism(self) -> int:
        """The number of cores that the application counts on."""
        return self.context.defaultParallelism

    def carry(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> list[Result]:
        """Run every task on an executor; return the answers in the order of the tasks."""
        if not tasks:
            return []
        packed = PackedTasks.of(tasks, run)

        def work(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
            keep_freed_memory()
            for number in numbers:
                yield number, packed.answer(number)
            shorten_next_start()

        # Not a data frame: nothing is to be planned, and Spark takes longer to plan it than a small task takes.
        slots = min(len(tasks), _WAVES * self.parallelism)
        with reported_absence(), self.watch(self._counts):
            answers = self.context.parallelize(range(len(tasks)), slots).mapPartitions(work).collect()
        return packed.unpack(answers)

    def _counts(self) -> tuple[int, int] | None:
        """Return how many of the Spark tasks are done that run now, and how many there are."""
        tracker = self.context.statusTracker()
        jobs = filter(None, map(tracker.getJobInfo, tracker.getActiveJobsIds()))
        stages = [stage for job in jobs for number in job.stageIds if (stage := tracker.getStageInfo(number))]
        if not stages:
            return None
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)

    def frame(self, uris: Sequence[str], schema: "Schema") -> "Frame | NamedFiles":
        """Return a frame by which stored files are found, or their names where Spark's reader has no way to them."""
        from pyspark.sql import SparkSession

        from makewhole_spark.stored_frames import frame_or_names

        return frame_or_names(SparkSession.builder.getOrCreate(), uris, schema)


_WAVES = 4  # Spark tasks per core: enough to even out buckets of different size


@contextmanager
def reported_absence() -> Iterator[None]:
    """Name the remedy when a query, or a job without one, fails because the workers' Python has no makewhole at all.

    Raises:
        PermanentError: in the place of Spark's own error.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:  # of a job that has no query, Spark's error comes as Java's
        if "No module named 'makewhole" not in str(error):
            raise
        raise PermanentError(f"the Python workers have no makewhole, or an older one. {REMEDY}") from None
