"""Test that everything which stands in the way of a window is named at once, with what to write, on real servers."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.model.errors import ConfigurationError, TransientError
from makewhole.orchestration.readiness import require_ready
from makewhole.stack.environment import connection_kafka, connection_postgres
from makewhole.stack.ports import free_ports
from makewhole.window.certifying.certificate_chain import anchor_path
from makewhole.window.readiness import points as points_module
from tests.world.databases import Databases
from tests.world.environment import set_connection, take_connection
from tests.world.orders import orders
from tests.world.pipeline_file import store
from tests.world.sql import run_sql
from tests.world.topics import commit_group
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

SPARK = {"conn_type": "spark", "host": "local[1]", "extra": {"deploy-mode": "client"}}
ROLE = "mw_narrow"


@pytest.fixture(autouse=True)
def spark_of_airflow(monkeypatch: pytest.MonkeyPatch, shop: ReconciledShop) -> None:
    """Have Spark and its connection in the environment, and an Airflow that does not answer."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    set_connection(monkeypatch, "spark_default", json.dumps(SPARK))
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_URL", f"http://127.0.0.1:{free_ports(1)[0]}")


def checked(shop: ReconciledShop, *options: str) -> tuple[int, dict[str, Any]]:
    shop.file.write_text(shop.file.read_text().replace("{limits: ", "{approval: {by: anna}, limits: "))
    result = CliRunner().invoke(app, ["check", "--live", "--json", *options, str(shop.file)], catch_exceptions=False)
    return result.exit_code, json.loads(result.stdout)


def places(problems: list[dict[str, str]]) -> set[str]:
    return {problem["path"] for problem in problems}


def test_a_pipeline_with_all_that_it_needs_is_ready(shop: ReconciledShop) -> None:
    commit_group(shop.bootstrap, "loader", shop.topic, 0)
    shop.describe(hop={"consumer_group": "loader"})

    require_ready(shop.pipeline)

    _, document = checked(shop)
    assert places(document["problems"]) == {"MAKEWHOLE_AIRFLOW_URL"}  # it is not there in this test
    assert document["advice"] == []
    assert {"journal", "storage", "signing key", f"topic {shop.topic}", "tables of db", "group loader"} <= {
        *document["asked"]
    }
    assert list((shop.folder / "storage").rglob("*")) == []


def test_every_mistake_is_named_at_once_with_what_to_write(
    shop: ReconciledShop, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(more_points={"warehouse": store("db", "warehouse", key="number_of_order")})
    text = shop.file.read_text().replace("connection: log", "connection: elsewhere", 1)
    text = text.replace("outbox: {kind: ledger, connection: db", "outbox: {kind: ledger, connection: nowhere")
    shop.file.write_text(text.replace("connection: elsewhere", "connection: log").replace(shop.topic, "no-such-topic"))
    file = shop.folder / "a_file"
    file.write_text("")
    monkeypatch.setenv("MAKEWHOLE_STORAGE", str(file))
    monkeypatch.setenv("MAKEWHOLE_SIGNING_KEY", "no key")
    set_connection(monkeypatch, "spark_default", json.dumps(SPARK | {"extra": {"deploy-mode": "cluster"}}))
    with databases.of_a_test("empty") as unmigrated:
        monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", unmigrated)

        with pytest.raises(ConfigurationError) as caught:
            require_ready(shop.pipeline)
        code, document = checked(shop)

    named = {problem.path for problem in caught.value.problems}
    assert named == {
        "schema",
        "MAKEWHOLE_STORAGE",
        "MAKEWHOLE_SIGNING_KEY",
        "spark_default deploy-mode",
        "AIRFLOW_CONN_NOWHERE",
        "topic",
        "points.warehouse.number_of_order",
    }
    assert code == 2
    assert places(document["problems"]) == named - {"AIRFLOW_CONN_NOWHERE"} | {"MAKEWHOLE_AIRFLOW_URL"}
    assert "connection nowhere: not here, and Airflow, which may have it, cannot be asked" in document["not_asked"]
    assert all(problem.remedy for problem in caught.value.problems)
    *_, last = str(caught.value).splitlines()
    assert last.startswith("7 things to mend before a window can be judged: journal: schema: has no schema")
    assert "makewhole check --live" in last


def test_no_window_is_opened_with_a_journal_from_before_its_certificates(shop: ReconciledShop) -> None:
    published = shop.folder / "storage" / anchor_path("shop", 1)
    published.parent.mkdir(parents=True)
    published.write_text("{}")

    with pytest.raises(ConfigurationError) as caught:
        require_ready(shop.pipeline)
    _, document = checked(shop)

    [problem] = caught.value.problems
    assert problem.file == "certificates of shop"
    assert "the journal ends before it" in problem.found and "No window can be judged" in problem.found
    assert "certificates of shop" in {mistake["file"] for mistake in document["problems"]}


def test_what_does_not_answer_is_tried_again_and_what_is_wrong_is_not(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes ten seconds: as long as a broker is waited for."""
    [port] = free_ports(1)
    set_connection(monkeypatch, "log", connection_kafka(f"127.0.0.1:{port}"))
    with pytest.raises(TransientError, match=f"topic {shop.topic}"):
        require_ready(shop.pipeline)

    take_connection(monkeypatch, "db")
    with pytest.raises(ConfigurationError) as caught:
        require_ready(shop.pipeline)
    assert [problem.path for problem in caught.value.problems] == ["AIRFLOW_CONN_DB", "connection log"]


def test_a_database_that_does_not_answer_is_named_and_tried_again(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    [port] = free_ports(1)
    set_connection(monkeypatch, "db", connection_postgres(f"postgresql://loader:x@127.0.0.1:{port}/shop"))
    away = "the PostgreSQL of connection db does not answer; check that it runs and that the connection names it"

    with pytest.raises(TransientError) as caught:
        require_ready(shop.pipeline)
    assert str(caught.value) == f"tables of db: {away}"

    tables = CliRunner().invoke(app, ["check", "--tables", "--json", str(shop.file)], catch_exceptions=False)
    assert tables.exit_code == 2
    for document in (json.loads(tables.stdout), checked(shop)[1]):
        assert [problem["found"] for problem in document["away"] if problem["path"] == "connection db"] == [away]


@pytest.fixture
def narrow(shop: ReconciledShop) -> Iterator[str]:
    """A user of the shop's database who may do nothing yet; the URI to connect as it."""
    run_sql(shop.dsn, f"create role {ROLE} login password 'x'")
    parts = urlsplit(shop.dsn)
    yield urlunsplit(parts._replace(netloc=f"{ROLE}:x@{parts.netloc.rpartition('@')[2]}"))
    run_sql(shop.dsn, f"drop owned by {ROLE}; drop role {ROLE}")


def test_rights_to_read_stop_a_window_and_rights_to_repair_do_not(
    shop: ReconciledShop, narrow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_connection(monkeypatch, "db", connection_postgres(narrow))

    with pytest.raises(ConfigurationError) as caught:
        require_ready(shop.pipeline)
    assert {problem.found for problem in caught.value.problems} >= {
        "the user of connection db may not read outbox",
        "the user of connection db may not read warehouse",
    }

    shop.sql(f"grant select on outbox, warehouse to {ROLE}")
    require_ready(shop.pipeline)
    code, document = checked(shop)
    assert code == 2
    wrong = [problem for problem in document["problems"] if problem["path"] == "points.warehouse.table"]
    assert wrong[0]["remedy"].startswith(f'Run as its owner: grant delete on "public"."warehouse" to {ROLE}')
    assert "store_schema.sql" in wrong[1]["remedy"]

    shop.sql(f"grant delete on warehouse to {ROLE}")
    shop.sql(f"grant create on database {urlsplit(shop.dsn).path[1:]} to {ROLE}")
    assert places(checked(shop)[1]["problems"]) == {"MAKEWHOLE_AIRFLOW_URL"}


def test_rights_of_the_service_at_its_journal_are_asked_for(
    shop: ReconciledShop, narrow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql(shop.journal, f"grant usage on schema makewhole to {ROLE}")
    run_sql(shop.journal, f"grant select on all tables in schema makewhole to {ROLE}")
    parts = urlsplit(narrow)
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", urlunsplit(parts._replace(path=urlsplit(shop.journal).path)))
    try:
        with pytest.raises(ConfigurationError, match=f"user {ROLE} has no right to insert on makewhole") as caught:
            require_ready(shop.pipeline)
        assert f"psql -v role={ROLE} -f sql/grants/journal_application.sql" in str(caught.value)
    finally:
        run_sql(shop.journal, f"drop owned by {ROLE}")


def test_a_group_without_offsets_and_a_large_table_without_an_index_are_advice(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(points_module, "BYTES_WITHOUT_INDEX", 0)
    shop.write("warehouse", orders(range(3)))
    shop.describe(hop={"consumer_group": "laoder"})

    require_ready(shop.pipeline)

    advice = checked(shop)[1]["advice"]
    assert {problem["remedy"].partition(" (")[0] for problem in advice} == {
        "create index concurrently on warehouse",
        "Correct its name; where it has not begun, or keeps its offsets elsewhere, nothing has to be done",
    }
    shop.sql("create index on warehouse (at); create index on warehouse (id)")
    assert places(checked(shop)[1]["advice"]) == {"hops orders→warehouse.consumer_group"}


def test_the_tables_alone_are_asked_where_that_is_wanted(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> None:
    take_connection(monkeypatch, "log")
    result = CliRunner().invoke(app, ["check", "--tables", "--json", str(shop.file)], catch_exceptions=False)
    assert (result.exit_code, json.loads(result.stdout)["problems"]) == (0, [])
