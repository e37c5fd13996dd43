"""Test how the journal is found: by its URI, or by a connection."""

import json
from pathlib import Path

import pytest

from makewhole.journal.deployment.address import is_configured, journal_dsn, journal_place
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit

URI = "postgresql://service:secret@db.example.org:5433/journal"
VARIABLES = (
    "MAKEWHOLE_JOURNAL_DSN",
    "MAKEWHOLE_JOURNAL_CONN_ID",
    "MAKEWHOLE_CONNECTIONS",
    "AIRFLOW_CONN_MAKEWHOLE_JOURNAL",
)


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_nothing_says_where_the_journal_is_and_the_error_says_how_to() -> None:
    assert not is_configured()
    with pytest.raises(ConfigurationError) as raised:
        journal_dsn()

    assert str(raised.value) == (
        "environment: MAKEWHOLE_JOURNAL_DSN: is not set, and there is no connection makewhole_journal. Set it to the "
        "PostgreSQL URI of the journal, or add the connection to Airflow (`airflow connections add makewhole_journal "
        "--conn-type postgres …`; here: AIRFLOW_CONN_MAKEWHOLE_JOURNAL), or start the local stack with `makewhole up`"
    )


def test_the_uri_goes_before_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://x@here/y")
    monkeypatch.setenv("AIRFLOW_CONN_MAKEWHOLE_JOURNAL", URI)

    assert (journal_dsn(), journal_place().path) == ("postgresql://x@here/y", "MAKEWHOLE_JOURNAL_DSN")


@pytest.mark.parametrize("form", ["uri", "json"])
def test_a_connection_says_where_the_journal_is(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    fields = {
        "conn_type": "postgres",
        "host": "db.example.org",
        "port": 5433,
        "login": "service",
        "password": "secret",
        "schema": "journal",
    }
    monkeypatch.setenv("AIRFLOW_CONN_MAKEWHOLE_JOURNAL", URI if form == "uri" else json.dumps(fields))

    assert is_configured()
    for part in ("db.example.org", "5433", "service", "secret", "journal"):
        assert part in journal_dsn()
    assert journal_place().path == "AIRFLOW_CONN_MAKEWHOLE_JOURNAL"


def test_the_connection_may_have_another_name_and_stand_in_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "connections.json"
    file.write_text(json.dumps({"audit_db": URI, "makewhole_journal": "postgresql://x@elsewhere/y"}))
    monkeypatch.setenv("MAKEWHOLE_CONNECTIONS", str(file))
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_CONN_ID", "audit_db")

    assert "db.example.org" in journal_dsn()
    place = journal_place()
    assert (place.file, place.path) == (str(file), "audit_db")


def test_a_connection_to_something_else_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "broker:9092"}})
    monkeypatch.setenv("AIRFLOW_CONN_MAKEWHOLE_JOURNAL", kafka)

    with pytest.raises(ConfigurationError) as raised:
        journal_dsn()

    assert str(raised.value) == (
        "environment: AIRFLOW_CONN_MAKEWHOLE_JOURNAL: is no connection to a PostgreSQL. Give it the type `postgres`"
    )
