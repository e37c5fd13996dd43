"""Copy a person's answer to the plan of a run from Airflow to the journal, and list who may give one."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.steps.undoing import requested_plan
from makewhole.orchestration.steps.window_of_run import opened_window
from makewhole.orchestration.task_ids import PLAN, pipeline_of_dag, undo_dag_id

if TYPE_CHECKING:
    from makewhole.compensation.approval.answer import Answer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Approvers:
    """User names of the people who may answer (none: anybody), and the time they have."""

    people: tuple[str, ...]
    expires: timedelta


@step
def read_approvers(context: Mapping[str, Any]) -> Approvers:
    """Read from the pipeline of a run who may answer for its plan.

    Raises:
        AirflowFailException: no person could, as all who may have asked for the run.
    """
    from makewhole.compensation.approval.ask import rights_in
    from makewhole.compensation.approval.rights import others_of

    pipeline = _pipeline(context)
    rights, askers = rights_in(pipeline), _asked_by(context) if pipeline.approval.four_eyes else ()
    people = others_of(rights, *askers)
    if rights.by and not people:
        raise RefusedError(
            f"{' and '.join(askers)} asked for this run, and compensation.approval has four_eyes: another person has "
            "to answer, and `by` names none. Name one there, then clear this task"
        )
    return Approvers(people=people, expires=pipeline.approval.expires)


def question_of(context: Mapping[str, Any]) -> dict[str, str]:
    """Return what the task `plan` of the same run asks about.

    Raises:
        AirflowFailException: it asks nothing.
    """
    shown: dict[str, str] | None = context["ti"].xcom_pull(task_ids=PLAN, key="approval")
    if shown is None:
        raise AirflowFailException(
            "the task `plan` of this run left no question: it was marked as a success by hand, or its XCom was "
            "removed. Nothing was asked or written. Clear `plan`, and what comes after it runs again with it"
        )
    return shown


@step
def note_question(context: Mapping[str, Any], approvers: Approvers) -> None:
    """Write until when the plan of a run waits for an answer."""
    from makewhole.journal import plans
    from makewhole.journal.database import connect

    shown = question_of(context)
    with connect() as journal:
        plans.note_question(journal, shown["plan"], datetime.now(UTC) + approvers.expires)


@step
def recorded_answer(context: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the answer that the journal has, in Airflow's form; None: a person has to be asked.

    A task that is tried again or cleared after its answer must not ask once more: the question would not be seen.
    """
    from makewhole.journal import plans
    from makewhole.journal.database import connect

    shown = question_of(context)
    _require_own_plan(context, shown["plan"])
    with connect() as journal:
        given = plans.approval_of(journal, shown["plan"])
    if given is None or given.sha256 != shown["sha256"]:
        return None
    logger.info("plan %s was %s%s already", shown["plan"], given.decision, f" by {given.by}" if given.by else "")
    return as_event(is_approved=given.decision == "approved", by=given.by)


@step
def copy_answer(context: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    """Copy a person's answer (or a time-out) to the journal, bound to the plan that was shown."""
    from makewhole.compensation.approval.answer import record_answer
    from makewhole.config.people.groups import read_groups
    from makewhole.journal.deployment.address import journal_dsn

    if "error" in event:
        return
    shown = question_of(context)
    answer = answer_of(shown, event, context["dag_run"].run_id)
    _require_own_plan(context, shown["plan"])
    policy, groups, asked_by = _pipeline(context).approval, read_groups(), _asked_by(context)
    answered = record_answer(journal_dsn(), shown["plan"], answer, policy, groups, asked_by=asked_by)
    logger.info("plan %s is %s: %s", answered.id, answered.state.value, answered.reason)


def as_event(*, is_approved: bool, by: str | None) -> dict[str, Any]:
    """Return an answer that the journal has in Airflow's form."""
    return {
        "chosen_options": ["Approve" if is_approved else "Reject"],
        "params_input": {},
        "responded_at": datetime.now(UTC),
        "responded_by_user": {"id": by, "name": by} if by else None,
    }


def answer_of(shown: Mapping[str, str], event: Mapping[str, Any], run: str) -> "Answer":
    """Return the answer that Airflow's event brings to what was shown; without a person it is a time-out.

    Raises:
        AirflowFailException: it is an approval without a name.
    """
    from makewhole.compensation.approval.answer import Answer, Decision
    from makewhole.compensation.approval.ask import page_record

    user = event.get("responded_by_user")
    approved = event["chosen_options"] == ["Approve"]
    if approved and not user:
        raise AirflowFailException("an approval without a name is none; nothing was done")
    return Answer(
        sha256=shown["sha256"],
        decision=Decision.APPROVED if approved else Decision.REJECTED if user else Decision.TIMED_OUT,
        by=user["name"] if user else None,
        identity=str(user["id"]) if user else None,
        at=event.get("responded_at") or datetime.now(UTC),
        seen=page_record(shown, run),
    )


def _is_undo(context: Mapping[str, Any]) -> bool:
    dag = str(context["ti"].dag_id)
    return dag == undo_dag_id(pipeline_of_dag(dag) or "")


def _pipeline(context: Mapping[str, Any]) -> Pipeline:
    """Read the pipeline of a run; for an undo that of its DAG, and of the plan in its form."""
    from makewhole.window.context import find_pipeline

    if _is_undo(context):
        requested_plan(context)  # refuses one of another pipeline
        return find_pipeline(pipeline_of_dag(context["ti"].dag_id) or "")
    return find_pipeline(opened_window(context)["pipeline"])


def _asked_by(context: Mapping[str, Any]) -> tuple[str, ...]:
    """Return who started this run, and who the run that opened the window which it goes on with."""
    from makewhole.journal import windows
    from makewhole.journal.database import connect

    people = [context["dag_run"].triggering_user_name]
    if not _is_undo(context):
        opened = opened_window(context)
        with connect() as journal:
            window = windows.load(journal, opened["pipeline"], opened["window"], opened["revision"])
            people.append(windows.configuration(journal, window).get("asked_by"))
    return tuple(dict.fromkeys(str(person) for person in people if person))


def _require_own_plan(context: Mapping[str, Any], plan: str) -> None:
    """Refuse an answer for any plan but the run's own."""
    from makewhole.compensation.approval.answer import require_own_plan, require_own_undo
    from makewhole.journal.database import connect

    with connect() as journal:
        if _is_undo(context):
            require_own_undo(journal, requested_plan(context), plan)
        else:
            opened = opened_window(context)
            require_own_plan(journal, (opened["pipeline"], opened["window"], opened["revision"]), plan)
