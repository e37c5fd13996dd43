"""Produce records into a topic whose records have another key than their business key (row 64)."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.kafka.partitioner import partition_of
from makewhole.model.points import Partitioner
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.consumer import read_records
from tests.world.orders import Order, milliseconds, orders
from tests.world.pipeline_file import ledger
from tests.world.shop import LEDGER_HOP, STORE_HOP

_PARTITIONS = 4


@scenario(
    row=64,
    name="Lost orders of a topic that is keyed by customer",
    happens=(
        "Records are keyed by their customer, so that all orders of a customer stand in one partition and are read in "
        "their order, and they have a header by which they are routed. Whoever sends what is missing by the order's "
        "id puts it into any partition, and without the header its readers leave it out."
    ),
    made=(
        "Four partitions; records have the customer as their Kafka key and a header `type`. Some orders are not sent. "
        "`missing: produce` from the outbox, first without a word of key and headers, then with the lines that the "
        "refusal names."
    ),
    why=(
        "Before anything is produced, the last records of the topic are made once more from the ledger's rows: where "
        "their keys or headers would be others, nothing is sent, and the reason has the lines to write."
    ),
    covered_by=("tests/integration/spark/test_record_forms.py",),
)
def keyed_by_customer(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(partitions=_PARTITIONS, **_pipeline())
    shop.sql("alter table outbox add customer text, add kind text; alter table warehouse add customer text")
    numbers = range(lab.random.randint(20, 60))
    made = [order | {"customer": f"C{order['number'] % 7}", "kind": "taken"} for order in orders(numbers)]
    unsent = lab.random.sample(made, lab.random.randint(5, 9))
    sent = [order for order in made if order not in unsent]
    shop.write("outbox", made)
    _send(shop, shop.topic, sent, lambda order: order["customer"])
    shop.load()
    answer = _sent_by_id(lab, unsent)
    before = _judge_and_repair(shop, written=0)
    shop.describe(**shop.with_loader_named(_pipeline(record_key="customer", headers="{type: kind}")))
    after = _judge_and_repair(shop, written=len(unsent))
    assert _misplaced(shop, shop.topic, made) == []
    assert {dict(record.headers).get("type") for record in shop.read()} == {b"taken"}
    windows = (
        Window(label="as the file is", judged=before, expected=_expected(WindowState.GAPS, sent, unsent)),
        Window(label="with `record_key` and `headers`", judged=after, expected=_expected(None, sent, unsent)),
    )
    truth = f"Here {len(unsent)} of {len(made)} orders, of seven customers, were never sent."
    return Outcome(truth=truth, naive=(answer,), windows=windows)


def _pipeline(**outbox: str) -> dict[str, Any]:
    """Return what the pipeline is described with; `outbox` is what that point has besides."""
    return {
        "more_points": {"outbox": ledger("db", "outbox", **outbox)},
        "ledger_hop": {"compensation": "{missing: produce}"},
    }


def _expected(state: WindowState | None, sent: Sequence[Order], unsent: Sequence[Order]) -> Judged:
    """Return what is right: the state, or else certified."""
    outcome = "repaired" if state is None else "refused (`unfit`)"
    return Judged(
        state=(state or WindowState.CERTIFIED).value,
        accounting={"span": len(sent), "data": len(sent)},
        matched={LEDGER_HOP: len(sent), STORE_HOP: len(sent)},
        found={LEDGER_HOP: dict.fromkeys((order["id"] for order in unsent), ("missing", "never_produced"))},
        reason=None if state is None else "",
        messages=(f"{LEDGER_HOP}: {len(unsent)} {outcome}",),
    )


def _judge_and_repair(shop: LabShop, *, written: int) -> Judged:
    """Judge the day, repair it, and let the loader read what was sent; `written` records are."""
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    before = len(shop.read())
    compensate_window(context, lambda _: None)
    assert len(shop.read()) - before == written
    shop.load()
    return shop.verified_with_outcomes(context)


def _send(shop: LabShop, topic: str, some: Iterable[Order], key: Callable[[Order], str]) -> None:
    """Send orders as the shop's own producer does, which is one of Java's."""
    client = shop.producer(partitioner="murmur2_random")
    for order in some:
        client.produce(
            topic,
            key=key(order),
            value=json.dumps(order),
            timestamp=milliseconds(order["at"]),
            headers=[("type", order["kind"])],
        )
    assert client.flush(30) == 0


def _misplaced(shop: LabShop, topic: str, made: Iterable[Order]) -> list[str]:
    """Return the orders in a topic that stand in another partition than their customer's."""
    customers: Mapping[str, str] = {order["id"]: order["customer"] for order in made}
    records = [(record.document["id"], record.partition) for record in read_records(shop.bootstrap, topic)]
    at = {name: partition_of(Partitioner.MURMUR2, name.encode(), _PARTITIONS) for name in set(customers.values())}
    return [order for order, partition in records if partition != at[customers[order]]]


def _sent_by_id(lab: Lab, unsent: Sequence[Order]) -> Naive:
    """Return where a script that keys by the order's id puts what is missing, on a topic of its own."""
    shop, topic = lab.shop, f"{lab.shop.topic}-script"
    lab.cluster.create_topic(topic, partitions=_PARTITIONS, min_isr=2)
    lab.ends.callback(lab.cluster.delete_topic, topic)
    _send(shop, topic, unsent, lambda order: order["id"])
    elsewhere = [order for order in unsent if _is_elsewhere(order)]
    return Naive(
        answer=naive.NaiveAnswer(
            check="a script that sends what the ledger has and the topic lacks, by the order's id",
            text=f"{len(unsent)} records sent",
            conclusion=f"{len(_misplaced(shop, topic, unsent))} in another partition than their customer's",
        ),
        expected=f"{len(elsewhere)} in another partition than their customer's",
    )


def _is_elsewhere(order: Order) -> bool:
    by_id, by_customer = (
        partition_of(Partitioner.MURMUR2, order[name].encode(), _PARTITIONS) for name in ("id", "customer")
    )
    return by_id != by_customer
