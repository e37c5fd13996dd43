"""Test that a password reaches the executors and nothing that others can read: no command line, no log, no file."""

import json
import os
from pathlib import Path

import pytest

from bench.cluster.spark_cluster import SparkCluster
from tests.integration.cluster.application import Submitter
from tests.integration.cluster.conftest import ClusterShop
from tests.integration.cluster.exposure import CommandLines, files_holding
from tests.world.environment import set_connection
from tests.world.reports import report

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]

_PLANTED = "Pl4nted-p4ssword"


def test_no_password_is_in_a_command_line_a_log_an_event_or_a_file(
    shop: ClusterShop, cluster: SparkCluster, submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = json.loads(os.environ["AIRFLOW_CONN_LOG"])
    more = {"ssl.key.password": _PLANTED}
    set_connection(monkeypatch, "log", json.dumps({**log, "extra": {**log["extra"], **more}}))
    # That of the database is the journal's, too, which no executor has to know.
    secrets = [text.encode() for text in (_PLANTED, json.loads(os.environ["AIRFLOW_CONN_DB"])["password"])]
    assert all(len(hidden) > 8 for hidden in secrets)
    cluster.know_environment()
    logged = submitter.with_event_log()

    context = shop.open()
    application = logged.submit(context, "snapshot", "validate")
    lines = CommandLines(application, cluster.processes())
    output = application.end()

    assert "missing" in report(shop.journal, context)["findings"]
    seen = lines.end()
    assert sum(b"CoarseGrainedExecutorBackend" in line for line in seen) >= 2
    assert b"SparkListenerEnvironmentUpdate" in logged.event_log()
    for secret in secrets:
        assert [line for line in seen if secret in line] == []
        assert secret.decode() not in output
        assert files_holding(submitter.folder, secret) == []
        assert files_holding(cluster.folder, secret) == ["worker-0/connections.json", "worker-1/connections.json"]
        assert files_holding(Path(context.storage.root), secret) == []


def test_a_connection_that_an_executor_does_not_know_is_named_with_its_machine(
    shop: ClusterShop, cluster: SparkCluster, submitter: Submitter
) -> None:
    cluster.know({"log": os.environ["AIRFLOW_CONN_LOG"]})

    application = submitter.submit(shop.open(), "snapshot", "snapshot")

    assert application.process.wait(120) == 64
    assert "of the Python workers on " in application.output
    assert (
        ": AIRFLOW_CONN_DB: is not set. Add a connection db to Airflow (`airflow connections add`), or set it to {"
        in application.output
    )


def test_a_connection_that_leads_elsewhere_on_an_executor_is_refused(
    shop: ClusterShop, cluster: SparkCluster, submitter: Submitter
) -> None:
    other = {**json.loads(os.environ["AIRFLOW_CONN_DB"]), "schema": "another"}
    cluster.know({"log": os.environ["AIRFLOW_CONN_LOG"], "db": json.dumps(other)})

    application = submitter.submit(shop.open(), "snapshot", "snapshot")

    assert application.process.wait(120) == 64
    assert (
        ": db: leads to another server here than where the window was started. Write the same host"
        in application.output
    )
