"""Walk through docs/deploy.md literally: the wheel by plain pip beside an Airflow, a Kafka and a PostgreSQL, to the
first verdict, and on to the certificate."""

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extras import execute_values

from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.postgres_server import ExistingPostgres, PostgresServer, create_database
from tests.integration.stack.deployment import BUNDLES, Deployment, Page
from tests.world.sql import run_sql
from tests.world.topics import admin_client, make_topic, producer
from tests.world.unconfigured import ORDERS_FILE

pytestmark = [pytest.mark.integration, pytest.mark.extended]

ORDERS, LOST = 1_000, 417
UNCONFIGURED = (
    "AIRFLOW_CONN_KAFKA_MAIN",
    "AIRFLOW_CONN_SHOP",
    "MAKEWHOLE_AIRFLOW_URL",
    "MAKEWHOLE_JOURNAL_DSN",
    "MAKEWHOLE_STORAGE",
    "MAKEWHOLE_SIGNING_KEY",
)


def fill(dsn: str, bootstrap: str) -> None:
    """A thousand orders of half an hour ago in a ledger, a topic and a store, which lacks one."""
    at = datetime.now(UTC) - timedelta(minutes=30)
    rows = [(f"o-{number}", number / 100, at) for number in range(ORDERS)]
    columns = "(order_id text primary key, amount numeric(12,2) not null,"
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(f"create table outbox {columns} created_at timestamptz not null)")
        cursor.execute(f"create table warehouse {columns} loaded_at timestamptz not null)")
        execute_values(cursor, "insert into outbox values %s", rows)
        execute_values(cursor, "insert into warehouse values %s", rows[:LOST] + rows[LOST + 1 :])
    make_topic(admin_client(bootstrap), "orders", partitions=2)
    sender = producer(bootstrap)
    for key, amount, _ in rows:
        value = json.dumps({"order_id": key, "amount": f"{amount:.2f}"})
        sender.produce("orders", value, key, timestamp=int(at.timestamp() * 1000))
    assert sender.flush(60) == 0


def seconds_of(deployment: Deployment) -> float:
    """Return how long the page's lines took so far: without the Airflow that is given, and what was asked before it."""
    given = ("pip install apache-airflow", "airflow db migrate", "makewhole check --live draft.yaml")
    return sum(taken for line, taken in deployment.seconds.items() if not line.startswith(given))


@pytest.mark.timeout(3600)
def test_the_page_leads_to_a_verdict_and_to_a_certificate(
    fresh_install: Deployment,
    page: Page,
    tmp_path: Path,
    postgres: PostgresServer | ExistingPostgres,
    kafka: KafkaServer,
) -> None:
    airflow, journal, shop = (
        create_database(postgres.dsn, f"deploy_{name}") for name in ("airflow", "journal", "shop")
    )
    fill(shop, kafka.bootstrap)
    pipelines = tmp_path / "pipelines"
    places = {
        "broker:9092": kafka.bootstrap,
        "postgres://user:password@host:5432/shop": shop,
        "postgres://makewhole:password@host:5432/journal": journal,
        "/etc/makewhole/pipelines": str(pipelines),
    }
    deployment = Deployment(folder=tmp_path, venv=fresh_install.venv, places=places)
    _, connect, use = page.blocks
    pipelines.mkdir()
    draft = tmp_path / "draft.yaml"
    draft.write_text(ORDERS_FILE)
    listed = deployment.run(f"makewhole check --live {draft.name}", expected=2)
    assert [name for name in UNCONFIGURED if name not in listed] == []

    deployment.use_airflow(airflow, "a password of this test")
    deployment.run("airflow db migrate")
    keys = tmp_path / "keys"
    deployment.run(f"makewhole certificate keygen {keys}")
    [private] = [file for file in keys.iterdir() if "PRIVATE" in file.read_text()]
    deployment.variables |= {
        BUNDLES: page.settings[BUNDLES].join("[]"),
        "AIRFLOW__MAKEWHOLE__PIPELINES": str(pipelines),
        "AIRFLOW__MAKEWHOLE__STORAGE": str(tmp_path / "storage"),
        "MAKEWHOLE_SIGNING_KEY": f"file:{private}",
        "AIRFLOW_CONN_MAKEWHOLE_JOURNAL": journal,
        "AIRFLOW_CONN_SHOP": shop,
        "AIRFLOW_CONN_KAFKA_MAIN": json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap}}),
    }
    (tmp_path / "connections.json").write_text(deployment.here(page.connections))
    with deployment.airflow():
        *before, run = use
        for command in (*connect, *before):
            deployment.run(command)
        deployment.run(run, expected=1)
        to_verdict = seconds_of(fresh_install) + seconds_of(deployment)
        assert json.loads(deployment.run("makewhole findings orders --json"))["key"] == f"o-{LOST}"

        file = pipelines / "orders.yaml"
        drafted, _, remedies = file.read_text().partition("# compensation:")
        assert "#   missing: redeliver" in remedies
        file.write_text(f"{drafted}compensation: {{missing: upsert, approval: {{by: [admin]}}}}\n")
        deployment.run("makewhole run orders --window 1")

        run_sql(journal, "update makewhole.pipeline_owner set deployment = 'another one'")
        refused = deployment.run("makewhole run orders --window 1 2>&1", expected=2)
        assert "is judged by another Airflow since" in refused
        deployment.run("makewhole pipelines --release orders")
        deployment.run("makewhole run orders --window 1")
        [(owner,)] = run_sql(journal, "select deployment from makewhole.pipeline_owner")
        assert owner == deployment.run("airflow variables get makewhole_deployment").split()[-1]
    seconds = fresh_install.seconds | deployment.seconds
    print(*(f"{taken:8.1f} s  {command}" for command, taken in seconds.items()), sep="\n")
    print(f"{to_verdict:8.1f} s  from pip to the first verdict")
