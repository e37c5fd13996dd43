"""Test that the containers and the local stack give the service the same variables."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from makewhole.stack.environment import environment
from makewhole.stack.settings import load_or_create, project_root

pytestmark = pytest.mark.unit

# These say where this machine's Python and Spark are; in the image they are where the image puts them.
_OF_THE_MACHINE = {
    "PATH",
    "PYSPARK_PYTHON",
    "PYSPARK_DRIVER_PYTHON",
    "SPARK_HOME",
    "SPARK_LOCAL_IP",
    "JDK_JAVA_OPTIONS",
    "SPARK_LAUNCHER_OPTS",
}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((project_root() / "docker-compose.yml").read_text())
    return loaded


def test_the_containers_have_the_variables_of_the_local_stack(compose: dict[str, Any], tmp_path: Path) -> None:
    load_or_create(tmp_path)

    assert set(compose["x-service"]["environment"]) == set(environment(tmp_path)) - _OF_THE_MACHINE


def test_the_containers_have_the_settings_of_the_local_stack(compose: dict[str, Any], tmp_path: Path) -> None:
    load_or_create(tmp_path)
    native = environment(tmp_path)
    contained = compose["x-service"]["environment"]

    alike = {name for name in contained if name.startswith(("AIRFLOW__SCHEDULER__", "AIRFLOW__DAG_PROCESSOR__"))}
    alike |= {"AIRFLOW__CORE__EXECUTOR", "AIRFLOW__CORE__PARALLELISM", "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"}
    assert {name: contained[name] for name in alike} == {name: native[name] for name in alike}


def test_every_component_of_the_service_has_the_same_environment(compose: dict[str, Any]) -> None:
    shared = compose["x-service"]["environment"]
    components = ("migration", "api-server", "scheduler", "dag-processor", "triggerer", "spark-master", "spark-worker")

    assert all(shared.items() <= compose["services"][name]["environment"].items() for name in components)
