"""A person's answer to the plan of a run: who may give it, and its way into the journal."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from makewhole.journal import plans
from makewhole.journal.database import connect, journal_dsn
from makewhole.model.pipeline import Approval
from makewhole.orchestration import undo_steps
from makewhole.orchestration.steps import opened, step
from makewhole.orchestration.task_ids import PLAN, UNDO_DAG
from makewhole.window.context import find_pipeline

logger = logging.getLogger(__name__)


def approval_policy(context: Mapping[str, Any]) -> Approval:
    """Who may answer for this run's pipeline, and for how long."""
    return find_pipeline(_pipeline(context)).approval


@step
def who_may_answer(context: Mapping[str, Any]) -> tuple[str, ...]:
    """The user names of those who may answer for this run's pipeline; none: anybody."""
    from makewhole.compensation.approval.ask import rights_in

    return rights_in(_pipeline(context)).people


@step
def given_answer(context: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer that the journal has already, as Airflow tells one; None: a person has to be asked.

    A task that is tried again or cleared after its answer must not ask once more: nobody would look.
    """
    shown = context["ti"].xcom_pull(task_ids=PLAN, key="approval")
    _require_own(context, shown["plan"])
    with connect() as journal:
        given = plans.approval_of(journal, shown["plan"])
    if given is None or given.sha256 != shown["sha256"]:
        return None
    logger.info("plan %s was %s%s already", shown["plan"], given.decision, f" by {given.by}" if given.by else "")
    return {
        "chosen_options": ["Approve" if given.decision == "approved" else "Reject"],
        "params_input": {},
        "responded_at": datetime.now(UTC),
        "responded_by_user": {"id": given.by, "name": given.by} if given.by else None,
    }


@step
def record_answer(context: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    """Copy a person's answer (or a time-out) to the journal, bound to the plan that was shown."""
    from makewhole.compensation.approval.answer import Answer, Decision
    from makewhole.compensation.approval.answer import record_answer as record
    from makewhole.compensation.approval.ask import seen
    from makewhole.config.groups import read_groups

    if "error" in event:
        return
    shown = context["ti"].xcom_pull(task_ids=PLAN, key="approval")
    user = event.get("responded_by_user")
    approved = event["chosen_options"] == ["Approve"]
    decision = Decision.APPROVED if approved else Decision.REJECTED if user else Decision.TIMED_OUT
    if approved and not user:
        raise AirflowFailException("an approval without a name is none; nothing was done")
    _require_own(context, shown["plan"])
    answered = record(
        journal_dsn(),
        shown["plan"],
        Answer(
            sha256=shown["sha256"],
            decision=decision,
            by=user["name"] if user else None,
            at=event["responded_at"] or datetime.now(UTC),
            seen=seen(shown, context["dag_run"].run_id),
        ),
        approval_policy(context),
        read_groups(),
    )
    logger.info("plan %s is %s: %s", answered.id, answered.state.value, answered.reason)


def _is_undo(context: Mapping[str, Any]) -> bool:
    return bool(context["dag"].dag_id == UNDO_DAG)


def _pipeline(context: Mapping[str, Any]) -> str:
    """Of an undo the pipeline of the plan that its form names: a form cannot be changed once the run is there."""
    if not _is_undo(context):
        return str(opened(context)["pipeline"])
    with connect() as journal:
        return plans.get_plan(journal, undo_steps.asked(context)).plan.pipeline


def _require_own(context: Mapping[str, Any], plan: str) -> None:
    """A run answers for its own plan alone."""
    from makewhole.compensation.plan_window import require_own_plan
    from makewhole.compensation.undo.reopen import own_undo

    with connect() as journal:
        if _is_undo(context):
            own_undo(journal, undo_steps.asked(context), plan)
        else:
            there = opened(context)
            require_own_plan(journal, (there["pipeline"], there["window"], there["revision"]), plan)
