"""The servers that people are reached by, and a journal of the test's own."""

import json
from collections.abc import Iterator

import pytest

from makewhole.stack.ports import LOOPBACK
from tests.world.people import TakenMail, TakenPosts, mail_server, webhook_server


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Iterator[TakenMail]:
    with mail_server() as taken:
        connection = {
            "conn_type": "smtp",
            "host": LOOPBACK,
            "port": taken.port,
            "extra": {"disable_ssl": True, "disable_tls": True},
        }
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
        yield taken


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[TakenPosts]:
    with webhook_server() as taken:
        http = {"conn_type": "http", "host": LOOPBACK, "port": taken.port}
        monkeypatch.setenv("AIRFLOW_CONN_HTTP_DEFAULT", json.dumps(http))
        slack = {"conn_type": "slackwebhook", "host": f"http://{LOOPBACK}:{taken.port}", "password": "T0/B0/secret"}
        monkeypatch.setenv("AIRFLOW_CONN_SLACK_DEFAULT", json.dumps(slack))
        yield taken


@pytest.fixture(autouse=True)
def _own_journal(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", journal)
    monkeypatch.setenv("MAKEWHOLE_DEPLOYMENT", "tests")
