"""Test that a window on YARN gives the same report, its driver at home or on the cluster, and that no secret shows."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bench.cluster.environment_archive import NAME
from bench.cluster.spark_cluster import LOOPBACK, connections_here, write_connections
from makewhole.config.connection_text import FILE_VARIABLE
from tests.integration.cluster.application import Submitter
from tests.integration.cluster.conftest import ClusterShop
from tests.integration.cluster.exposure import CommandLines, files_holding
from tests.integration.cluster.yarn_cluster import YarnCluster

pytestmark = [pytest.mark.yarn, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnCluster]:
    made = YarnCluster(tmp_path_factory.mktemp("yarn"))
    yield made
    made.stop()


@pytest.fixture
def known(planted_shop: ClusterShop, tmp_path: Path) -> Mapping[str, str]:
    """Write the files of secrets that are on each machine of the cluster; return the variables that name them."""
    secrets = tmp_path / "secrets"
    secrets.mkdir(mode=0o700)
    write_connections(secrets / "connections.json", connections_here())
    password = urlsplit(planted_shop.journal).password
    (secrets / "pgpass").touch(mode=0o600)
    (secrets / "pgpass").write_text(f"*:*:*:*:{password}\n")
    return {FILE_VARIABLE: str(secrets / "connections.json"), "PGPASSFILE": str(secrets / "pgpass")}


@pytest.fixture
def in_client_mode(yarn: YarnCluster, archive: Path, tmp_path: Path, known: Mapping[str, str]) -> Iterator[Submitter]:
    settings = {"spark.submit.deployMode": "client", f"spark.executorEnv.{FILE_VARIABLE}": known[FILE_VARIABLE]}
    made = Submitter.to_yarn(tmp_path / "client", yarn.client_settings, archive, settings)
    yield made
    made.stop()


@pytest.fixture
def in_cluster_mode(
    yarn: YarnCluster, archive: Path, tmp_path: Path, known: Mapping[str, str], planted_shop: ClusterShop
) -> Iterator[Submitter]:
    """Submit a driver that finds on its machine what one at home has in its environment."""
    password = urlsplit(planted_shop.journal).password
    environment = {
        **known,
        "MAKEWHOLE_JOURNAL_DSN": planted_shop.journal.replace(f":{password}@", "@"),
        "MAKEWHOLE_STORAGE": os.environ["MAKEWHOLE_STORAGE"],
        "MAKEWHOLE_PIPELINES": os.environ["MAKEWHOLE_PIPELINES"],
        "SPARK_LOCAL_IP": LOOPBACK,
    }
    settings = {
        "spark.submit.deployMode": "cluster",
        "spark.pyspark.driver.python": f"./{NAME}/bin/python",
        f"spark.executorEnv.{FILE_VARIABLE}": known[FILE_VARIABLE],
        "spark.driver.memoryOverhead": "1g",  # the driver's Python is in it
        **{f"spark.yarn.appMasterEnv.{name}": text for name, text in environment.items()},
    }
    made = Submitter.to_yarn(tmp_path / "cluster", yarn.client_settings, archive, settings)
    yield made
    made.stop()


def test_a_window_on_yarn_gives_the_report_of_one_machine(
    planted_shop: ClusterShop,
    yarn: YarnCluster,
    in_client_mode: Submitter,
    in_cluster_mode: Submitter,
    local: Submitter,
) -> None:
    reports = [planted_shop.judged(submitter) for submitter in (in_client_mode, in_cluster_mode)]

    assert reports == [planted_shop.judged(local)] * 2
    assert reports[0]["findings"].count("\n") == 11
    assert yarn.applications_by_node() == [yarn.applications()] * 2
    assert len(yarn.applications()) == 2


def test_a_driver_on_yarn_shows_no_password_in_a_command_line_a_log_an_event_or_a_file(
    planted_shop: ClusterShop, yarn: YarnCluster, in_cluster_mode: Submitter
) -> None:
    secret = json.loads(os.environ["AIRFLOW_CONN_DB"])["password"].encode()
    assert len(secret) > 8
    logged = in_cluster_mode.with_event_log()

    context = planted_shop.open()
    application = logged.submit(context, "snapshot", "snapshot")
    lines = CommandLines(application, yarn.processes())
    output = application.end()

    assert planted_shop.journal_sql("select count(*) from makewhole.snapshot") == [(3,)]
    seen = lines.end()
    assert any(b"deploy.yarn.ApplicationMaster" in line for line in seen)
    assert any(b"YarnCoarseGrainedExecutorBackend" in line for line in seen)
    assert b"SparkListenerEnvironmentUpdate" in logged.event_log()
    assert files_holding(yarn.folder, b"MAKEWHOLE_JOURNAL_DSN") != []  # the settings are there, the secret is not
    assert [line for line in seen if secret in line] == []
    assert secret.decode() not in output
    for folder in (in_cluster_mode.folder, yarn.folder, Path(context.storage.root)):
        assert files_holding(folder, secret) == []
