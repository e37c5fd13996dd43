"""Copies whose effect cannot be deleted, the whole way: found, taken back once, proven, certified, and let be."""

import json

import pytest
from confluent_kafka import Consumer, TopicPartition

from makewhole.compensation.plan_window import compensate_window, plan_window, verify_window
from makewhole.journal import evidence
from makewhole.journal.database import connect
from makewhole.model.window import WindowState
from makewhole.window.certify import Closed
from makewhole.window.context import WindowContext
from tests.integration.spark.world import STORE_HOP, World, orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

POINT = 'reversals: {{kind: topic, connection: log, topic: {topic}, key: "$.id"}}'
REVERSE = (
    ", compensation: {duplicate: reverse}, "
    'reverse: {to: reversals, value: {id: "{{ key }}", amount: "{{ -row.amount }}"}}'
)


def test_rows_written_twice_are_taken_back_once_and_the_window_is_certified_twice(world: World) -> None:
    topic = prepare(world, hop=REVERSE)
    made = orders(range(10))
    world.trade(made)
    world.write("warehouse", [made[3], made[3], made[7]])

    first, closed = repaired(world, actions=3)

    taken_back = [("O3", -3.5), ("O3", -3.5), ("O7", -7.5)]
    assert sorted(sent(world, topic)) == taken_back
    assert (closed.state, outcomes(world, first)) == (WindowState.CERTIFIED, {"O3": "reversed", "O7": "reversed"})
    assert closed.certificate is not None
    assert closed.certificate.body["how"]["findings"] == {"duplicate: reversed": 2}
    assert set(world.manifests(first)) == {"outbox", "orders", "warehouse"}

    again, second = repaired(world, actions=None)

    assert again.window.revision == 2
    assert outcomes(world, again) == {"O3": "reversed", "O7": "reversed"}
    assert sorted(sent(world, topic)) == taken_back
    assert second.certificate is not None
    assert (second.state, second.certificate.digest) == (WindowState.CERTIFIED, closed.certificate.digest)


def test_records_sent_twice_are_taken_back_in_the_window_that_they_fall_into(world: World) -> None:
    topic = prepare(world, ledger_hop=REVERSE)
    made = orders(range(10))
    world.trade(made)
    world.send([made[3]])
    first, closed = repaired(world, actions=1)
    assert (closed.state, outcomes(world, first)) == (WindowState.CERTIFIED, {"O3": "reversed"})

    world.trade(orders(range(100, 105), 1))
    world.send([{**made[3], "at": orders([3], 1)[0]["at"]}, {**made[5], "at": orders([5], 1)[0]["at"]}])
    second, closed = repaired(world, actions=2, day=1)

    assert (closed.state, outcomes(world, second)) == (WindowState.CERTIFIED, {"O3": "reversed", "O5": "reversed"})
    assert sorted(sent(world, topic)) == [("O3", "-3.50"), ("O3", "-3.50"), ("O5", "-5.50")]
    assert set(world.found(second, STORE_HOP)) == set()


def test_a_reversal_that_is_not_in_its_topic_leaves_the_window_open(world: World) -> None:
    """The journal says that it was written, and the log that was never cut does not have it."""
    prepare(world, hop=REVERSE)
    made = orders(range(10))
    world.trade(made)
    world.write("warehouse", [made[3]])
    context = world.judge_and_ask_the_gate()
    plan = plan_window(context).plan
    assert plan is not None
    world.journal_sql("update makewhole.plan set state = 'done' where id = %s", plan.id)
    world.journal_sql(
        "insert into makewhole.chunk (plan, target, chunk, actions, place) values (%s, 'reversals', 0, 1, 'nowhere')",
        plan.id,
    )
    verify_window(context, lambda *_: None)

    assert outcomes(world, context) == {"O3": "open"}
    assert world.certify(context).state is WindowState.GAPS


def prepare(world: World, *, hop: str = "", ledger_hop: str = "") -> str:
    topic = world.add_topic()
    world.describe(hop=hop, ledger_hop=ledger_hop, more_points=[POINT.format(topic=topic)])
    if ledger_hop:  # the amounts of records are texts, which are not negated
        path = world.folder / "pipelines" / "shop.yaml"
        path.write_text(path.read_text().replace('"{{ -row.amount }}"', '"-{{ row.amount }}"'))
    return topic


def repaired(world: World, *, actions: int | None, day: int = 0) -> tuple[WindowContext, Closed]:
    """A window on its whole way; `actions` None: nothing is left to do."""
    context = world.judge_and_ask_the_gate(day)
    frozen = plan_window(context)
    assert (frozen.plan and frozen.plan.actions, frozen.refusals) == (actions, ())
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    return context, world.certify(context)


def outcomes(world: World, context: WindowContext) -> dict[str, str]:
    with connect(world.journal) as journal:
        return {item.finding.key: item.outcome for item in evidence.findings(journal, context.window)}


def sent(world: World, topic: str) -> list[tuple[str, object]]:
    """Key and amount of the committed reversals."""
    names = {"bootstrap.servers": world.bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
    consumer = Consumer(names)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(3.0)) is not None:
        value = json.loads(message.value() or b"")
        found.append((value["id"], value["amount"]))
    consumer.close()
    return found
