"""Run one side in a process with a Spark session of its own: nothing that one side warms or fills helps the other."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark.sql import SparkSession

from bench.measuring.meter import Cost, Meter

Task = Callable[..., Any]
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}


class Contender:
    """A process that runs tasks `task(spark, *arguments)`, functions of a module, one at a time, and measures each."""

    def __init__(self, name: str, folder: Path, jars: Sequence[Path] = ()) -> None:
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, name, str(folder), [str(jar) for jar in jars]), name=f"bench-{name}"
        )

    def __enter__(self) -> Self:
        self._process.start()
        self._answer()  # the session is up: its start is no part of any figure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._pipe.send(None)
            self._process.join(30)
        if self._process.is_alive():
            self._process.kill()

    def run(self, task: Task, *arguments: Any) -> tuple[Any, Cost]:
        """Run a task; return its answer and its cost.

        Raises:
            RuntimeError: the task failed.
        """
        assert self._process.pid is not None
        with Meter(self._process.pid) as meter:
            self._pipe.send((task, arguments))
            answer = self._answer()
        return answer, meter.cost

    def _answer(self) -> Any:
        try:
            is_good, answer = self._pipe.recv()
        except EOFError:
            raise RuntimeError(f"the process of {self.name} ended unasked") from None
        if not is_good:
            raise RuntimeError(f"{self.name}: {answer}")
        return answer


def _serve(pipe: Connection, name: str, folder: str, jars: list[str]) -> None:
    # The workers find this package and the environment's own.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    spark = _session(name, folder, jars)
    pipe.send((True, None))
    while (message := pipe.recv()) is not None:
        task, arguments = message
        try:
            pipe.send((True, task(spark, *arguments)))
        except Exception as error:  # the other process reports it
            pipe.send((False, f"{type(error).__name__}: {error}"))
    spark.stop()


def _session(name: str, folder: str, jars: list[str]) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName(name).config("spark.local.dir", folder)
    builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    if jars:
        builder = builder.config("spark.jars", ",".join(jars))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
