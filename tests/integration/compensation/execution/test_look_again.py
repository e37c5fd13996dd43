"""Test that what has arrived since the window was judged is not sent: topics and stores are asked before each chunk."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from makewhole.compensation.execution.pace import PlanProgress
from makewhole.compensation.execution.run_plan import run_plan
from makewhole.journal.database import connect
from makewhole.journal.replayed_positions import seen_when_opened
from makewhole.kafka.offsets import TopicLog
from makewhole.model.hops import Semantics
from makewhole.model.plan import Plan
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Finding, Verdict
from makewhole.window.opening.observe import observe, read_topic_state, topic_logs
from tests.integration.compensation.preview.dry_runs import looked
from tests.integration.compensation.world import PARTITIONS, PlanWorld
from tests.world.topics import add_partitions, producer

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

LEDGER_HOP = "outbox→flights"


def test_a_record_that_the_producer_sends_before_the_run_is_not_produced(world: PlanWorld) -> None:
    plan = _to_produce(world, range(3))
    place = _send(world, "K1")

    world.run(plan.id)

    assert _keys(world) == ["K0", "K1", "K2"]
    assert world.outcomes(plan.id) == {
        "K0": ("done", None),
        "K1": (
            "refused",
            f"arrived: a record of the key came to flights at {place} after the window was judged",
        ),
        "K2": ("done", None),
    }


def test_the_dry_run_says_what_has_arrived(world: PlanWorld) -> None:
    plan = _to_produce(world, range(3))
    assert [part.reasons for part in looked(world, plan).parts] == [{}]
    place = _send(world, "K1")

    (part,) = looked(world, plan).parts

    assert part.reasons == {
        Refusal(RefusalCode.ARRIVED, f"a record of the key came to flights at {place} after the window was judged"): 1
    }


def test_a_key_that_the_consumer_loads_before_the_run_is_not_redelivered(world: PlanWorld) -> None:
    world.send(range(3))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(3)])
    world.load_again("K1", copies=1)

    world.run(plan.id)

    assert sorted(record.key_text for record in world.replayed()) == ["K0", "K2"]
    assert world.outcomes(plan.id)["K1"] == ("refused", "arrived: warehouse holds the key now")


def test_a_record_that_the_log_lost_is_not_produced_while_a_table_holds_its_row(world: PlanWorld) -> None:
    """The loader read the record before the log lost it, and would insert its row a second time."""
    plan = _to_produce(world, range(3))
    world.load_again("K1", copies=1)
    refusal = Refusal(
        RefusalCode.TWICE,
        "warehouse holds the key, and would get it a second time; name the 'version' of warehouse if its loader "
        "overwrites, or take the row out first",
    )
    assert [part.reasons for part in looked(world, plan).parts] == [{refusal: 1}]

    world.run(plan.id)

    assert _keys(world) == ["K0", "K2"]
    assert world.outcomes(plan.id)["K1"] == ("refused", str(refusal))


def test_a_record_is_produced_where_the_loader_overwrites_the_row(world: PlanWorld) -> None:
    world.change_points(replace(world.table_point(), version="delay"))
    plan = _to_produce(world, range(2))
    world.load_again("K1", copies=1)

    world.run(plan.id)

    assert _keys(world) == ["K0", "K1"]


def test_each_chunk_looks_again_and_its_own_records_are_no_arrivals(world: PlanWorld) -> None:
    """Check that the next chunk sees what comes while the plan runs, and a second record of a key that the plan
    wrote."""
    plan = _to_produce(world, range(15))  # three chunks of five, by key: K0, K1, K10–K12 | K13, K14, K2–K4 | K5–K9
    sent: list[str] = []

    def catch_up(progress: PlanProgress) -> None:
        late = {1: "K2", 2: "K9"}.get(progress.chunks_done)
        if late is not None:
            _send(world, late)
            sent.append(late)

    run_plan(world.journal, plan.id, world.targets, catch_up)

    assert sent == ["K2", "K9"]
    refused = {key for key, (outcome, _) in world.outcomes(plan.id).items() if outcome == "refused"}
    assert refused == {"K2", "K9"}
    assert _keys(world) == sorted(f"K{number}" for number in range(15))


def test_no_chunk_is_produced_into_a_topic_that_got_partitions_while_the_plan_runs(world: PlanWorld) -> None:
    plan = _to_produce(world, range(15))

    def grow(progress: PlanProgress) -> None:
        if progress.chunks_done == 1:
            add_partitions(world.admin, world.topic, PARTITIONS + 1)

    run_plan(world.journal, plan.id, world.targets, grow)

    done = ["K0", "K1", "K10", "K11", "K12"]
    assert _keys(world) == done
    stale = (
        f"stale: the topic has {PARTITIONS + 1} partitions now and had {PARTITIONS} when the plan was frozen: the key "
    )
    stale += "may belong into another one; run the window again"
    outcomes = world.outcomes(plan.id)
    assert {key: reason for key, (_, reason) in outcomes.items() if key not in done} == {
        key: stale for key in outcomes if key not in done
    }


def test_a_chunk_sees_what_came_in_a_partition_that_the_topic_got_while_the_plan_runs(world: PlanWorld) -> None:
    world.send(range(15))
    _observe(world)
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(15)])

    def grow(progress: PlanProgress) -> None:
        if progress.chunks_done == 1:
            add_partitions(world.admin, world.topic, PARTITIONS + 1)
            _send(world, "K9", partition=PARTITIONS)

    run_plan(world.journal, plan.id, world.targets, grow)

    reason = f"arrived: a record of the key came to flights at {PARTITIONS}:0 after the window was judged"
    refused = {key: outcome for key, outcome in world.outcomes(plan.id).items() if outcome[0] == "refused"}
    assert refused == {"K9": ("refused", reason)}


def test_a_chunk_sees_what_came_behind_the_chunk_before_while_its_transaction_ends(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer about the stable end is that of the question before, as if a marker were under way."""
    plan, asked = _to_produce(world, range(15)), dict[TopicLog, Any]()
    stable_ends = TopicLog.stable_ends

    def late(log: TopicLog) -> Any:
        now = stable_ends(log)
        before, asked[log] = asked.get(log, now), now
        return before

    def catch_up(progress: PlanProgress) -> None:
        if progress.chunks_done == 1:
            _send(world, "K2")

    monkeypatch.setattr(TopicLog, "stable_ends", late)

    run_plan(world.journal, plan.id, world.targets, catch_up)

    assert [key for key, (outcome, _) in world.outcomes(plan.id).items() if outcome == "refused"] == ["K2"]
    assert _keys(world) == sorted(f"K{number}" for number in range(15))


def test_a_newer_record_of_the_key_is_not_followed_by_the_older_one(world: PlanWorld) -> None:
    world.change_hop("flights→warehouse", semantics=Semantics.UPSERT)
    world.send([1])
    (position,) = world.originals
    finding = world.finding(1, Verdict.MISSING)
    latest = {"partition": position[0], "offset": position[1]}
    _observe(world)
    plan = world.plan([_with_latest(finding, latest)])
    place = _send(world, "K1", delay=99)

    world.run(plan.id)

    reason = f"arrived: a record of the key came to flights at {place} after the window was judged"
    assert world.outcomes(plan.id) == {"K1": ("refused", reason)}
    assert len(_keys(world)) == 2


def test_a_tail_that_is_gone_is_not_taken_for_an_empty_one(world: PlanWorld) -> None:
    plan = _to_produce(world, range(1))
    for number in range(6):
        _send(world, f"other {number}")
    ends = {part: len([r for r in world.records(world.topic) if r.partition == part]) for part in range(PARTITIONS)}
    partition = max(ends, key=lambda part: ends[part])
    at = TopicPartition(world.topic, partition, ends[partition])
    admin = world.admin  # it must live until the future has its answer
    admin.delete_records([at])[at].result(30)

    world.run(plan.id)

    outcome, reason = world.outcomes(plan.id)["K0"]
    assert (outcome, reason) == (
        "refused",
        f"not known: {world.topic} partition {partition} lost offsets from 0 on before they were looked at, so that "
        "the key may have arrived there; run the window again",
    )


def test_what_was_there_when_the_window_was_judged_is_not_looked_at(world: PlanWorld) -> None:
    """A record of the key from before is what was judged; only what came since has arrived."""
    world.send([1])
    plan = world.plan([world.finding(1, Verdict.MISSING)])
    _observe(world)

    world.run(plan.id)

    assert [record.key_text for record in world.replayed()] == ["K1"]


def test_the_journal_keeps_the_leader_epochs_of_what_was_seen(world: PlanWorld) -> None:
    world.send(range(2))
    world.plan([world.finding(1, Verdict.MISSING)])
    _observe(world)

    assert world.window is not None
    with connect(world.journal) as journal:
        seen = seen_when_opened(journal, world.window, "flights")

    assert seen is not None
    assert seen.offsets == {0: 1, 1: 1, 2: 0}
    assert seen.leader_epochs == {0: ((0, 1),), 1: ((0, 1),)}


def _to_produce(world: PlanWorld, numbers: range) -> Plan:
    """A plan to produce what the topic lacks; the topic was observed when its window was opened."""
    for number in numbers:
        body = json.dumps({"id": f"K{number}", "delay": number})
        world.sql("insert into ops.outbox values (%s, %s, '2013-01-01 00:00:01+00')", f"K{number}", body)
    _observe(world)
    return world.plan([world.finding(number, Verdict.MISSING, LEDGER_HOP) for number in numbers])


def _observe(world: PlanWorld) -> None:
    with (
        connect(world.journal) as journal,
        topic_logs([world.topic_point()], world.connections) as logs,
    ):
        states = {name: read_topic_state(log) for name, log in logs.items()}
        observe(journal, world.pipeline, world.connections, states, {})
    if world.window is not None:
        world.journal_sql("update makewhole.window set opened_at = clock_timestamp()")


def _send(world: PlanWorld, key: str, delay: float = 1, partition: int = -1) -> str:
    """Send a record as the producer does when it catches up; return its place."""
    places: list[str] = []
    client = producer(world.bootstrap)
    client.produce(
        world.topic,
        key=key,
        value=json.dumps({"id": key, "delay": delay}),
        partition=partition,
        on_delivery=lambda _, message: places.append(f"{message.partition()}:{message.offset()}"),
    )
    assert client.flush(30) == 0
    return places[0]


def _keys(world: PlanWorld) -> list[str]:
    return sorted(record.key_text for record in world.records(world.topic))


def _with_latest(finding: Finding, latest: Mapping[str, int]) -> Finding:
    return replace(finding, evidence={**finding.evidence, "latest": latest})
