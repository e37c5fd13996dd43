"""Test that records are sent as their topic takes them: how large batches are, and how old records."""

import json
from dataclasses import replace

import pytest

from makewhole.compensation.execution.run_plan import run_plan
from makewhole.kafka.replay import ReplayWriter, now_ms
from makewhole.model.errors import PermanentError
from makewhole.model.verdict import Verdict
from tests.integration.compensation.world import BORN_MS, PARTITIONS, PlanWorld
from tests.world.topics import change_topic

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

NUMBERS, RECORD_BYTES = range(0, 30, PARTITIONS), 8_000


@pytest.fixture
def large(world: PlanWorld) -> PlanWorld:
    """Originals of eight kilobytes each, in one partition; the topic takes batches of twenty."""
    world.send(NUMBERS)
    for position, record in world.originals.items():
        value = json.loads(record.value or b"") | {"extra": "x" * RECORD_BYTES}
        world.originals[position] = replace(record, value=json.dumps(value).encode())
    change_topic(world.admin, world.topic, {"max.message.bytes": 20_000})
    return world


def test_batches_are_no_larger_than_the_topic_takes(large: PlanWorld) -> None:
    plan = large.plan([large.finding(number, Verdict.MISSING) for number in NUMBERS])

    large.run(plan.id)

    assert set(large.outcomes(plan.id).values()) == {("done", None)}
    assert len(large.replayed()) == len(NUMBERS)


def test_a_limit_that_is_lowered_while_a_plan_runs_stops_it_with_its_reason(
    large: PlanWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = large.plan([large.finding(number, Verdict.MISSING) for number in NUMBERS])
    really_write = ReplayWriter.write

    def lowered(*arguments, **named):  # type: ignore[no-untyped-def]
        change_topic(large.admin, large.topic, {"max.message.bytes": 2_000})
        return really_write(*arguments, **named)

    monkeypatch.setattr(ReplayWriter, "write", lowered)

    with pytest.raises(PermanentError, match=rf"max\.message\.bytes of {large.topic} is lower now"):
        run_plan(large.journal, plan.id, large.targets)
    assert large.replayed() == []


def test_what_retention_would_delete_is_sent_with_the_present_time_and_names_its_own(world: PlanWorld) -> None:
    """The originals are of 2013, and come from the archive."""
    change_topic(world.admin, world.topic, {"retention.ms": 604_800_000})
    began = now_ms()
    world.send(range(2))
    (recent,) = (position for position, record in world.originals.items() if record.key == b"K1")
    world.originals[recent] = replace(world.originals[recent], timestamp_ms=began - 3_600_000)
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(2)])

    world.run(plan.id)

    sent = {record.key_text: record for record in world.replayed()}
    assert began <= sent["K0"].timestamp_ms <= now_ms()
    assert dict(sent["K0"].headers)["makewhole-timestamp"] == str(BORN_MS).encode()
    assert sent["K1"].timestamp_ms == began - 3_600_000
    assert "makewhole-timestamp" not in dict(sent["K1"].headers)


@pytest.mark.parametrize("settings", [{"retention.ms": -1}, {"cleanup.policy": "compact"}])
def test_what_no_retention_deletes_keeps_its_time(world: PlanWorld, settings: dict[str, object]) -> None:
    world.send(range(1))
    change_topic(world.admin, world.topic, settings)
    plan = world.plan([world.finding(0, Verdict.MISSING)])

    world.run(plan.id)

    assert [record.timestamp_ms for record in world.replayed()] == [BORN_MS]
