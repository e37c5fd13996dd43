"""Test a pipeline file that names no remedy: nothing is written anywhere, and its lines to switch on are reported."""

import json
from typing import Any

import pytest
import yaml

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.planning.unanswered import Unanswered, read_unanswered
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.config.pipeline_file import load_pipeline
from makewhole.journal.database import connect
from makewhole.model.window import WindowState
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext
from tests.world.orders import Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import add_partitions, producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

NOTHING = ": nothing is written, because the remedy is `report`"


def test_a_file_without_remedies_writes_nothing_and_reports_what_would_be_done(shop: ReconciledShop) -> None:
    shop.describe(is_observing=True)
    _trade_with_every_mistake(shop)
    before = _contents(shop)

    context, planned, closed = _whole_way(shop)

    assert planned is None
    assert _contents(shop) == before
    assert shop.sql("select count(*) from pg_namespace where nspname = 'makewhole'") == [(0,)]
    assert closed.state is WindowState.GAPS
    assert [(hop.hop, hop.keys, hop.actions, hop.suggestion.line) for hop in _unanswered(shop, context)] == [
        (LEDGER_HOP, 2, 2, "missing: produce"),
        (STORE_HOP, 3, 3, "missing: upsert"),
        (STORE_HOP, 1, 1, "duplicate: quarantine"),
        (STORE_HOP, 2, 2, "mismatched: upsert"),
        (STORE_HOP, 1, 1, "unexpected: quarantine"),
    ]
    assert [sentence for hop in _unanswered(shop, context)[:2] for sentence in hop.sentences()] == [
        f"2 missing on {LEDGER_HOP}{NOTHING}",
        "`missing: produce` would send them into orders, from outbox: 2 actions at most",
        f"To switch it on, write `compensation: {{missing: produce}}` on hop {LEDGER_HOP}, or add it to what the hop "
        "has there",
        f"3 missing on {STORE_HOP}{NOTHING}",
        "`missing: upsert` would write their rows into warehouse, from orders: 3 actions at most",
        f"To switch it on, write `compensation: {{missing: upsert}}` on hop {STORE_HOP}, or add it to what the hop has "
        "there",
    ]


def test_the_lines_that_are_suggested_are_accepted_and_make_the_window_whole(shop: ReconciledShop) -> None:
    """A record that was sent twice stays in the topic: it is contained at the store."""
    shop.describe(is_observing=True)
    made = _trade_with_every_mistake(shop)
    shop.sql("delete from warehouse where id = 'X1'")
    shop.send(made[30:31])
    context, _, _ = _whole_way(shop)
    unanswered = _unanswered(shop, context)
    assert shop.outcomes(context)["O30"] == "contained"

    _switch_on(shop, unanswered)
    context, planned, _ = _whole_way(shop)
    shop.write("warehouse", made[10:12])  # the loader takes what was produced
    verify_window(context, lambda *_: None, patience_seconds=0)

    assert planned == {"produce": 2, "quarantine": 1, "upsert": 5}
    assert sum(hop.actions for hop in unanswered) == 8
    assert shop.certify(context).state is WindowState.CERTIFIED
    assert _unanswered(shop, context) == []
    assert sorted(_contents(shop)["warehouse"]) == sorted(_contents(shop)["outbox"])


def test_what_a_limit_would_refuse_is_reported(shop: ReconciledShop) -> None:
    shop.describe(is_observing=True, compensation={"limits": "{actions: 1, share: 1.0}"})
    shop.trade(orders(range(10)), unsent=orders([3, 4]))

    context, _, closed = _whole_way(shop)

    assert closed.state is WindowState.GAPS
    assert [hop.refused_as_a_whole for hop in _unanswered(shop, context)] == [
        "2 actions are more than the limit of 1; find out what broke before repairing it, then raise "
        "compensation.limits.actions"
    ]


def test_a_file_that_names_every_remedy_repairs_all_of_it(shop: ReconciledShop) -> None:
    """Produce to where librdkafka's producer would; send a row again that was purged."""
    remedies = "{missing: redeliver, duplicate: quarantine, vanished: redeliver}"
    shop.describe(
        partitioner="crc32",
        max_age="1d",
        ledger_hop={"compensation": "{missing: produce}"},
        hop={"compensation": remedies},
        is_observing=True,
    )
    add_partitions(shop.admin, shop.topic, 4)
    made = orders(range(24))
    shop.write("outbox", made)
    _send_as_librdkafka_does(shop, [order for order in made if order["number"] not in (10, 11)])
    shop.write("warehouse", [made[7], *(order for order in made if order["number"] not in (10, 11, 20))])

    context, planned, _ = _whole_way(shop)
    _load(shop, context, [made[10], made[11], made[20]])
    assert planned == {"produce": 2, "redeliver": 1, "quarantine": 1}
    assert shop.certify(context).state is WindowState.CERTIFIED
    beside = shop.add_topic()
    add_partitions(shop.admin, beside, 4)
    _send_as_librdkafka_does(shop, made, beside)
    places = {record.key_text: record.partition for record in shop.read(beside)}
    assert len(set(places.values())) == 4
    assert {record.key_text: record.partition for record in shop.read()} == places

    shop.sql("delete from warehouse where id = 'O3'")
    context, planned, _ = _whole_way(shop)
    assert planned == {"redeliver": 1}
    _load(shop, context, [made[3]])
    assert shop.certify(context).state is WindowState.CERTIFIED
    assert sorted(_contents(shop)["warehouse"]) == sorted(_contents(shop)["outbox"])


def _send_as_librdkafka_does(shop: ReconciledShop, orders: list[Order], topic: str | None = None) -> None:
    client = producer(shop.bootstrap)
    for order in orders:
        client.produce(
            topic or shop.topic, key=order["id"], value=json.dumps(order), timestamp=milliseconds(order["at"])
        )
    assert client.flush(30) == 0


def _load(shop: ReconciledShop, context: WindowContext, sent: list[Order]) -> None:
    """Load what a plan sent to the topic, as the loader of the warehouse does, and look again."""
    shop.write("warehouse", sent)
    verify_window(context, lambda *_: None, patience_seconds=0)


def _trade_with_every_mistake(shop: ReconciledShop) -> list[Order]:
    """Never sent: 10, 11; never loaded: 20 to 22; loaded twice: 40; with another amount: 50, 51. Unmatched: X1."""
    made = orders(range(60))
    shop.write("outbox", made)
    sent = [order for order in made if order["number"] not in (10, 11)]
    shop.send(sent)
    loaded = [order for order in sent if order["number"] not in (20, 21, 22)]
    shop.write("warehouse", [order | {"amount": "0.01"} if order["number"] in (50, 51) else order for order in loaded])
    shop.write("warehouse", [made[40], made[7] | {"id": "X1"}])
    return made


def _whole_way(shop: ReconciledShop) -> tuple[WindowContext, dict[str, int] | None, ClosedWindow]:
    """Take a window all the way as a run does; return what its plan counted, too."""
    context = shop.judge_and_ask_the_gate()
    plan = plan_window(context).plan
    if plan is not None:
        compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)
    return context, None if plan is None else dict(plan.counts), shop.certify(context)


def _unanswered(shop: ReconciledShop, context: WindowContext) -> list[Unanswered]:
    with connect(shop.journal) as journal:
        return read_unanswered(journal, shop.pipeline, context.window, context.connections)


def _contents(shop: ReconciledShop) -> dict[str, Any]:
    tables = {table: shop.sql(f"select id, amount, at from {table} order by 1, 2") for table in ("outbox", "warehouse")}
    return {**tables, "orders": [(record.key_text, record.value) for record in shop.read()]}


def _switch_on(shop: ReconciledShop, unanswered: list[Unanswered]) -> None:
    """Write the lines that were suggested into the file."""
    written = yaml.safe_load(shop.file.read_text())
    hops = {f"{hop['from']}→{hop['to']}": hop for hop in written["hops"]}
    for unanswered_hop in unanswered:
        assert unanswered_hop.suggestion.line is not None
        hops[unanswered_hop.hop].setdefault("compensation", {}).update(yaml.safe_load(unanswered_hop.suggestion.line))
    shop.file.write_text(yaml.safe_dump(written))
    load_pipeline(shop.file)
