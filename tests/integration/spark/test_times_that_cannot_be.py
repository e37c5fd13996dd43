"""Test that times which cannot be are counted and said, and never decide from when on a log has its records."""

import json
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import IncidentKind
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import BORN, DAY, Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

PRODUCE = {"compensation": "{missing: produce}"}
OLDER = ("undecidable", "older_than_log")
IN_SECONDS = int((BORN + DAY).timestamp())
"""A time in seconds since 1970, where Kafka takes it for milliseconds."""


def sentences(shop: ReconciledShop, context: WindowContext, kind: IncidentKind) -> list[str]:
    shown = CliRunner(env={"COLUMNS": "600"}).invoke(app, ["windows", "shop", "--json"])
    assert shown.exit_code == 0, shown.output
    document = json.loads(shown.output.splitlines()[-1])
    assert document["window"] == context.window.number
    return [incident["message"] for incident in document["incidents"] if incident["kind"] == kind.value]


def send_stamped(shop: ReconciledShop, made: list[Order], stamp: int) -> None:
    client = producer(shop.bootstrap)
    for order in made:
        client.produce(shop.topic, partition=0, key=order["id"], value=json.dumps(order), timestamp=stamp)
    assert client.flush(30) == 0


def written(shop: ReconciledShop, context: WindowContext) -> int:
    before = len(shop.read())
    plan_window(context)
    compensate_window(context, lambda _: None)
    return len(shop.read()) - before


def test_rows_that_no_window_will_reach_are_counted_and_said(shop: ReconciledShop) -> None:
    shop.describe()
    made = orders(range(6))
    shop.trade(made)
    never = [order | {"at": at} for order, at in zip(orders(range(10, 12)), ("9999-12-31", "2099-01-01"), strict=True)]
    shop.write("outbox", never)
    context, closed = shop.whole_way()
    assert closed.state is WindowState.CERTIFIED
    sentence = (
        "there are 2 rows of outbox (outbox) with times that no window reaches, from 2099-01-01 00:00:00+00 to "
        "9999-12-31 00:00:00+00 in at, in no count of any window"
    )
    assert sentences(shop, context, IncidentKind.TIMES_AHEAD) == [sentence]
    shown = CliRunner(env={"COLUMNS": "600"}).invoke(app, ["windows", "shop"]).output
    assert sentence in shown
    limit = "2 rows of outbox with times that no window reaches, from 2099-01-01 00:00:00+00 to 9999-12-31 00:00:00+00"
    assert limit in shown
    assert closed.certificate is not None
    limits = {reason["limit"]: reason["message"] for reason in closed.certificate.body["reach"]["cannot_exclude"]}
    assert limits["times_ahead"] == limit
    explained = CliRunner(env={"COLUMNS": "600"}).invoke(app, ["explain", "shop", "O11"]).output
    assert "no window reaches its time" in explained


def test_a_row_of_infinity_is_judged_and_said_and_one_of_tomorrow_is_neither(shop: ReconciledShop) -> None:
    shop.describe(ledger_hop=PRODUCE)
    made = orders(range(4))
    shop.trade(made)
    shop.sql("insert into outbox select 'INF', 1, 'EU', 1.5, 'infinity'")
    shop.sql("insert into outbox select 'SOON', 1, 'EU', 1.5, now() + interval '20 hours'")
    context, _ = shop.whole_way()
    assert shop.found(context, LEDGER_HOP) == {"INF": ("missing", "never_produced")}
    assert sentences(shop, context, IncidentKind.TIMES_AHEAD) == [
        "there is 1 row of outbox (outbox) with the time infinity in at, judged like rows without a time"
    ]


@pytest.mark.parametrize("start", [None, "earliest"])
def test_a_log_without_its_beginning_and_with_stamps_in_seconds_asks_for_a_start(
    shop: ReconciledShop, start: str | None
) -> None:
    """By their stamps its records reach back to 1970, and everything before them was sent again."""
    shop.describe(start=start, ledger_hop=PRODUCE)
    old, new = orders(range(20)), orders(range(100, 110))
    shop.write("outbox", [*old, *new])
    send_stamped(shop, [*old, *new], IN_SECONDS)
    shop.write("warehouse", [*old, *new])
    shop.delete_records({0: 20})
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP) == {order["id"]: OLDER for order in old}
    assert shop.found(context, STORE_HOP) == {order["id"]: OLDER for order in old}
    assert written(shop, context) == 0
    closed = shop.certify(context)
    assert closed.state is WindowState.NOT_KNOWN
    assert "has a timestamp that cannot be" in (closed.reason or "")
    assert "Write `start:` into the pipeline's file" in (closed.reason or "")
    with connect(shop.journal) as journal:
        kinds = {incident.kind for incident in incidents.of(journal, context.window)}
    assert kinds == {IncidentKind.BEGINNING_GONE, IncidentKind.BASELINE_UNKNOWN}

    shop.describe(start=(BORN + timedelta(hours=1)).isoformat(), ledger_hop=PRODUCE)
    again, closed = shop.whole_way()
    assert [shop.counts(again, hop).before_baseline for hop in (LEDGER_HOP, STORE_HOP)] == [20, 20]
    assert (shop.found(again, LEDGER_HOP), shop.found(again, STORE_HOP)) == ({}, {})


def test_a_whole_log_with_stamps_in_seconds_does_not_say_how_old_it_is(shop: ReconciledShop) -> None:
    shop.describe(start=None, ledger_hop=PRODUCE)
    made = orders(range(6))
    shop.write("outbox", made)
    send_stamped(shop, made[3:], IN_SECONDS)
    shop.write("warehouse", made[3:])
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP) == {order["id"]: OLDER for order in made[:3]}
    assert written(shop, context) == 0
    assert shop.certify(context).state is WindowState.NOT_KNOWN


def test_rows_of_a_later_window_are_judged_whatever_the_stamps_of_the_first_records_say(shop: ReconciledShop) -> None:
    shop.describe(start=None, ledger_hop=PRODUCE)
    old = orders(range(20))
    shop.write("outbox", old)
    send_stamped(shop, old, IN_SECONDS)
    shop.write("warehouse", old)
    shop.delete_records({0: 10})
    shop.judge_and_ask_the_gate()
    new = orders(range(30, 34), 1)
    shop.trade(new, unsent=new[:1])
    second = shop.judge_and_ask_the_gate(1)
    assert shop.found(second, LEDGER_HOP) == {"O30": ("missing", "never_produced")}
    assert written(shop, second) == 1
