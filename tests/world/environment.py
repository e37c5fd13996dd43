"""Set the environment in which the service finds the systems of a test."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from makewhole.signing.key_files import KEY_VARIABLE
from makewhole.stack.environment import connection_kafka, connection_postgres
from tests.world.world import World

SIGNING_KEY = "bWFrZXdob2xlLWluLXRlc3RzLW9ubHktMzItYnl0ZXM="
"""A private key that only tests believe."""


def service_environment(world: World, folder: Path, *, kafka: str = "log", postgres: str = "db") -> Mapping[str, str]:
    """Return the variables: journal, signing key, storage and pipeline files (both in `folder`), connections by id."""
    return {
        "MAKEWHOLE_JOURNAL_DSN": world.journal,
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
