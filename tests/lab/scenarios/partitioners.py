"""Repair a topic from a client whose partitioner is not that of the topic's producers (row 35)."""

import json
from collections.abc import Sequence

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.consumer import read_settled
from tests.world.java_clients import JavaClients
from tests.world.orders import Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_PARTITIONS = 4


@scenario(
    row=35,
    name="A repair by a client with another partitioner",
    happens=(
        "What never reached the topic is sent later, by a client that would put its keys into other partitions than "
        "the topic's own producers."
    ),
    made=(
        "Java's producer sends a day of orders into four partitions, but for some. The pipeline file names "
        "librdkafka's partitioner first, and Java's after that."
    ),
    why=(
        "Every count is right wherever a record stands. What `produce` would do is held against the keys that stand in "
        "the topic, before anything is sent."
    ),
)
def another_partitioner(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(partitions=_PARTITIONS, partitioner="crc32")
    made = orders(range(lab.random.randint(60, 120)))
    lost = lab.random.sample(made, lab.random.randint(12, 24))
    sent = [order for order in made if order not in lost]
    shop.write("outbox", made)
    _send(shop, lab.java(), sent)
    shop.load()
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is None
    refused = Window(
        label="with librdkafka's partitioner: nothing is sent",
        judged=shop.certify_and_collect(context),
        expected=_expected(WindowState.GAPS, sent, lost, reason=""),
    )

    shop.describe(partitioner="murmur2")
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    _require_where_java_puts_them(shop, lab.java(), made)
    shop.load()
    repaired = Window(
        label="with Java's", judged=shop.verified(context), expected=_expected(WindowState.CERTIFIED, sent, lost)
    )
    answer = Naive(answer=naive.records(shop.bootstrap, shop.topic, rows=shop.count("outbox")), expected=naive.WELL)
    truth = (
        f"Here {len(lost)} of {len(made)} orders never reached the topic, and belong where Java's producer puts them."
    )
    return Outcome(truth=truth, naive=(answer,), windows=(refused, repaired))


def _send(shop: LabShop, java: JavaClients, made: Sequence[Order]) -> None:
    with java.producer(shop.bootstrap) as client:
        for order in made:
            client.send(
                shop.topic,
                json.dumps(order).encode(),
                key=order["id"].encode(),
                partition=None,
                timestamp_ms=milliseconds(order["at"]),
            )
        client.flush()


def _expected(state: WindowState, sent: Sequence[Order], lost: Sequence[Order], *, reason: str | None = None) -> Judged:
    return Judged(
        state=state.value,
        accounting={"span": len(sent), "data": len(sent)},
        matched={LEDGER_HOP: len(sent), STORE_HOP: len(sent)},
        found={LEDGER_HOP: {order["id"]: ("missing", "never_produced") for order in lost}},
        reason=reason,
    )


def _require_where_java_puts_them(shop: LabShop, java: JavaClients, made: Sequence[Order]) -> None:
    """A committed reader finds every order once, in the partition that Java's own code names."""
    partition_for_key = java.jvm.org.apache.kafka.clients.producer.internals.BuiltInPartitioner.partitionForKey
    places = sorted((record.key_text, record.partition) for record in read_settled(shop.bootstrap, shop.topic))
    expected = sorted((order["id"], partition_for_key(order["id"].encode(), _PARTITIONS)) for order in made)
    assert places == expected, sorted(set(places) ^ set(expected))
