"""Test `makewhole doctor`: the transactions that hold keys of a pipeline in doubt, and nothing that settles them.

The tests' one broker and their PostgreSQL are too little for any claim, so that the exit code is that of findings.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from makewhole.cli.doctor import command
from makewhole.cli.main import app
from tests.world.environment import set_connection
from tests.world.orders import orders
from tests.world.prepared import PreparedTransactions, prepared_transactions
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

GID = "flow-0-[3,5)'; drop"


@pytest.fixture
def sink(shop: ReconciledShop) -> Iterator[PreparedTransactions]:
    """The sink of the shop's store, whose group has read three records of the topic."""
    shop.describe(hop={"consumer_group": shop.topic})
    made = orders(range(5))
    shop.trade(made, unloaded=made[3:])
    shop.commit_group(shop.topic, 3)
    with prepared_transactions(shop.dsn) as sink:
        yield sink


def asked(*options: str) -> Result:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(command, "_console", Console(width=130, highlight=False, soft_wrap=True, markup=False))
        return CliRunner().invoke(app, ["doctor", "shop", *options])


def document() -> dict[str, Any]:
    (line,) = asked("--json").stdout.splitlines()
    printed: dict[str, Any] = json.loads(line)
    return printed


def test_where_nothing_is_in_doubt_it_says_so(sink: PreparedTransactions) -> None:
    result = asked()
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "no transaction holds keys of shop in doubt")
    answer = document()
    assert {name: answer[name] for name in ("prepared", "open", "sinks", "problems")} == {
        "prepared": [],
        "open": [],
        "sinks": [],
        "problems": [],
    }


def test_a_prepared_transaction_is_listed_with_what_settles_it_and_is_left_alone(
    shop: ReconciledShop, sink: PreparedTransactions
) -> None:
    shop.sql("create table aside (id int)")
    sink.prepare(GID, "insert into warehouse (id) values ('O3')", "insert into aside values (1)")
    sink.prepare("of another table", "insert into aside values (2)")

    result = asked()

    assert result.exit_code == 1
    words = " ".join(result.stdout.split())
    assert "1 prepared transaction, neither committed nor rolled back:" in words
    assert f"warehouse {GID} postgres 20" in words
    assert "public.aside, public.warehouse" in words
    assert f"group {shop.topic} of orders→warehouse reads next {shop.topic}/0: 3" in words
    assert "To settle: stop the sink, and settle each by the range of offsets that it holds" in words
    assert words.endswith("Nothing was settled: makewhole only reports transactions.")
    printed = document()
    (prepared,) = printed["prepared"]
    assert (prepared["point"], prepared["gid"], prepared["owner"]) == ("warehouse", GID, "postgres")
    assert prepared["tables"] == ["public.aside", "public.warehouse"]
    assert 0 <= prepared["age_seconds"] < 300
    assert printed["sinks"][0] | {"reader": ""} == {
        "hop": "orders→warehouse",
        "from": "orders",
        "to": "warehouse",
        "reader": "",
        "topic": shop.topic,
        "reads_next": {"0": 3},
    }
    assert shop.sql("select count(*) from pg_prepared_xacts where database = current_database()") == [(2,)]


def test_an_open_transaction_is_listed_until_it_ends(shop: ReconciledShop, sink: PreparedTransactions) -> None:
    producer = shop.begin_transaction(orders([7]), seconds=90)

    (waiting,) = document()["open"]

    assert (waiting["topic"], waiting["first_offset"], waiting["timeout_seconds"]) == (shop.topic, 5, 90)
    assert waiting["transactional_id"].startswith("tx-")
    assert (waiting["is_hanging"], waiting["settled_by"]) == (
        False,
        "wait: its producer ends it, or the coordinator when it times out (1 min 30 s)",
    )
    result = asked()
    assert result.exit_code == 1
    assert "\n1 open transaction, what lies in and behind each is in flight:\n" in result.stdout
    shop.end_transaction(producer, is_committed=True)
    assert document()["open"] == []


def test_a_system_that_is_away_does_not_hide_the_others(
    shop: ReconciledShop, sink: PreparedTransactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = shop.begin_transaction(orders([7]))
    away = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "login": "x", "schema": "x"}
    set_connection(monkeypatch, "db", json.dumps(away))

    result = asked()

    assert result.exit_code == 4
    assert "1 open transaction" in result.stdout
    for point in ("outbox", "warehouse"):
        assert f"not asked: {point}: the PostgreSQL of connection db does not answer" in result.stdout
    shop.end_transaction(producer, is_committed=False)
