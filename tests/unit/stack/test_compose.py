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


def test_every_part_that_stays_up_says_whether_it_is_healthy(compose: dict[str, Any]) -> None:
    services = compose["services"]
    unchecked = [name for name, service in services.items() if "healthcheck" not in service]
    assert unchecked == ["migration"]
    waited_for = [
        condition
        for service in services.values()
        for name, waiting in service.get("depends_on", {}).items()
        for condition in [(name, waiting["condition"])]
    ]
    assert set(waited_for) == {
        ("migration", "service_completed_successfully"),
        ("postgres", "service_healthy"),
        ("kafka", "service_healthy"),
        ("spark-master", "service_healthy"),
        ("spark-worker", "service_healthy"),
    }


def test_one_image_is_built_and_the_parts_of_the_service_take_it(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert [name for name, service in services.items() if "build" in service] == ["migration"]
    ours = {name for name, service in services.items() if service["image"] == services["migration"]["image"]}
    assert ours == set(services) - {"kafka", "postgres"}


def test_pipeline_files_come_from_the_host(compose: dict[str, Any]) -> None:
    folder = Path(compose["x-service"]["environment"]["AIRFLOW__CORE__DAGS_FOLDER"]) / "pipelines"
    assert f"${{PIPELINES_FOLDER:-./dags/pipelines}}:{folder}:ro" in compose["x-service"]["volumes"]
    assert (project_root() / "dags" / "pipelines").is_dir()


def test_the_broker_is_reached_from_the_host_by_the_name_that_it_gives(compose: dict[str, Any]) -> None:
    broker = compose["services"]["kafka"]
    advertised = dict(
        listener.split("://") for listener in broker["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    )
    listening = dict(listener.split("://") for listener in broker["environment"]["KAFKA_LISTENERS"].split(","))
    assert advertised == {"PLAINTEXT": "kafka:9092", "HOST": "localhost:29092"}
    assert listening == {"PLAINTEXT": ":9092", "HOST": ":29092", "CONTROLLER": ":9093"}
    assert broker["ports"] == ["127.0.0.1:29092:29092"]
