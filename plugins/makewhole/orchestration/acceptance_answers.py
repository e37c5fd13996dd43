"""Copy a person's answer to an acceptance from Airflow to the journal, and list who may give one."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from makewhole.orchestration.access import requested_name
from makewhole.orchestration.answers import Approvers, answer_of, as_event, question_of
from makewhole.orchestration.steps.accepting import requested_pipeline
from makewhole.orchestration.steps.step import step

if TYPE_CHECKING:
    from makewhole.model.acceptance import Acceptance

logger = logging.getLogger(__name__)


@step
def read_approvers(context: Mapping[str, Any]) -> Approvers:
    """Read from the pipeline of a run who may answer: those with the right, but for the one who asks."""
    from makewhole.compensation.approval.ask import rights_in
    from makewhole.compensation.approval.rights import others_of

    pipeline = requested_pipeline(context)
    people = others_of(rights_in(pipeline), _own_acceptance(context).asked_by)
    return Approvers(people=people, expires=pipeline.approval.expires)


def note_question(context: Mapping[str, Any], approvers: Approvers) -> None:
    """Write nothing: an acceptance holds from the beginning until when it waits."""


@step
def recorded_answer(context: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the answer that the journal has, in Airflow's form; None: a person has to be asked."""
    from makewhole.model.acceptance import AcceptanceState

    known = _own_acceptance(context)
    if known.state is AcceptanceState.AWAITING_APPROVAL:
        return None
    logger.info("acceptance %s is %s already", known.id, known.state.value)
    return as_event(is_approved=known.state is AcceptanceState.STANDING, by=known.decided_by)


@step
def copy_answer(context: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    """Copy a person's answer (or a time-out) to the journal, bound to what was shown."""
    from makewhole.compensation.acceptance.answer import record_answer_to
    from makewhole.config.people.groups import read_groups
    from makewhole.journal.deployment.address import journal_dsn

    if "error" in event:
        return
    asked, answer = _own_acceptance(context), answer_of(question_of(context), event, context["dag_run"].run_id)
    policy = requested_pipeline(context).approval
    answered = record_answer_to(journal_dsn(), asked.id, answer, policy, read_groups())
    logger.info("acceptance %s is %s, by %s", answered.id, answered.state.value, answered.decided_by or "no person")


def _own_acceptance(context: Mapping[str, Any]) -> "Acceptance":
    """Return the acceptance that the run asked for; refuse any other one."""
    from makewhole.compensation.acceptance.answer import require_own_acceptance
    from makewhole.journal.database import connect

    run, pipeline = context["dag_run"].run_id, requested_name(context)
    with connect() as journal:
        return require_own_acceptance(journal, pipeline, run, question_of(context)["acceptance"])
