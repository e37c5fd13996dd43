"""Test that a record which compaction took since the window was judged is not taken for one that never came."""

import json
import time

import pytest

from makewhole.journal.database import connect
from makewhole.model.verdict import Verdict
from makewhole.window.opening.observe import observe, read_topic_state, topic_logs
from tests.integration.compensation.world import BORN_MS, PlanWorld
from tests.world.topics import change_topic, producer

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

_COMPACTED = {"cleanup.policy": "compact", "segment.ms": 1000, "min.cleanable.dirty.ratio": 0.001}


def send(world: PlanWorld, *records: tuple[str, str], partition: int = 0) -> None:
    """Send records into one partition, each its Kafka key and its business key."""
    client = producer(world.bootstrap)
    stamp = BORN_MS + int(time.time() * 1000) % 10**9  # segments are rolled by the times of their records
    for record_key, key in records:
        value = json.dumps({"id": key, "delay": 1})
        client.produce(world.topic, partition=partition, key=record_key, value=value, timestamp=stamp)
    assert client.flush(30) == 0


def until_compacted(world: PlanWorld, *records: tuple[str, str]) -> None:
    """Send records again and again until the log has fewer than were sent."""
    deadline, sent = time.monotonic() + 60, 0
    while len(world.records(world.topic)) >= sent:
        assert time.monotonic() < deadline
        send(world, *records)
        sent += len(records)
        time.sleep(0.5)


@pytest.mark.parametrize(
    ("record_key", "elsewhere"), [("customer", "K9"), ("K8", "K9"), ("K8", "customer")], ids=["customer", "key", "both"]
)
def test_what_compaction_took_behind_the_window_may_have_been_the_key(
    world: PlanWorld, record_key: str, elsewhere: str
) -> None:
    """By the customer as the Kafka key the record of any order is taken; by the order none of another one. Where one
    partition shows that some producer takes the customer, so it may have in the other one."""
    change_topic(world.admin, world.topic, _COMPACTED)
    world.sql(
        "insert into ops.outbox values ('K0', %s, '2013-01-01 00:00:01+00')", json.dumps({"id": "K0", "delay": 0})
    )
    with connect(world.journal) as journal, topic_logs([world.topic_point()], world.connections) as logs:
        states = {name: read_topic_state(log) for name, log in logs.items()}
        observe(journal, world.pipeline, world.connections, states, {})
    plan = world.plan([world.finding(0, Verdict.MISSING, "outbox→flights")])
    send(world, (elsewhere, "K9"), partition=1)
    until_compacted(world, (record_key, "K8"))

    world.run(plan.id)

    outcome, reason = world.outcomes(plan.id)["K0"]
    assert (outcome, reason) == (
        ("done", None)
        if "customer" not in (record_key, elsewhere)
        else (
            "refused",
            f"not known: {world.topic} partition 0 was compacted, by keys that are not known to be those of the file, "
            "so that the key may have arrived there; run the window again",
        )
    )
