"""A cluster of Spark, and a shop whose windows are judged on it."""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.cluster.environment_archive import environment_archive, whole_environment_archive
from bench.cluster.spark_cluster import SparkCluster
from makewhole.journal.database import connect
from makewhole.stack.kafka_server import KafkaServer
from makewhole.window.context import WindowContext, connections_of, window_context
from makewhole.window.opening.open import Request, open_interval
from tests.integration.cluster.application import Submitter
from tests.world.environment import enter, service_environment
from tests.world.orders import BORN, DAY, orders
from tests.world.reports import Report, report
from tests.world.shop import Shop
from tests.world.topics import delete_topics, make_topic


@dataclass(kw_only=True)
class ClusterShop(Shop):
    """A shop with planted faults, whose windows are judged by jobs that are submitted."""

    submitted: int = field(default=0)

    def plant(self) -> None:
        """Trade, with a few of each fault."""
        made = orders(range(60))
        self.trade(made, unsent=made[5:8], unloaded=made[20:24])
        self.send([made[30], made[31]])
        self.write("warehouse", [made[40], {**made[41], "amount": "0.01"}, *orders([900])])

    def put_in_another_order(self) -> None:
        """Put rows and records in another order, in a journal that knows nothing of what was judged before."""
        for table in ("outbox", "warehouse"):
            self.sql(f"create table shuffled as select * from {table} order by md5(id)")
            self.sql(f"drop table {table}; alter table shuffled rename to {table}")
        sent = [json.loads(record.value or b"") for record in self.read()]
        self.make_topic_again()
        self.send(sorted(sent, key=lambda order: hashlib.sha256(order["id"].encode()).digest()))
        self.journal_sql("truncate makewhole.window, makewhole.lane, makewhole.observation cascade")

    def open(self, *, read_again: bool = False) -> WindowContext:
        """Open the window of the first day, or another revision of it."""
        with connect(self.journal) as journal:
            self.submitted += 1
            wanted = Request(id=f"{self.submitted}", end=BORN + DAY, read_again=read_again)
            opened = open_interval(journal, self.pipeline, connections_of(self.pipeline), wanted)
        return window_context(opened.window, self.pipeline)

    def judged(self, submitter: Submitter) -> Report:
        """Take the window through all three steps in one application, every point read; return the report."""
        context = self.open(read_again=True)
        submitter.submit(context, "snapshot", "validate").end()
        return report(self.journal, context)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of makewhole alone; with `MAKEWHOLE_WHOLE_ENVIRONMENT` that of all packages."""
    made = whole_environment_archive if os.environ.get("MAKEWHOLE_WHOLE_ENVIRONMENT") else environment_archive
    return made(tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    made = SparkCluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.stop()


@pytest.fixture
def submitter(cluster: SparkCluster, archive: Path, tmp_path: Path) -> Iterator[Submitter]:
    made = Submitter.to_cluster(tmp_path / "cluster", cluster.master, archive)
    yield made
    made.stop()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Submitter]:
    made = Submitter(folder=tmp_path / "local", master="local[2]")
    yield made
    made.stop()


@pytest.fixture
def shop(planted_shop: ClusterShop, cluster: SparkCluster) -> ClusterShop:
    """A shop with planted faults. The workers of the cluster know its connections by a file of their own."""
    cluster.know_environment()
    return planted_shop


@pytest.fixture
def partitions() -> int:
    """The number of the topic's partitions."""
    return 1


@pytest.fixture
def planted_shop(
    kafka: KafkaServer, database: str, journal: str, partitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ClusterShop]:
    """A shop with planted faults, which this process alone knows."""
    made = ClusterShop(bootstrap=kafka.bootstrap, dsn=database, journal=journal, folder=tmp_path, partitions=partitions)
    enter(monkeypatch, service_environment(made, tmp_path))
    made.describe()
    made.make_tables()
    make_topic(made.admin, made.topic, partitions)
    made.plant()
    yield made
    delete_topics(made.admin, [made.topic])
