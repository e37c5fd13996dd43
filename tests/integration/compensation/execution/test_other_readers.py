"""Test that a record that is sent again reaches no reader a second time: other stores, and groups that are not
named."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from makewhole.cli.plan.dry_run import dry_run_document
from makewhole.compensation.approval.page import ApprovalQuestion, approval_page
from makewhole.compensation.execution.look_again import look_again
from makewhole.compensation.execution.pace import PlanProgress
from makewhole.compensation.execution.run_plan import run_plan
from makewhole.model.hops import Hop, Remedies, Remedy, Semantics
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Verdict
from tests.integration.compensation.preview.dry_runs import looked
from tests.integration.compensation.world import PARTITIONS, PlanWorld
from tests.world.topics import commit_group

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

HOP, LAKE_HOP = "flights→warehouse", "flights→lake"
HOLDS = (
    "twice: {} holds the key, and would get it a second time; use upsert, a replay topic, or 'despite' under "
    "'redeliver' if that does no harm"
)
LOADER = "warehouse-loader"


@pytest.fixture
def two_stores(world: PlanWorld) -> PlanWorld:
    """A lake beside the warehouse, which is not repaired."""
    world.sql("create table dw.lake (like dw.departures including all)")
    lake = TablePoint(name="lake", kind=PointKind.STORE, connection="pg", table="dw.lake", key=("id",))
    world.change_points(lake)
    report = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
    hop = Hop(source="flights", target="lake", remedies=report, consumer_group="lake-loader")
    world.pipeline = replace(world.pipeline, hops=(*world.pipeline.hops, hop))
    world.change_hop(HOP, consumer_group=LOADER)
    return world


def test_a_record_is_sent_only_while_no_other_store_has_its_key(two_stores: PlanWorld) -> None:
    world = two_stores
    world.send(range(3))
    load_into_lake(world, ["K1"])
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(3)])
    load_into_lake(world, ["K2"])

    world.run(plan.id)

    assert [record.key_text for record in world.replayed()] == ["K0"]
    assert world.outcomes(plan.id) == {
        "K0": ("done", None),
        "K1": ("refused", HOLDS.format("lake")),
        "K2": ("refused", HOLDS.format("lake")),
    }


def test_the_dry_run_says_what_another_store_has(two_stores: PlanWorld) -> None:
    world = two_stores
    world.send(range(3))
    load_into_lake(world, ["K1"])
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(3)])

    (part,) = looked(world, plan).parts

    assert part.reasons == {Refusal.of_text(HOLDS.format("lake")): 1}


def test_where_one_of_two_stores_that_lack_a_key_catches_up_it_is_not_sent(two_stores: PlanWorld) -> None:
    world = two_stores
    world.remedies(LAKE_HOP, missing=Remedy.REDELIVER)
    world.send(range(2))
    findings = [world.finding(number, Verdict.MISSING, hop) for number in range(2) for hop in (HOP, LAKE_HOP)]
    frozen = world.freeze_plan(findings)
    assert [(action.key, action.before.absent_at) for action in frozen.actions] == [
        ("K0", ("lake", "warehouse")),
        ("K1", ("lake", "warehouse")),
    ]
    world.load_again("K0", copies=1)

    world.run(frozen.plan.id)

    assert [record.key_text for record in world.replayed()] == ["K1"]
    assert world.outcomes(frozen.plan.id) == {"K0": ("refused", HOLDS.format("warehouse")), "K1": ("done", None)}


def test_the_dry_run_and_the_approval_page_name_every_group_that_gets_the_records(world: PlanWorld) -> None:
    world.change_hop(HOP, consumer_group=LOADER, redeliver_despite=("audit",))
    world.send(range(6))
    commit_group(world.bootstrap, LOADER, world.topic, 2)
    commit_group(world.bootstrap, "audit", world.topic, 1)
    plan = world.plan([world.finding(0, Verdict.MISSING)])

    forecast = looked(world, plan)

    place = f"flights (kafka:{world.topic}) is read by group"
    assert [sentence for topic in forecast.topics for sentence in topic.sentences()] == [
        f"{place} audit, 1 behind, no offset in 2 partitions",
        f"{place} {LOADER}, 0 behind, no offset in 2 partitions",
    ]
    question = ApprovalQuestion(
        plan=plan, label="a window", about=(), who="anna", dry_run=forecast, dry_run_at=datetime.now(UTC)
    )
    lines = approval_page(question).body.splitlines()
    at = lines.index("Who gets the records:")
    assert lines[at + 2 : at + 4] == [
        f"- flights (kafka:{world.topic}) is read by group audit, 1 behind, no offset in 2 partitions",
        f"- flights (kafka:{world.topic}) is read by group {LOADER}, 0 behind, no offset in 2 partitions",
    ]
    assert [topic["groups"] for topic in dry_run_document(forecast)["topics"]] == [
        [
            {"group": "audit", "lag": 1, "records": 1, "unread": 2},
            {"group": LOADER, "lag": 0, "records": 0, "unread": 2},
        ]
    ]


def test_a_plan_that_sends_nothing_has_no_readers_to_name(world: PlanWorld) -> None:
    world.remedies(HOP, missing=Remedy.UPSERT)
    world.send(range(1))

    assert looked(world, world.plan([world.finding(0, Verdict.MISSING)])).topics == ()


@pytest.mark.parametrize("harmless", ["despite", "version", "upsert"])
def test_a_store_that_takes_a_record_again_without_harm_is_not_asked(two_stores: PlanWorld, harmless: str) -> None:
    world = two_stores
    if harmless == "despite":
        world.change_hop(HOP, redeliver_despite=("lake-loader",))
    elif harmless == "version":
        world.change_points(replace(world.table_point("lake"), version="delay"))
    else:
        world.change_hop(LAKE_HOP, semantics=Semantics.UPSERT)
    world.send([1])
    load_into_lake(world, ["K1"])
    plan = world.plan([world.finding(1, Verdict.MISSING)])

    world.run(plan.id)

    assert [record.key_text for record in world.replayed()] == ["K1"]


def test_a_group_that_the_pipeline_does_not_know_stops_the_plan_with_the_line_to_write(world: PlanWorld) -> None:
    world.change_hop(HOP, consumer_group=LOADER)
    world.send([0, 3, 6])
    commit_group(world.bootstrap, LOADER, world.topic, 3)
    findings = [world.finding(0, Verdict.MISSING)]
    assert world.freeze(findings).plan is not None
    commit_group(world.bootstrap, "audit", world.topic, 1)

    frozen = world.freeze(findings)

    assert frozen.plan is None
    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(
            RefusalCode.TWICE,
            "group audit reads flights, and nothing says what a second copy does there; write 'consumer_group: "
            "audit' on the hop that it loads, or 'redeliver: {to: source, despite: [audit]}' on hop flights→warehouse "
            "if it does no harm, or use upsert or a replay topic",
        )
    ]
    assert world.journal_sql("select outcome from makewhole.finding where revision = 2") == [("refused",)]

    world.change_hop(HOP, redeliver_despite=("audit",))
    assert world.freeze(findings).plan is not None


def test_a_group_that_comes_after_the_plan_was_made_stops_its_run(world: PlanWorld) -> None:
    world.change_hop(HOP, consumer_group=LOADER)
    world.send([0])
    commit_group(world.bootstrap, LOADER, world.topic, 1)
    plan = world.plan([world.finding(0, Verdict.MISSING)])
    commit_group(world.bootstrap, "late", world.topic, 1)

    world.run(plan.id)

    assert world.replayed() == []
    assert world.outcomes(plan.id) == {
        "K0": (
            "refused",
            "twice: late reads flights, which was not so when the plan was made; run the window again",
        )
    }


def test_upsert_and_a_replay_topic_ask_no_reader(two_stores: PlanWorld) -> None:
    world = two_stores
    world.send([0])
    load_into_lake(world, ["K0"])
    commit_group(world.bootstrap, "audit", world.topic, 1)
    world.remedies(HOP, missing=Remedy.UPSERT)
    assert len(world.freeze_plan([world.finding(0, Verdict.MISSING)]).actions) == 1

    world.remedies(HOP, missing=Remedy.REDELIVER)
    world.add_topic("retry")
    world.change_hop(HOP, redeliver_to="retry")
    plan = world.plan([world.finding(0, Verdict.MISSING)])
    world.run(plan.id)

    assert world.outcomes(plan.id) == {"K0": ("done", None)}


def test_a_replay_topic_of_two_stores_is_read_by_both(two_stores: PlanWorld) -> None:
    world = two_stores
    world.add_topic("retry")
    for hop in (HOP, LAKE_HOP):
        world.change_hop(hop, redeliver_to="retry")
    world.send([0])
    load_into_lake(world, ["K0"])
    plan = world.plan([world.finding(0, Verdict.MISSING)])

    world.run(plan.id)

    assert world.outcomes(plan.id) == {"K0": ("refused", HOLDS.format("lake"))}


def load_into_lake(world: PlanWorld, keys: Sequence[str]) -> None:
    """Write rows of the lake as its loader does."""
    for key in keys:
        world.sql("insert into dw.lake (id, delay) values (%s, 1)", key)


def test_a_group_that_begins_to_read_while_a_plan_runs_stops_what_is_left(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_again, "_READERS_SECONDS", 0.0)
    world.change_hop(HOP, consumer_group=LOADER)
    world.send(range(15))
    for partition in range(PARTITIONS):
        commit_group(world.bootstrap, LOADER, world.topic, 5, partition)
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(15)])

    def join(progress: PlanProgress) -> None:
        if progress.chunks_done == 1:
            commit_group(world.bootstrap, "newcomer", world.topic, 0)

    run_plan(world.journal, plan.id, world.targets, join)

    outcomes = list(world.outcomes(plan.id).values())
    assert outcomes.count(("done", None)) == 5
    refused = next(reason for outcome, reason in outcomes if outcome == "refused")
    assert (refused or "").startswith("twice: newcomer reads flights, which was not so when the plan was made")
