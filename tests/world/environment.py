"""Set the environment in which the service finds the systems of a test."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from makewhole.config.connection_text import FILE_VARIABLE, variable_of
from makewhole.signing.key_files import KEY_VARIABLE
from makewhole.stack.environment import connection_kafka, connection_postgres
from tests.world.world import World

SIGNING_KEY = "bWFrZXdob2xlLWluLXRlc3RzLW9ubHktMzItYnl0ZXM="
"""A private key that only tests believe."""


def service_environment(world: World, folder: Path, *, kafka: str = "log", postgres: str = "db") -> Mapping[str, str]:
    """Return the variables: journal, signing key, storage and pipeline files (both in `folder`), connections by id."""
    return {
        "MAKEWHOLE_JOURNAL_DSN": world.journal,
        "MAKEWHOLE_DEPLOYMENT": "tests",
        "MAKEWHOLE_STORAGE": str(folder / "storage"),
        KEY_VARIABLE: SIGNING_KEY,
        "MAKEWHOLE_PIPELINES": str(folder / "pipelines"),
        f"AIRFLOW_CONN_{kafka.upper()}": connection_kafka(world.bootstrap),
        f"AIRFLOW_CONN_{postgres.upper()}": connection_postgres(world.dsn),
    }


def enter(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    """Set the variables for this process, and make the folder of the pipeline files."""
    Path(variables["MAKEWHOLE_PIPELINES"]).mkdir()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    _share_connections()


def set_connection(monkeypatch: pytest.MonkeyPatch, connection_id: str, described: str) -> None:
    """Change a connection, for this process and for Spark's workers."""
    monkeypatch.setenv(variable_of(connection_id), described)
    _share_connections()


def take_connection(monkeypatch: pytest.MonkeyPatch, connection_id: str) -> None:
    """Have no connection of this name, neither in this process nor in the file that Spark's workers read."""
    monkeypatch.delenv(variable_of(connection_id), raising=False)
    _share_connections()


def _share_connections() -> None:
    """Write all connections into the file that Spark's workers read: their environment is as old as the session."""
    file, prefix = os.environ.get(FILE_VARIABLE), variable_of("")
    if file:
        known = {
            name.removeprefix(prefix).lower(): text for name, text in os.environ.items() if name.startswith(prefix)
        }
        Path(file).write_text(json.dumps(known))
