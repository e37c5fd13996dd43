"""Run the command line with nothing around it: no stack, no journal, a home of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from tests.unit.cli.played_airflow import PlayedAirflow, serving

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run `makewhole …` in this process."""
    for name in ("MAKEWHOLE_JOURNAL_DSN", "MAKEWHOLE_STORAGE", "MAKEWHOLE_AIRFLOW_URL", "MAKEWHOLE_PIPELINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MAKEWHOLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("makewhole.cli.environment.require_current", lambda: None)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


@pytest.fixture
def played_airflow() -> Iterator[PlayedAirflow]:
    """An Airflow that answers as a test wants."""
    with serving() as played:
        yield played
