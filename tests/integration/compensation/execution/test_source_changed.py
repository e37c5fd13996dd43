"""Test that a table is written only while the source says what it said: it is looked at again before each chunk."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from makewhole.journal.database import connect
from makewhole.model.hops import Remedy, Semantics
from makewhole.model.refusal import Refusal
from makewhole.model.verdict import Finding, Verdict
from makewhole.window.opening.observe import observe, read_topic_state, topic_logs
from tests.integration.compensation.preview.dry_runs import looked
from tests.integration.compensation.world import PARTITIONS, PlanWorld
from tests.world.topics import producer

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

HOP = "flights→warehouse"
KEPT = "arrived: a record of the key came to flights at {place} after the window was judged"


def test_a_row_whose_record_comes_before_the_run_is_not_moved_aside(world: PlanWorld) -> None:
    """The loader writes nothing then, because it has the row already: without it the key would be lost."""
    world.remedies(HOP, unexpected=Remedy.QUARANTINE)
    for number in range(3):
        world.load_again(f"K{number}", copies=1)
    _observe(world)
    plan = world.plan([world.finding(number, Verdict.UNEXPECTED) for number in range(3)])
    place = _send(world, "K1", {"id": "K1", "delay": 1})
    reason = KEPT.format(place=place)
    assert [part.reasons for part in looked(world, plan).parts] == [{Refusal.of_text(reason): 1}]

    world.run(plan.id)

    assert [row[0] for row in world.store()] == ["K1"]
    assert world.outcomes(plan.id) == {"K0": ("done", None), "K1": ("refused", reason), "K2": ("done", None)}


def test_a_row_that_the_ledger_gets_before_the_run_is_not_moved_aside(world: PlanWorld) -> None:
    hop = "outbox→warehouse"
    ledger, _ = world.pipeline.hops
    straight = replace(ledger, target="warehouse", remedies=replace(ledger.remedies, unexpected=Remedy.QUARANTINE))
    world.pipeline = replace(world.pipeline, hops=(straight,))
    for number in range(2):
        world.load_again(f"K{number}", copies=1)
    plan = world.plan([world.finding(number, Verdict.UNEXPECTED, hop) for number in range(2)])
    world.sql('insert into ops.outbox (id, body, at) values (\'K1\', \'{"id": "K1", "delay": 1}\', now())')

    world.run(plan.id)

    assert [row[0] for row in world.store()] == ["K1"]
    assert world.outcomes(plan.id) == {"K0": ("done", None), "K1": ("refused", "arrived: outbox holds the key now")}


def test_a_key_that_is_deleted_before_the_run_is_not_written(world: PlanWorld) -> None:
    """The loader has nothing to delete when the deletion comes, so that the row would stay for ever."""
    world.remedies(HOP, missing=Remedy.UPSERT)
    world.change_hop(HOP, semantics=Semantics.UPSERT)
    world.change_points(replace(world.topic_point(), key=("kafka.key",)))
    world.send([1, 2])
    _observe(world)
    plan = world.plan([_with_latest(world, number) for number in (1, 2)])
    place = _send(world, "K1", None)

    world.run(plan.id)

    assert [row[0] for row in world.store()] == ["K2"]
    assert world.outcomes(plan.id) == {"K1": ("refused", KEPT.format(place=place)), "K2": ("done", None)}


def test_a_key_that_is_sent_again_before_the_run_is_not_written_beside_its_loader(world: PlanWorld) -> None:
    """Its loader has yet to read the record, and inserts: the key would be there twice."""
    world.remedies(HOP, missing=Remedy.UPSERT)
    world.send([1])
    _observe(world)
    plan = world.plan([world.finding(1, Verdict.MISSING)])
    place = _send(world, "K1", {"id": "K1", "delay": 1})

    world.run(plan.id)

    assert world.store() == []
    assert world.outcomes(plan.id) == {"K1": ("refused", KEPT.format(place=place))}


def test_a_second_attempt_leaves_the_same_rows_alone(world: PlanWorld) -> None:
    world.remedies(HOP, unexpected=Remedy.QUARANTINE)
    world.load_again("K1", copies=1)
    _observe(world)
    plan = world.plan([world.finding(1, Verdict.UNEXPECTED)])
    _send(world, "K1", {"id": "K1", "delay": 1})
    receipts = world.run(plan.id)

    assert world.run(plan.id) == receipts
    assert [receipt.actions for receipt in receipts] == [0]
    assert [row[0] for row in world.store()] == ["K1"]


def _observe(world: PlanWorld) -> None:
    with (
        connect(world.journal) as journal,
        topic_logs([world.topic_point()], world.connections) as logs,
    ):
        states = {name: read_topic_state(log) for name, log in logs.items()}
        observe(journal, world.pipeline, world.connections, states, {})


def _send(world: PlanWorld, key: str, value: Mapping[str, object] | None) -> str:
    """Send a record as the producer does when it catches up; return its place."""
    places: list[str] = []
    client = producer(world.bootstrap)
    client.produce(
        world.topic,
        key=key,
        value=None if value is None else json.dumps(value),
        partition=int(key[1:]) % PARTITIONS,
        on_delivery=lambda _, message: places.append(f"{message.partition()}:{message.offset()}"),
    )
    assert client.flush(30) == 0
    return places[0]


def _with_latest(world: PlanWorld, number: int) -> Finding:
    finding = world.finding(number, Verdict.MISSING)
    return replace(finding, evidence={**finding.evidence, "latest": finding.evidence["source"][0]})
