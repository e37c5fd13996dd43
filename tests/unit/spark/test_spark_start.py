"""Test what a session is given before a job has it."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

from makewhole_spark import spark_start, worker_daemon
from makewhole_spark.spark_start import StartingSpark, spark_in_thread

pytestmark = pytest.mark.unit


def started(monkeypatch: pytest.MonkeyPatch) -> tuple[StartingSpark, SimpleNamespace]:
    """A session of a cluster, and what it is started as."""
    context = SimpleNamespace(environment={}, master="yarn", setLogLevel=lambda _: None)
    there: Future[None] = Future()

    def of_name(_: str) -> Any:
        there.set_result(None)
        return context

    monkeypatch.setattr(spark_start, "spark_context", of_name)
    starting = spark_in_thread("a job")
    there.result(10)
    return starting, context


def test_workers_load_what_the_job_names_though_java_is_there_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    starting, context = started(monkeypatch)
    with pytest.raises(TimeoutError):
        starting.context.result(0.2)

    starting.worker_modules.set_result(["pyiceberg.io.pyarrow", "pyiceberg.catalog.sql"])

    assert cast(Any, starting.context.result(10)) is context
    assert context.environment[worker_daemon.MORE_MODULES] == "pyiceberg.io.pyarrow,pyiceberg.catalog.sql"


def test_a_session_that_does_not_start_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: str) -> Any:
        raise RuntimeError("no place")

    monkeypatch.setattr(spark_start, "spark_context", refused)
    with pytest.raises(RuntimeError, match="no place"):
        spark_in_thread("a job").context.result(10)
