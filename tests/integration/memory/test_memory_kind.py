"""Test that a kind of table is found by its registration alone, and refused what it cannot do."""

import json
import pickle
from collections.abc import Mapping

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.config.connections import from_airflow_fields, from_environment
from makewhole.model.errors import ConfigurationError
from makewhole.window.context import connections_of
from makewhole.window.opening.table_columns import read_columns
from makewhole.window.spark_steps.sent_connections import server_digests
from tests.integration.memory.memory_shop import ORDERS, MemoryShop
from tests.memory.connection import MemoryConnection
from tests.memory.server import MemoryServer
from tests.world.environment import set_connection
from tests.world.pipeline_file import Settings, flow, store

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

IN_MEMORY = {"conn_type": "memory", "host": "127.0.0.1", "port": 5, "password": "secret", "schema": "shop"}
SINK = {"table": "sink_offsets", "partition": "part", "offset": "next_offset"}
LEDGER = {
    "path": "points.outbox.kind",
    "found": "outbox (point outbox) is a table of memory, which cannot be a ledger",
    "remedy": "Begin with another point, or name a table of PostgreSQL",
}
PROGRESS = {
    "path": "hops orders→warehouse.progress",
    "found": "warehouse (point warehouse) is a table of memory, which cannot keep a sink's progress",
    "remedy": "Name the consumer group of the hop instead",
}
ERASED = {
    "path": "points.warehouse.erased",
    "found": "warehouse (point warehouse) is a table of memory, which cannot name erased keys",
    "remedy": "Name the topics whose tombstones say it, or take `erased` out",
}


def checked(shop: MemoryShop) -> tuple[int, list[Mapping[str, str]]]:
    """Return the exit code of `makewhole check --tables`, and what it says of the pipeline file."""
    result = CliRunner().invoke(app, ["check", "--tables", "--json", str(shop.file)], catch_exceptions=False)
    problems = json.loads(result.stdout)["problems"]
    assert {problem.pop("file") for problem in problems} <= {"pipeline file"}
    return result.exit_code, problems


def test_check_takes_a_pipeline_into_a_table_in_memory(shop: MemoryShop) -> None:
    shop.describe(has_ledger=False)
    assert checked(shop) == (0, [])
    shop.describe(has_ledger=False, more_points={"warehouse": store("db", "elsewhere")})
    assert checked(shop) == (
        2,
        [{"path": "points.warehouse.table", "found": "table elsewhere does not exist", "remedy": "Correct its name"}],
    )


@pytest.mark.parametrize(
    ("has_ledger", "hop", "erased", "refused"),
    [
        (True, {}, {}, [LEDGER]),
        (False, {"progress": flow(SINK)}, {}, [PROGRESS]),
        (False, {}, {"erased": "{column: gone_at}"}, [ERASED]),
        (True, {"progress": flow(SINK)}, {"erased": "{column: gone_at}"}, [LEDGER, ERASED, PROGRESS]),
    ],
    ids=["a ledger", "progress", "erased keys", "all of them"],
)
def test_what_the_kind_cannot_do_is_refused_by_check_and_when_a_window_is_opened(
    shop: MemoryShop, *, has_ledger: bool, hop: Settings, erased: Settings, refused: list[Mapping[str, str]]
) -> None:
    shop.make_table("outbox")
    shop.make_table(types={**ORDERS, "gone_at": "timestamp with time zone"})
    points = {"warehouse": store("db", "warehouse", **erased)}
    shop.describe(has_ledger=has_ledger, hop=hop, more_points=points)

    assert checked(shop) == (2, refused)
    with pytest.raises(ConfigurationError) as refusal:
        shop.ask()
    assert [problem.found for problem in refusal.value.problems] == [problem["found"] for problem in refused]


def test_without_its_registration_the_kind_is_not_known() -> None:
    with pytest.raises(ConfigurationError, match="has a conn_type that makewhole does not read"):
        from_airflow_fields("db", **IN_MEMORY)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"host": None}, "has no host"),
        ({"password": None, "schema": None}, "has no password and no schema"),
        ({"port": "five"}, "has a port that is no number"),
        ({"extra": {"mode": "fast"}}, "has an extra, which is not used"),
    ],
)
def test_a_connection_that_cannot_be_understood_is_a_problem_at_its_place(
    installed: None, change: Mapping[str, object], message: str
) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        from_airflow_fields("db", **{**IN_MEMORY, **change})  # type: ignore[arg-type]
    (problem,) = refusal.value.problems
    assert (problem.file, problem.path, problem.found) == ("Airflow connection", "db", message)
    assert problem.remedy == "Write it as the kind memory asks for"
    assert "secret" not in str(problem)


def test_a_connection_keeps_its_secret_and_does_not_travel(shop: MemoryShop) -> None:
    connection = from_environment("db")
    assert isinstance(connection, MemoryConnection)
    assert connection.authkey not in repr(connection)
    with pytest.raises(TypeError, match="the connection db holds secrets and does not travel; send its id instead"):
        pickle.dumps(connection)


def test_what_is_sent_in_its_place_names_server_and_database(
    shop: MemoryShop, memory: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = server_digests({"db": from_environment("db")})
    assert server_digests({"db": from_environment("db")}) == sent
    set_connection(monkeypatch, "db", memory.described(f"{shop.database}_2"))
    assert server_digests({"db": from_environment("db")}) != sent


def test_a_table_in_memory_is_no_place_of_postgresql(shop: MemoryShop) -> None:
    shop.make_table("archive")
    archive = {"archive": store("db", "archive"), "copy": store("db", "archive")}
    hops = [{"from": "orders", "to": name} for name in archive]
    shop.describe(has_ledger=False, more_points=archive, more_hops=hops, is_observing=True)
    columns = read_columns(shop.pipeline, connections_of(shop.pipeline))
    places = columns.places
    assert {place.partition(":")[0] for place in places.values()} == {"memory"}
    assert places["archive"] == places["copy"] != places["warehouse"]
    assert columns.sharing == ()
