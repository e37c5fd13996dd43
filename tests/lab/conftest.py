"""Start the lab: one cluster, one PostgreSQL; for each scenario a shop of its own."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import psutil
import pytest

from makewhole_spark.carrier import Carrier
from tests.lab.scenario import Lab, Scenario, selected
from tests.lab.servers.cluster import LabCluster
from tests.lab.shop import LabShop
from tests.world.environment import enter, service_environment
from tests.world.java_clients import JavaClients


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
    single, many = option("lab_seed", default=None), option("lab_seeds", default=1)
    cases = [
        pytest.param(scenario, seed, id=f"{scenario.id}-seed{seed}")
        for scenario in selected(option("lab_rows", default=""))
        for seed in ([single] if single is not None else range(1, many + 1))
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
    carrier: Carrier,
    cluster: LabCluster,
    jvms: list[JavaClients],
    database: str,
    journal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Lab]:
    """A cluster that is whole again, and a shop of the scenario's own."""
    shop = LabShop(
        carrier=carrier, bootstrap=cluster.bootstrap, dsn=database, journal=journal, folder=tmp_path, cluster=cluster
    )
    enter(monkeypatch, service_environment(shop, tmp_path))

    def java() -> JavaClients:
        if not jvms or not psutil.pid_exists(jvms[-1].pid):
            jvms.append(JavaClients())
        return jvms[-1]

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
