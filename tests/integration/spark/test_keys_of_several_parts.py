"""Test what follows the judging of keys of several parts, which are JSON arrays: repairs, undo, look-ups, commands."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.window import WindowState
from tests.integration.spark.test_undone import undone
from tests.world.orders import Order, milliseconds, orders
from tests.world.pipeline_file import ledger, store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.sql import Rows
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PARTS = (
    *("plain", 'quo"te', "a' b", "back\\slash", "com,ma", "[bracket]", "{brace}", '["a","b"]', "null", "100%s"),
    *("ünï 漢字 🙂", "line\nbreak\ttab", "\x7f\x1b", "\u2028"),
)
SIZE = len(PARTS)
KINDS = ("never sent", "lost", "twice", "changed", "whole")


def part(number: int) -> str:
    return PARTS[number % SIZE]


def odd_orders(numbers: Sequence[int]) -> list[Order]:
    """Return orders whose regions are no plain words."""
    return [{**order, "region": part(int(order["number"]))} for order in orders(numbers)]


def kind(order: Order) -> str:
    """Return what becomes of an order: of each kind there is one order a part."""
    return KINDS[int(order["number"]) // SIZE] if int(order["number"]) < len(KINDS) * SIZE else "unmatched"


def key(*parts: str) -> str:
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def send(shop: ReconciledShop, wanted: Sequence[dict[str, Any]], day: int = 0) -> None:
    for record in wanted:
        shop.send_raw(json.dumps(record).encode(), day, key=None)


def warehouse(shop: ReconciledShop) -> Rows:
    return shop.sql("select number, region, amount::text, count(*) from warehouse group by 1, 2, 3 order by 1, 3")


def test_odd_parts_are_found_repaired_explained_and_taken_back(shop: ReconciledShop) -> None:
    shop.describe(
        key="[region, number]",
        topic_key='["$.region", "$.number"]',
        partitioner="random",
        ledger_hop={"compensation": "{missing: produce}"},
        hop={"compensation": "{missing: upsert, mismatched: upsert, duplicate: quarantine, unexpected: quarantine}"},
    )
    made = odd_orders(range(len(KINDS) * SIZE))
    sent = [order for order in made if kind(order) != "never sent"]
    shop.write("outbox", made)
    send(shop, sent)
    loaded = [
        order | ({"amount": "0.00"} if kind(order) == "changed" else {}) for order in sent if kind(order) != "lost"
    ]
    unmatched = odd_orders(range(900, 900 + SIZE))
    shop.write("warehouse", [*loaded, *(order for order in loaded if kind(order) == "twice"), *unmatched])
    before = warehouse(shop)

    context = shop.judge_and_ask_the_gate()

    outcomes = {
        "never sent": (LEDGER_HOP, ("missing", "never_produced")),
        "lost": (STORE_HOP, ("missing", "lost_after_topic")),
        "twice": (STORE_HOP, ("duplicate", "written_before_committed")),
        "changed": (STORE_HOP, ("mismatched", "value_differs")),
        "unmatched": (STORE_HOP, ("unexpected", "not_in_source")),
    }
    expected: dict[str, dict[str, tuple[str, str]]] = {LEDGER_HOP: {}, STORE_HOP: {}}
    for order in (*made, *unmatched):
        if kind(order) in outcomes:
            hop, outcome = outcomes[kind(order)]
            expected[hop][key(order["region"], str(order["number"]))] = outcome
    assert {hop: shop.found(context, hop) for hop in expected} == expected
    for number in range(SIZE):
        shown = CliRunner().invoke(app, ["explain", "shop", key(part(number), str(number)), "--json"])
        assert shown.exit_code == 0, shown.output
        assert [len(point["copies"]) for point in json.loads(shown.stdout)["points"]] == [1, 0, 0]

    plan = plan_window(context).plan
    assert plan is not None
    compensate_window(context, lambda _: None)
    shop.write("warehouse", [order for order in made if kind(order) == "never sent"])
    verify_window(context, lambda *_: None)
    closed = shop.certify(context)

    assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
    assert warehouse(shop) == [(order["number"], order["region"], order["amount"], 1) for order in made]
    produced = [record for record in shop.read() if record.key is not None]
    assert sorted(record.key_text for record in produced) == sorted(key(part(at), str(at)) for at in range(SIZE))

    shop.sql("delete from warehouse where number < %s", SIZE)
    undone(shop, context, plan)
    assert warehouse(shop) == before


@pytest.mark.extended
def test_typed_parts_are_one_key_in_every_spelling_and_a_null_is_none(shop: ReconciledShop) -> None:
    """The parts are a number, which is a text in the store, a text and a date."""
    shop.sql("alter table outbox add day date; alter table warehouse add day date")
    shop.sql("alter table outbox alter number type numeric(10,2); alter table warehouse alter number type text")
    shop.sql("create table erasures (n bigint, r text, d date)")
    names = "[number, region, day]"
    shop.describe(
        key=names,
        topic_key='["$.number", "$.region", "$.day"]',
        more_points={
            "warehouse": store("db", "warehouse", key=names, erased="{table: erasures, key: [n, r, d]}"),
        },
    )
    made = [order | {"day": "2025-03-01"} for order in odd_orders(range(8))]
    shop.write("outbox", [*made, made[0] | {"number": None}, made[0] | {"day": None}])
    send(shop, [order | {"number": float(order["number"])} for order in made])
    send(shop, [made[0] | {"region": None}, made[0] | {"day": "2025-02-30"}])
    shop.write("warehouse", [order | {"number": f"{order['number']}.0"} for order in made[:5]])
    shop.write("warehouse", [made[0] | {"region": ""}, made[0] | {"number": "x"}])
    shop.sql("insert into erasures values (5, %s, '2025-03-01')", part(5))

    context = shop.judge_and_ask_the_gate()

    five, six, seven = (key(str(number), part(number), "2025-03-01") for number in (5, 6, 7))
    lost = ("missing", "lost_after_topic")
    assert shop.found(context, LEDGER_HOP) == {}
    assert shop.found(context, STORE_HOP) == {five: ("erased", "erased_on_purpose"), six: lost, seven: lost}
    manifests = shop.manifests(context)
    assert {name: manifests[name]["undecodable"] for name in manifests} == {"outbox": 2, "orders": 2, "warehouse": 2}
    assert shop.certify(context).state is not WindowState.CERTIFIED

    shop.sql("insert into erasures values (6, %s, '2025-03-01')", part(6))  # erased since it was judged
    assert [refused.refusal for refused in plan_window(context).refusals] == [
        Refusal(RefusalCode.ERASED, "warehouse: erasures names this key")
    ]
    compensate_window(context, lambda _: None)
    assert [record.document["number"] for record in shop.read()][len(made) + 2 :] == [7.0]

    later = [order | {"day": "2025-03-02", "region": "x"} for order in orders(range(100, 103), 1)]
    shop.write("outbox", later)
    send(shop, [*later, made[1] | {"number": 1, "at": later[0]["at"]}], 1)
    shop.write("warehouse", later)
    second = shop.judged(1)
    assert shop.found(second, LEDGER_HOP) == {
        key("1", part(1), "2025-03-01"): ("duplicate", "retry_without_idempotence")
    }


def test_a_record_is_produced_with_the_key_that_it_stands_for_or_not_at_all(shop: ReconciledShop) -> None:
    """A part of the key is Kafka's own, which is the whole business key where the ledger does not say it."""
    settings: dict[str, Any] = {
        "topic_key": '[kafka.key, "$.number"]',
        "partitioner": "random",
        "ledger_hop": {"compensation": "{missing: produce}"},
    }
    shop.describe(key="[region, number]", **settings)
    made = orders(range(4))
    shop.write("outbox", made)
    client = producer(shop.bootstrap)
    for order in made[:3]:
        client.produce(shop.topic, key=order["region"], value=json.dumps(order), timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0
    shop.write("warehouse", made[:3])
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP) == {key("US", "3"): ("missing", "never_produced")}

    frozen = plan_window(context)

    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(
            RefusalCode.UNFIT,
            "as the record that outbox gives it would not have this key in orders, which reads it from kafka.key, "
            "$.number: name the columns that hold the record, `record_key` and `payload`, at points.outbox",
        )
    ]
    assert frozen.plan is None

    columns = ledger("db", "outbox", key="[region, number]", record_key="region")
    shop.describe(key="[region, number]", **settings, more_points={"outbox": columns})
    again = shop.judge_and_ask_the_gate()
    assert plan_window(again).refusals == ()
    compensate_window(again, lambda _: None)
    assert [record.key for record in shop.read()] == [b"EU", b"US", b"EU", b"US"]
