"""Test that a window on a cluster gives the report that it gives on one machine, whatever dies meanwhile."""

import time
from itertools import islice
from pathlib import Path

import pytest

from bench.cluster.spark_cluster import Executor, SparkCluster, until
from tests.integration.cluster.application import Application, Submitter
from tests.integration.cluster.conftest import ClusterShop
from tests.world.reports import report

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]

ON_EXECUTORS = Path(__file__).with_name("validate_on_executors.py")
"""Few verdicts are checked on the driver, which waits for no executor."""
_STANDING_SECONDS = 8.0


def test_a_window_on_a_cluster_gives_the_report_of_one_machine(
    shop: ClusterShop, submitter: Submitter, local: Submitter
) -> None:
    on_cluster, on_one_machine = shop.judged(submitter), shop.judged(local)

    assert on_cluster == on_one_machine
    assert on_cluster["findings"].count("\n") == 11
    assert on_cluster["gate"].splitlines()[0] == "FAIL"


def test_an_executor_that_is_killed_in_a_step_changes_nothing_in_the_report(
    shop: ClusterShop, cluster: SparkCluster, submitter: Submitter, local: Submitter
) -> None:
    context = shop.open()
    for step, program in (("snapshot", None), ("reconcile", None), ("validate", ON_EXECUTORS)):
        output = _lose_an_executor(cluster, submitter.submit(context, step, step, program))
        assert "ERROR TaskSchedulerImpl: Lost executor" in output
        assert "ERROR makewhole" not in output

    assert report(shop.journal, context) == shop.judged(local)


def _lose_an_executor(cluster: SparkCluster, application: Application) -> str:
    """Kill an executor in the middle of a task; return what the application said at its end.

    It stands still first, and is killed when all else waits for it.
    """
    stopped = list[Executor]()

    def is_one_stopped() -> bool:
        stopped.extend(islice((executor for executor in cluster.executors() if executor.stop_in_task()), 1))
        return bool(stopped)

    until(is_one_stopped, 150, lambda: application.output)
    time.sleep(_STANDING_SECONDS)
    assert application.process.poll() is None, application.output
    stopped[0].kill()
    return application.end()
