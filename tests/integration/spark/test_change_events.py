"""Test windows over Debezium's change events: deletions, values that were not sent, events of no row, and repairs."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.world.envelopes import (
    bare_change_event,
    change_event,
    compact,
    connect_key,
    connect_value,
    enveloped,
)
from tests.world.orders import Order, milliseconds, orders
from tests.world.pipeline_file import store, topic
from tests.world.shop import STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

COMPARE = '{amount: "decimal(8,2)", at: timestamp, region: string}'
UNAVAILABLE = "__debezium_unavailable_value"
Event = tuple[Order, bytes | None]
NOTHING: Mapping[str, str] = {}


def json_key(key: str) -> bytes:
    return compact({"id": key})


def describe(shop: ReconciledShop, settings: Mapping[str, str] = NOTHING, **more: Any) -> None:
    """Describe a topic of change events, with or without a schema, that a sink upserts into the warehouse."""
    usual = {"value": "debezium", "record_key": "connect", "key": "kafka.key.id", "version": "event:source.lsn"}
    said: dict[str, Any] = {
        "compare": COMPARE,
        "has_ledger": False,
        "is_upsert": True,
        "more_points": {"orders": topic("log", shop.topic, **{**usual, **settings})},
        "hop": {"compensation": "{missing: upsert, mismatched: upsert}"},
    }
    shop.describe(**{**said, **more})


def send(shop: ReconciledShop, events: Iterable[Event], key: Callable[[str], bytes] = connect_key) -> None:
    """Send events of orders, each with its value."""
    client = producer(shop.bootstrap)
    for order, value in events:
        client.produce(shop.topic, key=key(order["id"]), value=value, timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0


def created(some: Iterable[Order]) -> list[Event]:
    return [(order, change_event("c", order, order["number"] + 1)) for order in some]


@pytest.mark.parametrize("is_typed", [True, False], ids=["schema", "no schema"])
@pytest.mark.parametrize("has_tombstones", [True, False])
def test_a_deleted_key_is_gone_downstream_or_is_found(
    shop: ReconciledShop, is_typed: bool, has_tombstones: bool
) -> None:
    write, key = (change_event, connect_key) if is_typed else (bare_change_event, json_key)
    describe(shop, settings={"record_key": "connect" if is_typed else "json"})
    made = orders(range(10))
    again = made[5] | {"amount": "77.70"}
    events: list[Event] = [(order, write("c", order, order["number"] + 1)) for order in made]
    for order in made[3:6]:
        events.append((order, write("d", order, 100 + order["number"])))
        events += [(order, None)] if has_tombstones else []
    events += [(again, write("c", again, 200))]
    send(shop, events, key)
    shop.write("warehouse", [*made[:3], made[4], again, *made[6:]])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {"O4": ("mismatched", "stale_version")}
    assert shop.accounting(context).get("undecodable", 0) == 0


@pytest.mark.parametrize("place", ["$.id", "kafka.key.id"])
def test_the_key_of_a_deletion_is_that_of_the_row_before(shop: ReconciledShop, place: str) -> None:
    """Without tombstones (`tombstones.on.delete=false`) the key may stand in the value."""
    describe(shop, settings={"key": f'"{place}"'})
    made = orders(range(6))
    send(shop, [*created(made), (made[2], change_event("d", made[2], 50))])
    shop.write("warehouse", [*made[:2], *made[3:]])

    context, closed = shop.whole_way()

    assert closed.state is WindowState.CERTIFIED, closed.reason
    assert shop.found(context, STORE_HOP) == {}


def test_a_row_that_is_marked_as_deleted_is_not_brought_back(shop: ReconciledShop) -> None:
    """Debezium's `ExtractNewRecordState` with `delete.tombstone.handling.mode=rewrite`."""
    settings = {"value": "json", "record_key": "json", "version": '"$.lsn"'}
    describe(shop, settings=settings)
    made = orders(range(6))
    events = [(order, compact({**order, "lsn": order["number"] + 1, "__deleted": "false"})) for order in made]
    gone = [(order, compact({**order, "lsn": 100, "__deleted": "true"})) for order in made[2:4]]
    send(shop, [*events, *gone], json_key)
    shop.write("warehouse", [*made[:2], *made[3:]])

    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)

    assert shop.found(context, STORE_HOP) == {"O3": ("mismatched", "stale_version")}
    assert "O2" not in {key for (key,) in shop.sql("select id from warehouse")}


def test_a_value_that_was_not_sent_is_compared_with_nothing_and_not_written(shop: ReconciledShop) -> None:
    describe(shop)
    made = orders(range(4))
    unsent = [made[1] | {"region": UNAVAILABLE}, made[2] | {"region": UNAVAILABLE}]
    send(shop, [*created([made[0], *unsent, made[3]])])
    shop.write("warehouse", [made[0], made[1], made[3]])  # O2 is missing, and its region is not known

    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)

    assert shop.found(context, STORE_HOP)["O1"] == ("undecidable", "placeholder")
    assert shop.sql("select id from warehouse order by id") == [("O0",), ("O1",), ("O3",)]
    assert shop.sql("select count(*) from warehouse where region like '%unavailable%'") == [(0,)]
    outcome, reason = shop.outcome_of(context, STORE_HOP, "O2")
    assert outcome == "refused"
    assert "of region the record has only the placeholder of its capture" in str(reason)


@pytest.mark.parametrize("op", ["t", "m"])
def test_an_event_of_no_row_is_kept_with_its_reason(shop: ReconciledShop, op: str) -> None:
    describe(shop)
    made = orders(range(5))
    nothing = {"before": None, "after": None, "source": {"lsn": 9}, "op": op, "ts_ms": 1}
    send(shop, [*created(made), (made[0], enveloped({"type": "struct"}, nothing))])
    shop.write("warehouse", made)

    context = shop.judge_and_ask_the_gate()
    closed = shop.certify(context)

    assert closed.state is not WindowState.CERTIFIED
    words = {"t": "the whole table was truncated (op t)", "m": "a message of the source (op m), and of no row"}
    assert words[op] in str(closed.reason)


@pytest.mark.parametrize("form", ["debezium", "connect"])
def test_what_a_repair_writes_has_the_values_of_its_logical_types(shop: ReconciledShop, form: str) -> None:
    is_event = form == "debezium"
    version = {} if is_event else {"version": '"$.number"'}
    describe(shop, settings={"value": form, **version})
    made = orders(range(6))
    value: Callable[[Order], bytes] = connect_value
    send(shop, created(made) if is_event else [(order, value(order)) for order in made])
    shop.write("warehouse", [made[0] | {"amount": "9.99"}, *made[1:4]])

    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)

    assert shop.found(context, STORE_HOP) == {
        "O0": ("mismatched", "value_differs"),
        "O4": ("missing", "lost_after_topic"),
        "O5": ("missing", "lost_after_topic"),
    }
    rows = shop.sql(
        "select id, amount, region, at = (timestamptz '2025-03-01Z' + number * interval '1 minute') from warehouse"
    )
    assert sorted(rows) == [(f"O{n}", Decimal(f"{n}.50"), "US" if n % 2 else "EU", True) for n in range(6)]


def test_connects_payload_of_null_deletes_its_key(shop: ReconciledShop) -> None:
    """Debezium's unwrap and JsonConverter with a schema write a deletion so; seen with 3.2.0."""
    describe(shop, settings={"value": "connect", "version": '"$.number"'})
    made = orders(range(6))
    send(shop, [*((order, connect_value(order)) for order in made), (made[2], connect_value(None))])
    shop.write("warehouse", [*made[:2], *made[3:]])

    context, closed = shop.whole_way()

    assert closed.state is WindowState.CERTIFIED, closed.reason
    assert shop.found(context, STORE_HOP) == {}


def test_a_deletion_event_names_a_key_that_was_erased(shop: ReconciledShop) -> None:
    points: dict[str, Any] = {
        "orders": topic("log", shop.topic, value="debezium", record_key="connect", key="kafka.key.id"),
        "warehouse": store("db", "warehouse", erased="tombstones"),
    }
    describe(shop, is_upsert=False, more_points=points, hop={"compensation": "{missing: redeliver}"})
    made = orders(range(6))
    send(shop, [*created(made), (made[2], change_event("d", made[2], 50))])
    shop.write("warehouse", [*made[:2], *made[4:]])

    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)

    assert shop.found(context, STORE_HOP) == {
        "O2": ("erased", "erased_on_purpose"),
        "O3": ("missing", "lost_after_topic"),
    }
    sent = shop.read()
    assert len(sent) == 8
    assert (sent[-1].key, sent[-1].value) == (sent[3].key, sent[3].value)
