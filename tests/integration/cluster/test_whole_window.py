"""Test that a window on a cluster gives the report that it gives on one machine, whatever dies meanwhile."""

import time

import pytest

from tests.integration.cluster.application import Application, Submitter
from tests.integration.cluster.conftest import ClusterShop
from tests.integration.cluster.spark_cluster import SparkCluster, until
from tests.world.reports import report

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

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
    for step in ("snapshot", "reconcile"):
        told = _lose_an_executor(cluster, submitter.submit(context, step, step))
        assert "ERROR TaskSchedulerImpl: Lost executor" in told
        assert "ERROR makewhole" not in told
    submitter.submit(context, "validate", "validate").end()  # it checks few verdicts on the driver, and waits for none

    assert report(shop.journal, context) == shop.judged(local)


def _lose_an_executor(cluster: SparkCluster, application: Application) -> str:
    """Kill an executor of an application that has two; return what the application said at its end.

    It stands still first, so that tasks are on it when it dies, and is killed when all else waits for them.
    """
    until(lambda: [one.is_registered for one in cluster.executors()] == [True, True], 60, lambda: application.told)
    [one, _] = cluster.executors()
    one.stop()
    time.sleep(_STANDING_SECONDS)
    assert application.process.poll() is None, application.told
    one.kill()
    return application.end()
