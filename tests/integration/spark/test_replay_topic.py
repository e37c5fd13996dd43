"""A replay topic beside the pipeline, and one that is itself a point with a hop: the whole way, twice."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from makewhole.compensation.plan_window import compensate_window, plan_window, verify_window
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.integration.spark.world import LEDGER_HOP, STORE_HOP, World, orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

RETRY = 'retry: {{kind: topic, connection: log, topic: {topic}, key: "$.id"}}'
BY_KEY = "by_key: {kind: store, connection: db, table: warehouse, key: id}"


def test_a_replay_topic_that_no_hop_joins_is_written_and_never_compared(world: World) -> None:
    topic = world.add_topic()
    world.describe(hop=", redeliver_to: retry", more_points=[RETRY.format(topic=topic)])
    made = orders(range(10))
    world.trade(made, unloaded=made[4:6])

    first = repaired(world, day=0)

    assert set(world.manifests(first)) == {"outbox", "orders", "warehouse"}
    assert set(first.window.ranges) == {"orders"}
    assert in_topic(world, topic) == [b"O4", b"O5"]
    assert in_topic(world, world.topic) == [order["id"].encode() for order in made]


def test_a_replay_topic_with_a_hop_is_judged_and_its_replays_are_no_strangers(world: World) -> None:
    """The table stands in the file twice, the second time without `time`: what never passed the replay topic is then
    not asked for there."""
    topic = world.add_topic()
    world.describe(
        hop=", redeliver_to: retry",
        allow_empty="true",
        more_points=[RETRY.format(topic=topic), BY_KEY],
        more_hops=["- {from: retry, to: by_key}"],
    )
    made = orders(range(10))
    world.trade(made, unloaded=made[4:6])
    repaired(world, day=0)

    world.trade(orders(range(100, 105), 1))
    second, closed = world.whole_way(1)

    assert world.counts(second, "retry→by_key").matched == 2
    assert [world.found(second, hop) for hop in (LEDGER_HOP, STORE_HOP, "retry→by_key")] == [{}, {}, {}]
    assert closed.state is WindowState.CERTIFIED


def repaired(world: World, day: int) -> WindowContext:
    """A window whose two missing orders were redelivered and loaded."""
    context = world.judge_and_ask_the_gate(day)
    frozen = plan_window(context)
    assert frozen.plan is not None
    assert [action.target for action in frozen.actions] == ["retry", "retry"]
    compensate_window(context, lambda _: None)
    world.write("warehouse", orders([4, 5]))
    verified = verify_window(context, lambda *_: None)
    assert (verified.whole, verified.gaps) == (2, 2)
    assert world.certify(context).state is WindowState.CERTIFIED
    return context


def in_topic(world: World, topic: str) -> list[bytes | None]:
    """The keys of a topic's committed records, in order."""
    consumer = Consumer(
        {"bootstrap.servers": world.bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    keys = []
    while (message := consumer.poll(3.0)) is not None:
        assert message.error() is None
        keys.append(message.key())
    consumer.close()
    return keys
