"""Test that wrong answers, and right ones used for what they were not given to, are refused, with the reason."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from makewhole.compensation.approval.answer import Decision, record_answer
from makewhole.model.pipeline import Approval
from makewhole.model.verdict import Verdict
from tests.integration.compensation.hostile import answer, redelivery, refusal
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


def test_an_answer_to_what_was_shown_before_does_not_count_for_what_is_there_now(world: PlanWorld) -> None:
    stale = redelivery(world, above_actions=0)
    fresh = world.plan([world.finding(number, Verdict.MISSING) for number in range(2)])

    assert refusal(lambda: record_answer(world.journal, fresh.id, answer(stale), Approval())) == (
        f"the answer is for another content than plan {fresh.id} has; look at it again"
    )
    assert refusal(lambda: record_answer(world.journal, stale.id, answer(stale), Approval())) == (
        f"plan {stale.id} is rejected and waits for no answer"
    )
    assert refusal(lambda: world.run(stale.id)) == f"plan {stale.id} is rejected: superseded by plan {fresh.id}"
    assert refusal(lambda: world.run(fresh.id)) == f"plan {fresh.id} is awaiting_approval"
    assert world.replayed() == []


def test_an_approval_is_over_when_its_time_is(world: PlanWorld) -> None:
    plan = redelivery(world, above_actions=0)
    long_ago = replace(answer(plan), at=datetime.now(UTC) - timedelta(hours=5))
    record_answer(world.journal, plan.id, long_ago, Approval(expires=timedelta(hours=4)))

    assert refusal(lambda: world.run(plan.id)) == (
        f"the approval of plan {plan.id} has expired; open a new revision and ask again"
    )
    assert world.replayed() == []


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("viewer", "viewer may not answer for plan {}; oncall, lead may"),
        ("ONCALL", "ONCALL may not answer for plan {}; oncall, lead may"),
        ("oncall, lead", "oncall, lead may not answer for plan {}; oncall, lead may"),
        ("", "an answer to plan {} needs a name"),
        (None, "an answer to plan {} needs a name"),
    ],
)
@pytest.mark.parametrize("decision", [Decision.APPROVED, Decision.REJECTED])
def test_who_has_not_the_right_answers_nothing(
    world: PlanWorld, by: str | None, message: str, decision: Decision
) -> None:
    plan = redelivery(world, above_actions=0)
    given = replace(answer(plan), by=by, decision=decision)

    assert refusal(lambda: record_answer(world.journal, plan.id, given, Approval(by=("oncall", "lead")))) == (
        message.format(plan.id)
    )
    assert world.journal_sql("select state from makewhole.plan") == [("awaiting_approval",)]
    assert world.journal_sql("select count(*) from makewhole.approval") == [(0,)]


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("viewer", "viewer may not answer for plan {}; lead, group:payments (anna, ben) may"),
        ("payments", "payments may not answer for plan {}; lead, group:payments (anna, ben) may"),
        ("group:payments", "group:payments may not answer for plan {}; lead, group:payments (anna, ben) may"),
    ],
)
def test_a_right_of_a_group_is_one_of_its_people_and_of_no_other(world: PlanWorld, by: str, message: str) -> None:
    plan = redelivery(world, above_actions=0)
    policy, groups = Approval(by=("lead", "group:payments")), {"payments": ("anna", "ben"), "others": ("viewer",)}
    given = replace(answer(plan), by=by)

    assert refusal(lambda: record_answer(world.journal, plan.id, given, policy, groups)) == message.format(plan.id)
    assert refusal(lambda: world.run(plan.id)) == f"plan {plan.id} is awaiting_approval"
    assert record_answer(world.journal, plan.id, replace(given, by="ben"), policy, groups).reason == "approved by ben"


def test_a_group_that_is_gone_gives_no_person_a_right(world: PlanWorld) -> None:
    plan = redelivery(world, above_actions=0)

    assert refusal(lambda: record_answer(world.journal, plan.id, answer(plan), Approval(by=("group:gone",)))) == (
        "compensation.approval.by names group gone, and the file of MAKEWHOLE_GROUPS has no person in it; no answer "
        "is possible. Write the group there, or name people in the pipeline file"
    )
    assert world.journal_sql("select state from makewhole.plan") == [("awaiting_approval",)]
    timed_out = replace(answer(plan), decision=Decision.TIMED_OUT, by=None)
    recorded = record_answer(world.journal, plan.id, timed_out, Approval(by=("group:gone",)))
    assert recorded.reason == "no answer came in time"


def test_an_answer_is_used_up_and_a_second_one_is_refused(world: PlanWorld) -> None:
    plan = redelivery(world, above_actions=0)
    record_answer(world.journal, plan.id, answer(plan), Approval())
    second = replace(answer(plan), by="viewer", decision=Decision.REJECTED)

    assert refusal(lambda: record_answer(world.journal, plan.id, second, Approval())) == (
        f"plan {plan.id} is approved and waits for no answer"
    )
    world.run(plan.id)
    assert refusal(lambda: record_answer(world.journal, plan.id, second, Approval())) == (
        f"plan {plan.id} is done and waits for no answer"
    )
    assert world.journal_sql("select by, decision from makewhole.approval") == [("oncall", "approved")]
    assert len(world.replayed()) == 3


def test_an_approval_works_for_one_run_and_not_for_another_plan(world: PlanWorld) -> None:
    plan = redelivery(world, above_actions=0)
    record_answer(world.journal, plan.id, answer(plan), Approval())
    world.run(plan.id)
    later = world.plan([world.finding(number, Verdict.MISSING) for number in range(3)])

    assert later.id == f"{plan.id}-r2"
    assert refusal(lambda: world.run(later.id)) == f"plan {later.id} is awaiting_approval"
    assert len(world.replayed()) == 3
