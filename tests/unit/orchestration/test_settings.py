"""Test what processes of Airflow take from its configuration and its connections."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from makewhole.cli import environment as cli_environment
from makewhole.journal.deployment.address import journal_dsn
from makewhole.orchestration.deployment.settings import configured_folders, export_options, export_settings
from makewhole.orchestration.provider import OPTIONS, provider_info

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*(option.variable for option in OPTIONS.values()), "MAKEWHOLE_JOURNAL_DSN"):
        monkeypatch.setenv(name, "")
    monkeypatch.delenv("AIRFLOW_CONN_MAKEWHOLE_JOURNAL", raising=False)


def test_options_of_airflow_s_configuration_count_where_no_variable_is_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW__MAKEWHOLE__PIPELINES", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__MAKEWHOLE__STORAGE", "s3://there")
    monkeypatch.setenv("MAKEWHOLE_STORAGE", "s3://here")

    export_options()

    assert (os.environ["MAKEWHOLE_PIPELINES"], os.environ["MAKEWHOLE_STORAGE"]) == (str(tmp_path), "s3://here")
    assert configured_folders()[-1] == tmp_path


def test_airflow_knows_every_option_with_its_default() -> None:
    section = provider_info()["config"]["makewhole"]["options"]

    assert section.keys() == OPTIONS.keys()
    assert section["journal_conn_id"]["default"] == "makewhole_journal"
    for name, option in section.items():
        assert OPTIONS[name].variable in option["description"]


def test_the_journal_is_where_airflow_s_connection_says(monkeypatch: pytest.MonkeyPatch) -> None:
    known = SimpleNamespace(
        conn_type="postgres", host="db", port=5432, login="me", password="secret", schema="journal", extra_dejson={}
    )
    monkeypatch.setattr(BaseHook, "get_connection", lambda name: {"audit_db": known}[name])
    monkeypatch.setenv("AIRFLOW__MAKEWHOLE__JOURNAL_CONN_ID", "audit_db")
    monkeypatch.delenv("AIRFLOW_CONN_AUDIT_DB", raising=False)

    export_settings({})

    assert journal_dsn() == "postgresql://me:secret@db:5432/journal"
    del os.environ["AIRFLOW_CONN_AUDIT_DB"]


def test_airflow_is_not_asked_for_a_connection_where_a_uri_says_where_the_journal_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://x@here/y")
    monkeypatch.setattr(BaseHook, "get_connection", lambda name: pytest.fail(name))

    export_settings({})


def test_a_connection_that_airflow_does_not_have_is_left_to_the_step_that_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise AirflowNotFoundException(name)

    monkeypatch.setattr(BaseHook, "get_connection", missing)

    export_settings({})

    assert "AIRFLOW_CONN_MAKEWHOLE_JOURNAL" not in os.environ


def test_commands_beside_an_airflow_take_its_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MAKEWHOLE_JOURNAL", "postgresql://x@here/y")
    monkeypatch.setenv("AIRFLOW__MAKEWHOLE__STORAGE", str(tmp_path))

    cli_environment.chosen_service()

    assert os.environ["MAKEWHOLE_STORAGE"] == str(tmp_path)
