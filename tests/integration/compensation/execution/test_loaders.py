"""Test that nothing is sent, or written, of which a loader has not passed the record by the time when a plan runs."""

from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition

from makewhole.cli.plan.dry_run import dry_run_document
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Verdict
from tests.integration.compensation.preview.dry_runs import looked
from tests.integration.compensation.world import PlanWorld
from tests.world.consumer import consumer
from tests.world.topics import commit_group

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

HOP, LOADER = "flights→warehouse", "warehouse-loader"
PROGRESS = SinkProgress(table="dw.progress", partition="part", offset="next_offset", topic="topic")
SINK = "the sink of warehouse (next_offset of dw.progress)"
DONE = ("done", None)


def still_before(reader: str) -> tuple[str, str]:
    reason = (
        f"its record still stands in front of {reader}, which would load it a second time when it goes on; mend the "
        "consumer, then run this window again"
    )
    return "refused", reason


def keep(world: PlanWorld, offset: int, part: int = 0) -> None:
    """Write how far the sink is."""
    world.sql("delete from dw.progress where part = %s", part)
    world.sql("insert into dw.progress values (%s, %s, %s)", world.topic, part, offset)


@pytest.fixture
def by_progress(world: PlanWorld) -> PlanWorld:
    """The warehouse's sink keeps its own progress, and has passed one record of each of three partitions."""
    world.sql("create table dw.progress (topic text, part int, next_offset bigint)")
    world.change_hop(HOP, consumer_group=LOADER, progress=PROGRESS)
    world.send(range(6))
    for part in range(3):
        keep(world, 1, part)
    return world


@pytest.fixture
def by_group(world: PlanWorld) -> PlanWorld:
    """The warehouse's group has passed one record of one partition of three."""
    world.change_hop(HOP, consumer_group=LOADER)
    world.send(range(6))
    commit_group(world.bootstrap, LOADER, world.topic, 1)
    return world


def test_a_sink_that_was_set_back_or_whose_progress_says_nothing_gets_nothing(by_progress: PlanWorld) -> None:
    world = by_progress
    keep(world, 2)
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(4)])
    keep(world, 1)
    world.sql("delete from dw.progress where part = 1")
    keep(world, 99, 2)

    world.run(plan.id)

    rows = f"part = 1 and topic = '{world.topic}'"
    assert world.outcomes(plan.id) == {
        "K0": DONE,
        "K1": (
            "refused",
            f"not known: dw.progress has no row where {rows}; mend that, then run this window again",
        ),
        "K2": (
            "refused",
            f"not known: {SINK} stands at offset 99 of {world.topic}/2, whose log has 0 to 2; mend that, then run "
            "this window again",
        ),
        "K3": still_before(SINK),
    }
    assert [record.key_text for record in world.replayed()] == ["K0"]


def test_a_group_that_was_set_back_gets_nothing_and_one_without_an_offset_is_as_it_was_judged(
    by_group: PlanWorld,
) -> None:
    world = by_group
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in (0, 1, 3)])

    world.run(plan.id)

    assert world.outcomes(plan.id) == {"K0": DONE, "K1": DONE, "K3": still_before(f"group {LOADER}")}


def test_a_loader_of_another_store_that_has_not_reached_the_record_gets_it_once(by_progress: PlanWorld) -> None:
    world = by_progress
    world.sql("create table dw.lake (like dw.departures including all)")
    world.change_points(TablePoint(name="lake", kind=PointKind.STORE, connection="pg", table="dw.lake", key=("id",)))
    report = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
    lake = Hop(source="flights", target="lake", remedies=report, consumer_group="lake-loader")
    world.pipeline = replace(world.pipeline, hops=(*world.pipeline.hops, lake))
    commit_group(world.bootstrap, "lake-loader", world.topic, 0)
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(2)])

    world.run(plan.id)

    assert world.outcomes(plan.id) == {"K0": still_before("group lake-loader"), "K1": DONE}


def test_no_row_is_written_ahead_of_a_loader_that_inserts(by_progress: PlanWorld) -> None:
    world = by_progress
    world.remedies(HOP, missing=Remedy.UPSERT)
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in (0, 3)])

    world.run(plan.id)

    assert world.outcomes(plan.id) == {"K0": DONE, "K3": still_before(SINK)}
    world.change_points(replace(world.table_point(), version="delay"))
    plan = world.plan([world.finding(3, Verdict.MISSING)])
    world.run(plan.id)
    assert world.outcomes(plan.id) == {"K3": DONE}


def test_the_dry_run_counts_what_is_before_a_sink_by_its_own_progress(by_progress: PlanWorld) -> None:
    """Its group has read everything, as far as Kafka knows; the sink has three records before it."""
    world = by_progress
    with consumer(world.bootstrap, LOADER) as client:
        client.commit(offsets=[TopicPartition(world.topic, at, 2) for at in range(3)], asynchronous=False)
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in (0, 3)])

    forecast = looked(world, plan)

    (part,) = forecast.parts
    assert part.reasons == {Refusal(RefusalCode.OTHER, still_before(SINK)[1]): 1}
    place = f"flights (kafka:{world.topic}) is read by {SINK}, whose group is {LOADER}"
    (topic,) = forecast.topics
    assert list(topic.sentences()) == [f"{place}, 3 behind"]
    (document,) = dry_run_document(forecast)["topics"]
    assert document["groups"] == []
    named = {"hop": HOP, "reader": SINK, "group": LOADER}
    assert document["sinks"] == [
        {**named, "lag": 3, "records": 3, "unread": 0, "unknown": [], "silent": None},
    ]

    world.sql("delete from dw.progress where part > 0")
    keep(world, 99, 2)
    (topic,) = looked(world, plan).topics
    missing = f"dw.progress has no row where part = 1 and topic = '{world.topic}'"
    assert list(topic.sentences()) == [
        f"{place}, how far behind is not known: it stands at offset 99 of partition 2, whose log has 0 to 2, and will "
        f"read what its auto.offset.reset says (group_out_of_range); in the others it is 1 behind; {missing}"
    ]


def test_the_lag_of_a_group_at_an_offset_that_the_log_does_not_have_is_no_number(by_group: PlanWorld) -> None:
    world = by_group
    plan = world.plan([world.finding(0, Verdict.MISSING)])
    commit_group(world.bootstrap, LOADER, world.topic, 99)

    forecast = looked(world, plan)

    refusal = Refusal(
        RefusalCode.NOT_KNOWN,
        f"group {LOADER} stands at offset 99 of {world.topic}/0, whose log has 0 to 2; mend that, then run "
        "this window again",
    )
    assert forecast.parts[0].reasons == {refusal: 1}
    (document,) = dry_run_document(forecast)["topics"]
    out_of_range = {0: {"committed": 99, "start": 0, "end": 2}}
    assert document["groups"] == [
        {"group": LOADER, "lag": None, "records": None, "unread": 2, "out_of_range": out_of_range}
    ]
