"""Set the environment in which the service finds the systems of a test."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from makewhole.stack.environment import connection_kafka, connection_postgres
from tests.world.world import World


def service_environment(world: World, folder: Path, *, kafka: str = "log", postgres: str = "db") -> Mapping[str, str]:
    """Return the variables: journal, storage, pipeline files (both in `folder`), and the connections by their ids."""
    return {
        "MAKEWHOLE_JOURNAL_DSN": world.journal,
        "MAKEWHOLE_STORAGE": str(folder / "storage"),
        "MAKEWHOLE_PIPELINES": str(folder / "pipelines"),
        f"AIRFLOW_CONN_{kafka.upper()}": connection_kafka(world.bootstrap),
        f"AIRFLOW_CONN_{postgres.upper()}": connection_postgres(world.dsn),
    }


def enter(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    """Set the variables for this process, and make the folder of the pipeline files."""
    Path(variables["MAKEWHOLE_PIPELINES"]).mkdir()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
