"""Test that a record in an envelope (Kafka Connect's, Debezium's) is not taken for one whose fields are all null."""

import json
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.world.orders import Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

UPSERT = {"compensation": "{missing: upsert, mismatched: upsert}"}
NOTE = {"field": "note", "type": "string", "optional": True, "default": "none"}


def connect_envelope(order: Order) -> dict[str, Any]:
    """Return a record as JsonConverter writes it: where the note was null it has the default of its schema."""
    return {"schema": {"type": "struct", "fields": [NOTE]}, "payload": {**order, "note": order.get("note") or "none"}}


def change(order: Order) -> dict[str, Any]:
    return {"before": None, "after": order, "source": {"lsn": 7}, "op": "c", "ts_ms": 1}


KIND = {connect_envelope: "Kafka Connect's envelope", change: "a change event of Debezium"}


def send(shop: ReconciledShop, made: list[dict[str, Any]], some: list[Order]) -> None:
    client = producer(shop.bootstrap)
    for document, order in zip(made, some, strict=True):
        stamp = milliseconds(order["at"])
        client.produce(shop.topic, key=order["id"], value=json.dumps(document), timestamp=stamp)
    assert client.flush(30) == 0


@pytest.mark.parametrize("wrapped", [connect_envelope, change])
@pytest.mark.parametrize("path", ["inside", "kafka.key"])
def test_nothing_is_compared_with_and_written_of_an_envelope(shop: ReconciledShop, wrapped: Any, path: str) -> None:
    """Read as null, the amount of O1 would agree with a null in the store, and O2 would get an empty row."""
    inside = "$.payload.id" if wrapped is connect_envelope else "$.after.id"
    shop.sql("alter table outbox add note text; alter table warehouse add note text")
    shop.more_columns["note"] = "string"
    shop.describe(
        topic_key=f'"{inside if path == "inside" else path}"',
        hop=UPSERT,
        ledger_hop={"compensation": "{missing: report}"},
    )
    made = orders(range(1, 4))
    shop.write("outbox", made)
    send(shop, [wrapped(order) for order in made], made)
    shop.write("warehouse", [made[0] | {"amount": None}])
    before = shop.sql("select * from warehouse")
    context = shop.judge_and_ask_the_gate()
    for hop in (LEDGER_HOP, STORE_HOP):
        assert {verdict for verdict, _ in shop.found(context, hop).values()} == {"undecidable"}, hop
    plan_window(context)
    compensate_window(context, lambda _: None)
    assert shop.sql("select * from warehouse") == before
    closed = shop.certify(context)
    assert closed.state is WindowState.NOT_KNOWN
    setting = "schemas.enable=false`" if wrapped is connect_envelope else "ExtractNewRecordState`"
    assert f"3 records of orders have no usable key, 0 allowed (for the most part: value is {KIND[wrapped]}" in str(
        closed.reason
    )
    assert setting in str(closed.reason)


def test_keys_alone_are_read_of_an_envelope_and_no_column_is_written(shop: ReconciledShop) -> None:
    shop.describe(
        topic_key='"$.payload.id"',
        compare="{}",
        hop={**UPSERT, "write": "{number: int, amount: string}", "leave": "[region, at]"},
    )
    made = orders(range(1, 4))
    shop.write("outbox", made)
    send(shop, [connect_envelope(order) for order in made], made)
    shop.write("warehouse", made[:2])
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {"O3": ("missing", "lost_after_topic")}
    plan_window(context)
    compensate_window(context, lambda _: None)
    assert shop.sql("select id from warehouse order by id") == [("O1",), ("O2",)]
    outcome, reason = shop.outcome_of(context, STORE_HOP, "O3")
    assert outcome == "refused"
    assert (reason or "").startswith("unfit: the record's value is Kafka Connect's envelope of schema and payload")
    assert "`value.converter.replace.null.with.default=false`" in (reason or "")
