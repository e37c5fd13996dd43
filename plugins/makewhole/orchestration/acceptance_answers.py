"""Copy a person's answer to an acceptance from Airflow to the journal, and list who may give one."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from makewhole.orchestration.answers import Approvers
from makewhole.orchestration.steps.accepting import requested_pipeline
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.task_ids import PLAN

logger = logging.getLogger(__name__)


@step
def read_approvers(context: Mapping[str, Any]) -> Approvers:
    """Read from the pipeline of a run who may answer: those with the right, but for the one who asks."""
    from makewhole.compensation.acceptance.ask import others_of
    from makewhole.compensation.approval.ask import rights_in

    pipeline = requested_pipeline(context)
    people = others_of(rights_in(pipeline), _asked_by(context))
    return Approvers(people=people, expires=pipeline.approval.expires)


@step
def recorded_answer(context: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the answer that the journal has, in Airflow's form; None: a person has to be asked."""
    from makewhole.journal import acceptances
    from makewhole.journal.database import connect
    from makewhole.model.acceptance import AcceptanceState

    with connect() as journal:
        known = acceptances.get(journal, _shown(context)["acceptance"])
    if known.state is AcceptanceState.AWAITING_APPROVAL:
        return None
    logger.info("acceptance %s is %s already", known.id, known.state.value)
    return {
        "chosen_options": ["Approve" if known.state is AcceptanceState.STANDING else "Reject"],
        "params_input": {},
        "responded_at": datetime.now(UTC),
        "responded_by_user": {"id": known.decided_by, "name": known.decided_by} if known.decided_by else None,
    }


@step
def copy_answer(context: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    """Copy a person's answer (or a time-out) to the journal, bound to what was shown."""
    from makewhole.compensation.acceptance.answer import record_answer_to
    from makewhole.compensation.approval.answer import Answer, Decision
    from makewhole.compensation.approval.ask import page_record
    from makewhole.config.groups import read_groups
    from makewhole.journal.database import journal_dsn

    if "error" in event:
        return
    shown, user = _shown(context), event.get("responded_by_user")
    approved = event["chosen_options"] == ["Approve"]
    if approved and not user:
        raise AirflowFailException("an approval without a name is none; nothing was accepted")
    answer = Answer(
        sha256=shown["sha256"],
        decision=Decision.APPROVED if approved else Decision.REJECTED if user else Decision.TIMED_OUT,
        by=user["name"] if user else None,
        seen=page_record(shown, context["dag_run"].run_id),
    )
    policy = requested_pipeline(context).approval
    answered = record_answer_to(journal_dsn(), shown["acceptance"], answer, policy, read_groups())
    logger.info("acceptance %s is %s, by %s", answered.id, answered.state.value, answered.decided_by or "nobody")


def _shown(context: Mapping[str, Any]) -> dict[str, str]:
    """Return what the task `plan` of the same run asks about."""
    shown: dict[str, str] = context["ti"].xcom_pull(task_ids=PLAN, key="approval")
    return shown


def _asked_by(context: Mapping[str, Any]) -> str:
    from makewhole.journal import acceptances
    from makewhole.journal.database import connect

    with connect() as journal:
        return acceptances.get(journal, _shown(context)["acceptance"]).asked_by
