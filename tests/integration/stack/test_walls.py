"""Walk into everything that an Airflow lacks where makewhole was just installed: each wall is named, with the line to
write, in one list that comes before the first window, and nothing is tried again by itself."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.postgres_server import ExistingPostgres, PostgresServer, create_database
from tests.integration.stack.deployment import BUNDLES, Deployment, Page
from tests.world.unconfigured import ORDERS_FILE

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(3600)]

PASSWORD = "a password of this test"
FIRST_READING_SECONDS = 61.0
RUN = "makewhole run orders 2>&1"


@pytest.fixture
def deployment(fresh_install: Deployment, tmp_path: Path, postgres: PostgresServer | ExistingPostgres) -> Deployment:
    """An Airflow that is configured for itself, and has nothing of makewhole but the wheel. The person beside it knows
    a journal and the pipeline's file."""
    journal, pipelines = create_database(postgres.dsn, "walls_journal"), tmp_path / "pipelines"
    pipelines.mkdir()
    (pipelines / "orders.yaml").write_text(ORDERS_FILE)
    known = f"MAKEWHOLE_JOURNAL_DSN={journal} MAKEWHOLE_PIPELINES={pipelines}"
    made = Deployment(folder=tmp_path, venv=fresh_install.venv, places={"makewhole ": f"{known} makewhole "})
    made.use_airflow(create_database(postgres.dsn, "walls_airflow"), PASSWORD)
    made.run("airflow db migrate")
    made.run("makewhole migrate")
    return made


def first_task(deployment: Deployment) -> tuple[int, str]:
    """Return how often the first task of the newest run was tried, and the error in its log."""
    with httpx.Client(base_url=deployment.variables["MAKEWHOLE_AIRFLOW_URL"], trust_env=False, timeout=30) as client:
        login = {"username": "admin", "password": PASSWORD}
        token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"

        def get(path: str, **query: str | int) -> Any:
            return client.get(f"/api/v2/dags/makewhole_oncall/dagRuns{path}", params=query).raise_for_status().json()

        [run] = get("", order_by="-run_after", limit=1)["dag_runs"]
        task = f"/{run['dag_run_id']}/taskInstances/open_window"
        left = get(task)
        lines = get(f"{task}/logs/{left['try_number']}")["content"]
    assert left["state"] == "failed"
    return left["try_number"], json.dumps([line.get("error_detail") for line in lines], ensure_ascii=False)


def require_each(names: tuple[str, ...], deployment: Deployment) -> None:
    """Run into a list of walls: the first task names each, once, and the person hears of it where they asked."""
    shown = deployment.run(RUN, expected=2)
    tries, listed = first_task(deployment)
    assert [name for name in names if name not in listed] == [], listed
    assert f"opened no window:\n{len(names)} things to mend before a window can be judged: " in shown
    assert tries == 1


def test_each_wall_is_named_in_one_list_and_none_is_tried_again(
    deployment: Deployment, page: Page, kafka: KafkaServer, postgres: PostgresServer | ExistingPostgres
) -> None:
    with deployment.airflow():
        time.sleep(FIRST_READING_SECONDS)
        assert "has none of makewhole" in (shown := deployment.run(RUN, expected=2)), shown
    assert page.settings[BUNDLES] in shown

    deployment.variables |= {BUNDLES: page.settings[BUNDLES].join("[]")}
    with deployment.airflow():
        assert "has no pipeline orders; it has none. Put the pipeline file" in deployment.run(RUN, expected=2)

    deployment.variables |= {"AIRFLOW__MAKEWHOLE__PIPELINES": str(deployment.folder / "pipelines")}
    with deployment.airflow():
        settings = ("MAKEWHOLE_JOURNAL_DSN", "MAKEWHOLE_STORAGE", "MAKEWHOLE_SIGNING_KEY")
        require_each((*settings, "spark_default", "connection kafka_main", "connection shop"), deployment)

        extra = json.dumps({"bootstrap.servers": kafka.bootstrap})
        for command in (
            f"makewhole_journal --conn-uri {create_database(postgres.dsn, 'walls_empty')}",
            f"kafka_main --conn-type generic --conn-extra '{extra}'",
            "spark_default --conn-type spark --conn-host yarn",
            f"shop --conn-uri {create_database(postgres.dsn, 'walls_shop')}",
        ):
            deployment.run(f"airflow connections add {command}")
        walls = (
            "has no schema",
            *settings[1:],
            "names the master yarn",
            "AIRFLOW_CONN_KAFKA_MAIN",
            "points.outbox.table",
        )
        require_each(walls, deployment)
