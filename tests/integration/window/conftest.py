"""Run the command line against the journal of a test."""

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from tests.integration.window.waiting_rows import Command


@pytest.fixture
def makewhole(journal: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command against the journal of the test."""
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", journal)
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_URL", "http://airflow.example/")
    return lambda *arguments: CliRunner().invoke(app, [*arguments], env={"COLUMNS": "400"})
