"""The lab: one cluster, one Spark session, one PostgreSQL; for each scenario a shop of its own."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import psutil
import pytest
from pyspark.sql import SparkSession

from makewhole.stack.environment import connection_kafka, connection_postgres
from tests.integration.conftest import spark  # noqa: F401
from tests.java_clients import JavaClients
from tests.lab.cluster import LabCluster
from tests.lab.scenario import Lab, Scenario, selected
from tests.lab.shop import Shop


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lab")
    group.addoption("--lab-rows", default="", help="rows of the table, `1,2,9`; `short`: what every change runs")
    group.addoption("--lab-seeds", type=int, default=1, help="run every scenario with the seeds 1 to N")
    group.addoption("--lab-seed", type=int, help="run every scenario with this seed alone")
    group.addoption("--lab-results", type=Path, help="write what was said (seed 1) into this JSON file")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "scenario" not in metafunc.fixturenames:
        return
    option = metafunc.config.getoption
    one, many = option("lab_seed", default=None), option("lab_seeds", default=1)
    cases = [
        pytest.param(scenario, seed, id=f"{scenario.id}-seed{seed}")
        for scenario in selected(option("lab_rows", default=""))
        for seed in ([one] if one is not None else range(1, many + 1))
    ]
    metafunc.parametrize(("scenario", "seed"), cases)


@pytest.fixture(scope="session")
def cluster(server_folder: Path) -> Iterator[LabCluster]:
    with LabCluster(server_folder / "lab") as made:
        yield made


@pytest.fixture(scope="session")
def jvms() -> Iterator[list[JavaClients]]:
    """Java's clients, started when the first scenario asks, and again when one has killed them."""
    started: list[JavaClients] = []
    yield started
    for java in started:
        java.stop()


@pytest.fixture
def lab(
    scenario: Scenario,
    seed: int,
    spark: SparkSession,  # noqa: F811
    cluster: LabCluster,
    jvms: list[JavaClients],
    database: str,
    journal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Lab]:
    """A cluster that is whole again, and a shop of the scenario's own."""
    (tmp_path / "pipelines").mkdir()
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", journal)
    monkeypatch.setenv("MAKEWHOLE_STORAGE", str(tmp_path / "storage"))
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setenv("AIRFLOW_CONN_LOG", connection_kafka(cluster.bootstrap))
    monkeypatch.setenv("AIRFLOW_CONN_DB", connection_postgres(database))

    def java() -> JavaClients:
        if not jvms or not psutil.pid_exists(jvms[-1].pid):
            jvms.append(JavaClients())
        return jvms[-1]

    shop = Shop(
        spark=spark, bootstrap=cluster.bootstrap, dsn=database, journal=journal, folder=tmp_path, cluster=cluster
    )
    with ExitStack() as ends:
        yield Lab(
            seed=seed,
            cluster=cluster,
            shop=shop,
            java=java,
            ends=ends,
            random=Random(f"{scenario.id} {seed}"),
            patch=monkeypatch,
        )
    cluster.heal()
    cluster.delete_topic(shop.topic)
