"""Measure the same window on a cluster of Spark, a master and two workers, and in `local[2]`, in turn.

All of it is on one machine: what the cluster costs beside its work is to be seen, not what more machines give.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.cluster.environment_archive import environment_archive, unpacking
from bench.cluster.spark_cluster import LOOPBACK, SparkCluster, until
from bench.measuring.data_set import DataSet
from bench.measuring.results import Series
from bench.windows.orders import Orders
from bench.windows.service import ONE_MACHINE, Service, SparkMaster
from bench.windows.stage import Report, prepared

CLUSTER_WINDOW = "cluster "
"""Marks the name of each part, at its start."""
CLUSTER = "two workers"
LOCAL = ONE_MACHINE.url
_END_SECONDS = 60.0


def measured(bootstrap: str, folder: Path, orders: Orders, runs: int, report: Report) -> Iterator[Series]:
    """Measure so many runs of each side, the one that begins changing from round to round."""
    data, part = DataSet(records=orders.number), f"{CLUSTER_WINDOW}{orders.share_of_faults}"
    series_by_side = {side: Series(part=part, side=side, data=data) for side in (LOCAL, CLUSTER)}
    with prepared(bootstrap, folder, orders) as stage, _cluster(stage.service) as cluster:
        sides = {LOCAL: ONE_MACHINE, CLUSTER: _master(cluster, stage.service)}
        for number in range(runs):
            for side in sides if number % 2 == 0 else reversed(sides):
                cost, message = stage.judged(sides[side])
                series_by_side[side].warm.append(cost)
                report(stage.line("cluster", side, cost, message))
                # The next run has the machine to itself.
                until(lambda: not cluster.executors(), _END_SECONDS, lambda: "executors of a window that is over")
    yield from series_by_side.values()


@contextmanager
def _cluster(service: Service) -> Iterator[SparkCluster]:
    """Yield a cluster whose workers know the connections of the service."""
    with SparkCluster(service.folder / "cluster") as cluster:
        cluster.know(service.connections)
        yield cluster


def _master(cluster: SparkCluster, service: Service) -> SparkMaster:
    """Return the cluster, with executors that unpack makewhole as docs/cluster.md says."""
    folder = service.folder / "archive"
    folder.mkdir()
    settings = {
        **unpacking(environment_archive(folder)),
        "spark.pyspark.driver.python": sys.executable,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.executor.memory": "1g",
    }
    return SparkMaster(url=cluster.master, settings=settings, pids=cluster.pids)
