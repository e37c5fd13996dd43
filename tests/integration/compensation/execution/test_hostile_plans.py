"""Test that a changed plan, payload file, target or pipeline gets nothing written, with the reason."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from makewhole.compensation.approval.answer import require_own_plan
from makewhole.compensation.execution.run_plan import run_plan
from makewhole.compensation.execution.targets import targets_of
from makewhole.journal.database import connect as connect_journal
from makewhole.model.errors import CorruptionError
from makewhole.model.plan import Plan
from makewhole.model.verdict import Verdict
from tests.integration.compensation.hostile import redelivery, refusal, reversal
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


# What was frozen


def changed(plan: Plan) -> str:
    return (
        f"plan {plan.id} is not the one that was frozen: its actions were changed in the journal. Nothing is written; "
        "open a new revision of the window"
    )


@pytest.mark.parametrize(
    "change",
    [
        "update makewhole.planned_action set key = 'K99' where seq = 1",
        "update makewhole.action set key = 'K99' where seq = 1",
        "update makewhole.planned_action set key_hash = repeat('f', 32) where seq = 1",
        "update makewhole.planned_action set target = 'warehouse' where seq = 1",
        "update makewhole.planned_action set remedy = 'produce' where seq = 1",
        "update makewhole.planned_action set hop = 'outbox→flights' where seq = 1",
        "update makewhole.planned_action set chunk = 7 where seq = 1",
        "update makewhole.planned_action set before = replace(before, 'kafka:flights', 'kafka:other') where seq = 1",
        "update makewhole.planned_action set before = before || ' ' where seq = 1",
        "delete from makewhole.planned_action where seq = 2",
        "insert into makewhole.planned_action select plan, 3, chunk, remedy, hop, target, key, key_hash, before "
        "from makewhole.planned_action where seq = 2",
        "update makewhole.planned_action set seq = 3 where seq = 0",
        "update makewhole.plan set payload_sha256 = repeat('0', 64)",
    ],
)
def test_a_changed_action_stops_the_whole_plan(world: PlanWorld, change: str) -> None:
    plan = redelivery(world)
    world.journal_sql(change)

    assert refusal(lambda: world.run(plan.id)) == changed(plan)
    assert world.replayed() == []


def test_a_plan_whose_hash_was_changed_with_its_actions_has_no_approval(world: PlanWorld) -> None:
    plan = redelivery(world)
    world.journal_sql("update makewhole.plan set sha256 = repeat('0', 64)")

    assert refusal(lambda: world.run(plan.id)) == (
        f"plan {plan.id} was approved with another content; ask for a new approval"
    )
    assert world.replayed() == []


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("approved", "plan {} has no approval; ask for one"),
        ("frozen", "plan {} has no approval; ask for one"),
        ("running", "plan {} has no approval; ask for one"),
        ("done", "plan {} has no approval; ask for one"),
        ("refused", "plan {} is refused"),
        ("awaiting_approval", "plan {} is awaiting_approval"),
    ],
)
def test_a_state_that_was_written_by_hand_is_no_approval(world: PlanWorld, state: str, message: str) -> None:
    plan = redelivery(world, above_actions=0)
    world.journal_sql("update makewhole.plan set state = %s", state)

    assert refusal(lambda: world.run(plan.id)) == message.format(plan.id)
    assert world.replayed() == []


def test_a_changed_payload_file_is_not_written(world: PlanWorld) -> None:
    plan = redelivery(world)
    path = Path(str(plan.payload_uri))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    assert refusal(lambda: world.run(plan.id), CorruptionError) == (
        f"the payload file {path} is not the one that the plan froze; nothing of it is written. Open a new revision of "
        "the window"
    )
    path.unlink()
    assert "is gone" in refusal(lambda: world.run(plan.id), CorruptionError)
    assert world.replayed() == []


def test_the_payload_file_of_another_plan_is_not_written(world: PlanWorld) -> None:
    plan = redelivery(world)
    other = world.plan([world.finding(2, Verdict.MISSING)])
    shutil.copyfile(str(other.payload_uri), str(plan.payload_uri))
    world.journal_sql(
        "update makewhole.plan set state = 'frozen', reason = null, settled_at = null where id = %s", plan.id
    )

    assert refusal(lambda: world.run(plan.id), CorruptionError).startswith(
        f"the payload file {plan.payload_uri} is not the one that the plan froze"
    )
    world.journal_sql(
        "update makewhole.plan set payload_uri = %s, payload_sha256 = "
        "(select payload_sha256 from makewhole.plan where id = %s) where id = %s",
        other.payload_uri,
        other.id,
        plan.id,
    )
    assert refusal(lambda: world.run(plan.id)) == changed(plan)
    assert world.replayed() == []


# A plan for another pipeline


def test_a_plan_of_another_pipeline_does_not_run_here(world: PlanWorld) -> None:
    plan = redelivery(world)
    there = world.topic_point()
    elsewhere = replace(world.pipeline, name="other", points={"flights": replace(there, topic=f"{there.topic}-other")})

    assert refusal(lambda: run_plan(world.journal, plan.id, targets_of(elsewhere, world.connections))) == (
        f"flights is kafka:{there.topic}-other now and was kafka:{there.topic} when the plan was frozen; open a new "
        "revision of the window"
    )
    assert world.replayed() == []


def test_an_answer_is_not_taken_for_the_plan_of_another_pipeline(world: PlanWorld) -> None:
    """Who may say yes differs: what a run shows and records is the plan of its own window and revision."""
    plan = redelivery(world, above_actions=0)
    with connect_journal(world.journal) as journal:
        require_own_plan(journal, (world.pipeline.name, 1, 1), plan.id)
        for window, own in (
            ((world.pipeline.name, 1, 2), "which has none"),
            (("other", 1, 1), "which has none"),
            ((world.pipeline.name, 1, 1), f"whose plan is {plan.id}"),
        ):
            asked = f"{plan.id}x" if window == (world.pipeline.name, 1, 1) else plan.id
            assert refusal(partial(require_own_plan, journal, window, asked)) == (
                f"plan {asked} is not for window {window[1]} (revision {window[2]}) of {window[0]}, {own}; the answer "
                "is not taken"
            )


# Foreign targets


@pytest.mark.parametrize(
    ("point", "changes", "was", "now"),
    [
        ("flights", {"topic": "payments"}, "kafka:{topic}", "kafka:payments"),
        ("flights", {"connection": "pg"}, "kafka:{topic}", "pg:{topic}"),
        ("warehouse", {"table": "public.users"}, "pg:dw.departures", "pg:public.users"),
    ],
)
def test_a_pipeline_file_that_was_edited_since_redirects_nothing(
    world: PlanWorld, point: str, changes: dict[str, Any], was: str, now: str
) -> None:
    world.send(range(2))
    world.load_again("K1", copies=2)
    findings = [world.finding(0, Verdict.MISSING), world.finding(1, Verdict.DUPLICATE)]
    plan = world.plan(findings)
    edited = replace(world.pipeline.points[point], **changes)
    targets = targets_of(replace(world.pipeline, points={**world.pipeline.points, point: edited}), world.connections)

    assert refusal(lambda: run_plan(world.journal, plan.id, targets)) == (
        f"{point} is {now.format(topic=world.topic)} now and was {was.format(topic=world.topic)} when the plan was "
        "frozen; open a new revision of the window"
    )
    assert (world.replayed(), world.sql("select count(*) from dw.departures")) == ([], [(2,)])


@pytest.mark.parametrize("kind", ["redeliver_to", "reverse"])
def test_a_topic_that_was_taken_out_of_the_file_is_not_written(world: PlanWorld, kind: str) -> None:
    plan = redelivery(world, to="retry") if kind == "redeliver_to" else reversal(world)
    name = "retry" if kind == "redeliver_to" else "reversals"
    topic = world.topic_point(name).topic
    points = {point: known for point, known in world.pipeline.points.items() if point != name}

    targets = targets_of(replace(world.pipeline, points=points), world.connections)

    assert refusal(lambda: run_plan(world.journal, plan.id, targets)) == (
        f"the plan writes to {name}, which is no point of the pipeline or has no connection; open a new revision of "
        "the window"
    )
    assert world.records(topic) == []


def test_a_target_that_is_no_point_is_refused_before_anything_is_written(world: PlanWorld) -> None:
    plan = redelivery(world)
    world.journal_sql(
        "update makewhole.planned_action set target = 'payments', before = '{\"place\":\"kafka:payments\"}'"
    )

    assert refusal(lambda: world.run(plan.id)) == changed(plan)
    assert world.replayed() == []
