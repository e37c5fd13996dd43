"""Test records redelivered to a replay topic: their partitions, their headers, and what the topic cannot take."""

import pytest

from makewhole.model.verdict import Verdict
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def test_a_replay_topic_takes_the_record_into_its_own_partition_with_all_that_it_carried(world: PlanWorld) -> None:
    topic = world.add_topic("retry")
    world.change_hop("flights→warehouse", redeliver_to="retry")
    world.send(range(6))
    frozen = world.freeze_plan([world.finding(number, Verdict.MISSING) for number in (1, 2)])
    receipts = world.run(frozen.plan.id)

    assert world.replayed() == []
    replayed = {message.key_text: message for message in world.records(topic)}
    assert sorted(replayed) == ["K1", "K2"]
    partition, offset = next(at for at, record in world.originals.items() if record.key == b"K2")
    original, message = world.originals[partition, offset], replayed["K2"]
    assert (message.partition, message.value, message.timestamp_ms) == (
        partition,
        original.value,
        original.timestamp_ms,
    )
    assert list(message.headers) == [
        ("trace", b"t2"),
        ("makewhole-plan", frozen.plan.id.encode()),
        ("makewhole-window", f"{world.pipeline.name}/1".encode()),
        ("makewhole-seq", b"1"),
        ("makewhole-origin", f"{world.topic}/{partition}/{offset}".encode()),
        ("makewhole-chunk", b"0"),
    ]
    assert [(receipt.target, receipt.actions) for receipt in receipts] == [("retry", 2)]

    assert world.run(frozen.plan.id) == receipts
    assert len(world.records(topic)) == 2


def test_a_replay_topic_of_fewer_partitions_refuses_what_belongs_into_the_others(world: PlanWorld) -> None:
    topic = world.add_topic("retry", partitions=1)
    world.change_hop("flights→warehouse", redeliver_to="retry")
    world.send(range(2))
    frozen = world.freeze_plan([world.finding(number, Verdict.MISSING) for number in (0, 1)])
    world.run(frozen.plan.id)

    assert [message.key for message in world.records(topic)] == [b"K0"]
    assert world.outcomes(frozen.plan.id) == {
        "K0": ("done", None),
        "K1": ("refused", "unfit: the topic has no partition 1 any more"),
    }
