"""Test a pipeline without a ledger whose records go from one topic to another and from there into a store."""

import json

import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import Order, milliseconds, orders
from tests.world.pipeline_file import topic as topic_point
from tests.world.shop import STORE_HOP
from tests.world.topics import left_open, producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FIRST_HOP = "raw→orders"
KEY = '["$.region", "$.id"]'


def describe(shop: ReconciledShop, reach: str | None = None) -> str:
    """Describe topic → topic → store, with a key of two parts; return the first topic."""
    raw = shop.more_topics[0] if shop.more_topics else shop.add_topic()
    shop.describe(
        has_ledger=False,
        key="[region, id]",
        topic_key=KEY,
        reach=reach,
        more_points={"raw": topic_point("log", raw, key=KEY)},
        more_hops=[{"from": "raw", "to": "orders"}],
    )
    return raw


def send_raw_orders(shop: ReconciledShop, topic: str, made: list[Order]) -> None:
    client = producer(shop.bootstrap)
    for order in made:
        client.produce(topic, value=json.dumps(order), timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0


def key(*parts: str) -> str:
    return json.dumps(parts, separators=(",", ":"))


def leader_changed(shop: ReconciledShop, context: WindowContext, point: str, **doubts: int) -> None:
    """Write a change of leader as a snapshot finds it: one broker alone never loses its lead."""
    part = context.window.ranges[point][0]
    detail = {"epochs": [[0, 2], [1, 4]], "before": None, **({"doubts": doubts} if doubts else {})}
    incident = Incident(
        kind=IncidentKind.LEADER_CHANGED,
        point=point,
        topic=part.topic,
        topic_id=part.topic_id,
        partition=0,
        lo=2,
        hi=4,
        detail=detail,
    )
    with connect(shop.journal) as journal:
        incidents.put(journal, context.window, [incident])


def test_each_of_two_topics_is_judged_and_only_the_first_is_taken_at_its_word(shop: ReconciledShop) -> None:
    raw = describe(shop)
    made = orders(range(12))
    send_raw_orders(shop, raw, made)
    shop.send(made[:9])
    shop.end_transaction(shop.begin_transaction(made[9:10]), is_committed=False)
    shop.send([made[3], made[5] | {"amount": "0.05"}])
    shop.send(orders([77]))
    left_open(shop.bootstrap, shop.topic)
    shop.write("warehouse", [*made[:4], *made[6:9], *made[9:10]])
    context = shop.open()
    shop.judge(context)
    leader_changed(shop, context, "orders")
    shop.validate(context)
    closed = shop.certify(context)

    again = ("duplicate", "retry_without_idempotence")
    assert shop.found(context, FIRST_HOP) == {
        key("US", "O3"): again,
        key("US", "O5"): again,
        key("US", "O9"): ("missing", "aborted_transaction"),
        key("EU", "O10"): ("missing", "never_produced"),
        key("US", "O11"): ("missing", "never_produced"),
        key("US", "O77"): ("unexpected", "not_in_source"),
    }
    lost = ("missing", "lost_after_topic")
    assert shop.found(context, STORE_HOP) == {
        key("EU", "O4"): lost,
        key("US", "O5"): lost,
        key("US", "O77"): lost,
        key("US", "O9"): ("unexpected", "read_uncommitted"),
    }
    assert closed.state is WindowState.GAPS


def test_a_change_of_leader_blocks_in_the_first_topic_alone(shop: ReconciledShop) -> None:
    raw = describe(shop)
    made = orders(range(5))
    send_raw_orders(shop, raw, made)
    shop.send(made)
    shop.write("warehouse", made)
    context = shop.judge_and_ask_the_gate()
    leader_changed(shop, context, "orders", few_copies=1)
    closed = shop.certify(context)
    assert closed.state is WindowState.CERTIFIED, closed.reason
    assert closed.certificate is not None
    reach = closed.certificate.body["reach"]
    assert (reach["from"], reach["chains"]) == ("log", [{"points": ["raw", "orders", "warehouse"], "from": "log"}])
    assert [(limit["limit"], limit["at"]) for limit in reach["cannot_exclude"]] == [("not_in_log", "raw")]

    again = shop.judge_and_ask_the_gate()
    leader_changed(shop, again, "raw", few_copies=1)
    assert shop.certify(again).state is WindowState.NOT_KNOWN

    describe(shop, reach="log")
    third = shop.judge_and_ask_the_gate()
    leader_changed(shop, third, "raw", few_copies=1)
    accepted = shop.certify(third)
    assert accepted.certificate is not None
    limits = [
        (limit["limit"], limit["at"], limit["count"]) for limit in accepted.certificate.body["reach"]["cannot_exclude"]
    ]
    assert limits == [("not_in_log", "raw", None), ("leader_changed", "raw", 1)]
