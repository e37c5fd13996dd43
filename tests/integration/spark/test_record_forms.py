"""Test that what is produced looks like what is there: by record key and headers, or it is not sent."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.kafka.partitioner import partition_of
from makewhole.model.points import Partitioner
from makewhole.window.context import WindowContext
from tests.world.consumer import Record
from tests.world.orders import Order, milliseconds, orders
from tests.world.pipeline_file import ledger
from tests.world.shop import LEDGER_HOP
from tests.world.topics import add_partitions, producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

PARTITIONS = 4


def described(shop: ReconciledShop, **outbox: str) -> None:
    """Describe the pipeline, whose outbox has these keys in the file; what is missing in the topic is produced."""
    shop.describe(
        more_points={"outbox": ledger("db", "outbox", **outbox)}, ledger_hop={"compensation": "{missing: produce}"}
    )


@pytest.fixture
def made(shop: ReconciledShop) -> list[Order]:
    """Return orders with a customer and a kind, which are in the outbox."""
    add_partitions(shop.admin, shop.topic, PARTITIONS)
    described(shop)
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} add customer text, add kind text")
    more = [order | {"customer": f"C{order['number'] % 3}", "kind": "taken"} for order in orders(range(12))]
    shop.write("outbox", more)
    return more


def send(
    shop: ReconciledShop,
    some: Iterable[Order],
    key: Callable[[Order], str | bytes] = lambda order: order["id"],
    headers: Callable[[Order], list[tuple[str, str | bytes | None]]] = lambda _: [],
) -> None:
    """Send orders as the shop's own producer does, and load them."""
    client = producer(shop.bootstrap, partitioner="murmur2_random")
    for order in some:
        client.produce(
            shop.topic,
            key=key(order),
            value=json.dumps(order),
            timestamp=milliseconds(order["at"]),
            headers=headers(order),
        )
    assert client.flush(30) == 0
    shop.write("warehouse", some)


def produced(shop: ReconciledShop) -> tuple[WindowContext, list[Record]]:
    """Judge, plan and run; return the records that were written."""
    before = len(shop.read())
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)
    records = shop.read()
    assert len(records) >= before
    return context, [record for record in records if "makewhole-plan" in dict(record.headers)]


def reason(shop: ReconciledShop, context: WindowContext, key: str) -> Any:
    return shop.outcome_of(context, LEDGER_HOP, key)


def test_a_record_of_a_topic_that_is_keyed_by_customer_is_sent_when_the_file_says_so(
    shop: ReconciledShop, made: list[Order]
) -> None:
    send(shop, made[:10], key=lambda order: order["customer"])
    context, none = produced(shop)
    assert none == []
    for key in ("O10", "O11"):
        assert reason(shop, context, key) == (
            "refused",
            "unfit: 10 of the last 10 records in orders have another Kafka key than its business key, by which outbox "
            "would give it; write 'record_key: customer' on point outbox, which holds the key of all of them",
        )

    described(shop, record_key="customer")
    context, records = produced(shop)
    assert {record.key: json.loads(record.value or b"")["id"] for record in records} == {b"C1": "O10", b"C2": "O11"}
    for record in records:
        assert record.partition == partition_of(Partitioner.MURMUR2, record.key, PARTITIONS)
    assert shop.found(shop.judge_and_ask_the_gate(), LEDGER_HOP) == {}


def test_a_key_that_no_column_holds_is_not_sent_and_a_column_that_is_wrong_is_named(
    shop: ReconciledShop, made: list[Order]
) -> None:
    send(shop, made[:10], key=lambda order: json.dumps(order["id"]))
    context, none = produced(shop)
    assert none == []
    assert reason(shop, context, "O10")[1] == (
        "unfit: 10 of the last 10 records in orders have another Kafka key than its business key, by which outbox "
        "would give it; no column of outbox holds the key of all of them: write 'record_key: COLUMN' on point outbox "
        "with one that does, or send these records with the system's own producer"
    )


def test_a_column_of_the_file_that_is_not_the_topics_key_is_refused(shop: ReconciledShop, made: list[Order]) -> None:
    described(shop, record_key="customer")
    send(shop, made[:10])
    context, none = produced(shop)
    assert none == []
    assert reason(shop, context, "O10")[1].endswith(
        "than column customer, by which outbox would give it; their key is the business key: take 'record_key: "
        "customer' out at point outbox"
    )


def test_a_ledger_that_has_none_of_the_last_records_any_more_is_held_to_the_business_key(
    shop: ReconciledShop, made: list[Order]
) -> None:
    send(shop, made[:10], key=lambda order: order["customer"])
    context = shop.judge_and_ask_the_gate()
    shop.sql("delete from outbox where number < 10")
    plan_window(context)
    assert reason(shop, context, "O10")[1].startswith(
        "unfit: 10 of the last 10 records in orders have another Kafka key"
    )


def test_headers_that_all_records_have_are_sent_or_left_out_as_the_file_says(
    shop: ReconciledShop, made: list[Order]
) -> None:
    send(
        shop,
        made[:9],
        headers=lambda order: [("type", order["kind"].encode()), ("format", b"v1"), ("trace", order["id"].encode())],
    )
    send(
        shop,
        made[9:10],
        headers=lambda _: [("type", b"taken"), ("format", b"v1"), ("trace", b"x"), ("retry", b"1")],
    )
    context, none = produced(shop)
    assert none == []
    assert reason(shop, context, "O10")[1] == (
        "unfit: all of the last 10 records in orders have the headers format, trace, type, and that of outbox would "
        "not; write 'headers: {format: COLUMN, trace: COLUMN, type: kind}' on point outbox, with a column for each "
        "or its text in quotes, or 'leave_headers: [format, trace, type]' if their readers need none of them"
    )

    described(shop, headers="{type: region, format: \"'v1'\"}", leave_headers="[trace]")
    context, none = produced(shop)
    assert none == []
    assert reason(shop, context, "O10")[1] == (
        "unfit: 10 of the last 10 records in orders have another header type than region gives; name what holds it "
        "under 'headers' at point outbox"
    )

    described(shop, headers="{type: kind, format: \"'v1'\"}", leave_headers="[trace]")
    _, records = produced(shop)
    assert sorted(record.key_text for record in records) == ["O10", "O11"]
    for record in records:
        assert {"type": b"taken", "format": b"v1"}.items() <= dict(record.headers).items()
        assert "trace" not in dict(record.headers)


def test_a_row_whose_column_has_no_key_gives_a_record_without_one(shop: ReconciledShop, made: list[Order]) -> None:
    described(shop, record_key="customer")
    send(shop, made[:10], key=lambda order: order["customer"])
    shop.sql("update outbox set customer = null where id = 'O11'")
    _, records = produced(shop)
    assert {json.loads(record.value or b"")["id"]: record.key for record in records} == {"O10": b"C1", "O11": None}


def test_a_value_without_a_field_that_all_records_have_is_not_sent_until_the_file_says_so(
    shop: ReconciledShop, made: list[Order]
) -> None:
    client = producer(shop.bootstrap, partitioner="murmur2_random")
    for order in made[:10]:
        value = json.dumps(order | {"channel": "web"})
        client.produce(shop.topic, key=order["id"], value=value, timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0
    shop.write("warehouse", made[:10])
    context, none = produced(shop)
    assert none == []
    assert reason(shop, context, "O10") == (
        "refused",
        "unfit: all of the last 10 records in orders have the fields channel, and that of outbox would not; name a "
        "column that holds the whole value under 'payload' at point outbox, or write 'leave_fields: [channel]' there "
        "if the readers of the topic need them not",
    )

    described(shop, leave_fields="[channel]")
    _, records = produced(shop)
    assert sorted(record.key_text for record in records) == ["O10", "O11"]
