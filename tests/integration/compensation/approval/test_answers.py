"""Test the answer of a run's approval task on a real journal: asked for once, however often the task runs."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.model.pipeline import Approval
from makewhole.model.plan import Plan
from makewhole.model.verdict import Verdict
from makewhole.orchestration import answers
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

ANYBODY = Approval(above_actions=0)


@pytest.mark.parametrize(
    ("decision", "option"),
    [(Decision.APPROVED, "Approve"), (Decision.REJECTED, "Reject"), (Decision.TIMED_OUT, "Reject")],
)
def test_an_answer_that_was_given_is_taken_and_not_asked_for_again(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch, decision: Decision, option: str
) -> None:
    plan, context = waiting(world, monkeypatch)
    assert answers.recorded_answer(context) is None
    by = None if decision is Decision.TIMED_OUT else "anna"
    record_answer(world.journal, plan.id, Answer(sha256=plan.sha256, decision=decision, by=by), world.pipeline.approval)

    given = answers.recorded_answer(context)

    assert given is not None
    assert given["chosen_options"] == [option]
    assert given["responded_by_user"] == (None if by is None else {"id": "anna", "name": "anna"})


def test_the_answer_to_another_plan_is_not_taken(world: PlanWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, context = waiting(world, monkeypatch)
    record_answer(
        world.journal,
        plan.id,
        Answer(sha256=plan.sha256, decision=Decision.APPROVED, by="anna"),
        world.pipeline.approval,
    )
    shown = {**context["shown"], "sha256": "0" * 64}
    assert answers.recorded_answer(task_context(world, shown)) is None
    with pytest.raises(AirflowFailException, match="the answer is not taken"):
        answers.recorded_answer(task_context(world, {**context["shown"], "plan": "other"}))


def test_with_four_eyes_who_asked_for_the_run_or_for_its_window_may_not_answer(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, context = waiting(world, monkeypatch, Approval(above_actions=0, by=("anna", "ben", "carl"), four_eyes=True))
    world.journal_sql('update makewhole.window set configuration = configuration || \'{"asked_by": "ben"}\'')
    assert answers.read_approvers(context).people == ("carl",)
    for person in ("anna", "ben"):
        with pytest.raises(
            AirflowFailException,
            match=f"{person} asked for plan {plan.id}, so another person has to answer: anna, ben, carl",
        ):
            answers.copy_answer(context, answers.as_event(is_approved=True, by=person))
    assert world.journal_sql("select state from makewhole.plan") == [("awaiting_approval",)]

    answers.copy_answer(context, answers.as_event(is_approved=True, by="carl"))

    assert world.journal_sql("select by, decision from makewhole.approval") == [("carl", "approved")]


def test_without_four_eyes_who_asked_may_answer(world: PlanWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    _, context = waiting(world, monkeypatch, Approval(above_actions=0, by=("anna",)))
    assert answers.read_approvers(context).people == ("anna",)
    answers.copy_answer(context, answers.as_event(is_approved=True, by="anna"))
    assert world.journal_sql("select by from makewhole.approval") == [("anna",)]


def test_with_four_eyes_and_no_other_person_none_is_asked_and_the_task_says_whom_to_name(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, context = waiting(world, monkeypatch, Approval(above_actions=0, by=("anna",), four_eyes=True))
    with pytest.raises(
        AirflowFailException, match=r"^anna asked for this run, and compensation\.approval has four_eyes: "
    ):
        answers.read_approvers(context)
    context["dag_run"].triggering_user_name = None  # a scheduled run: no person asked for it
    assert answers.read_approvers(context).people == ("anna",)


def waiting(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch, approval: Approval = ANYBODY
) -> tuple[Plan, dict[str, Any]]:
    """A plan that waits for a person, and the context of the task that asks, in a run that anna started."""
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", world.journal)
    world.pipeline = replace(world.pipeline, approval=approval)
    monkeypatch.setattr("makewhole.window.context.find_pipeline", lambda _: world.pipeline)
    world.send(range(2))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(2)])
    return plan, task_context(world, {"plan": plan.id, "sha256": plan.sha256, "subject": "Repair", "body": "it"})


def task_context(world: PlanWorld, shown: dict[str, str]) -> dict[str, Any]:
    """Return what Airflow hands to a task, as far as it is looked at."""
    opened = {"pipeline": world.pipeline.name, "window": 1, "revision": world.revision}

    def pull(task_ids: str, key: str | None = None) -> dict[str, Any]:
        return shown if key == "approval" else opened

    return {
        "ti": SimpleNamespace(xcom_pull=pull, dag_id="makewhole_oncall"),
        "dag_run": SimpleNamespace(run_id="tonight", triggering_user_name="anna"),
        "shown": shown,
    }


@pytest.mark.parametrize(("by", "may"), [("anna", True), ("7", True), ("8", False), ("Anna", False)])
def test_a_person_is_known_by_the_name_or_the_id_of_the_auth_manager(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch, by: str, may: bool
) -> None:
    """Airflow itself holds ids to those who are asked, and with Flask-AppBuilder's users these are numbers."""
    _, context = waiting(world, monkeypatch, Approval(above_actions=0, by=(by,)))
    event = answers.as_event(is_approved=True, by="anna") | {"responded_by_user": {"id": "7", "name": "anna"}}
    with nullcontext() if may else pytest.raises(AirflowFailException, match="anna may not answer"):
        answers.copy_answer(context, event)
    assert world.journal_sql("select by from makewhole.approval") == ([("anna",)] if may else [])


def test_with_four_eyes_who_asked_may_not_answer_by_an_id(world: PlanWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    _, context = waiting(world, monkeypatch, Approval(above_actions=0, by=("7", "8"), four_eyes=True))
    world.journal_sql('update makewhole.window set configuration = configuration || \'{"asked_by": "anna"}\'')
    event = answers.as_event(is_approved=True, by="anna") | {"responded_by_user": {"id": "7", "name": "anna"}}
    with pytest.raises(AirflowFailException, match="anna asked for plan"):
        answers.copy_answer(context, event)
