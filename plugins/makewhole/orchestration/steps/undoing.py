"""Run the steps of an undo as tasks of Airflow: find the plan, do the step, log the result.

DAG files import this module, so what the steps need is imported when they run.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from makewhole.model.errors import RefusedError
from makewhole.model.hops import Remedy
from makewhole.model.plan import Plan, PlanState
from makewhole.model.window import WindowState
from makewhole.orchestration.steps.publishing import note_revoked
from makewhole.orchestration.steps.recorded_failure import UncertifiedError, recorded
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.steps.window_of_run import load_own_pipeline, require_whole_journal
from makewhole.orchestration.task_ids import APPROVE, RESTORE, UNDONE_WINDOW, undo_dag_id

if TYPE_CHECKING:
    from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)


@step
def plan() -> str:
    """Freeze the undo of the requested plan; return the id of the task to go on with."""
    from makewhole.compensation.approval.ask import approval_request
    from makewhole.compensation.undo.plan_undo import plan_undo

    context = get_current_context()
    undone = requested_plan(context)
    window_context = _load_context_of(undone)
    undo = plan_undo(window_context, undone, reverses=bool(context["params"]["reverse"]))
    for sentence in undo.remaining:
        logger.warning("%s", sentence)
    if undo.plan is None:
        raise RefusedError(". ".join([f"plan {undone} wrote nothing that could be put back", *undo.remaining]))
    logger.info("plan %s: %s; %s", undo.plan.id, _counts(undo.plan), undo.plan.state.value)
    reason = context["params"]["reason"]
    about = ([f"Why: {reason}"] if reason else []) + list(undo.remaining)
    context["ti"].xcom_push(key="approval", value=approval_request(window_context, undo.plan, about))
    return APPROVE if undo.plan.state is PlanState.AWAITING_APPROVAL else RESTORE


def requested_plan(context: Mapping[str, Any]) -> str:
    """Return the id of the plan that the form of the run names.

    Raises:
        RefusedError: there is none, or it is of another pipeline than the DAG.
    """
    from makewhole.journal import plans
    from makewhole.journal.database import connect

    plan = str(context["params"]["plan"]).strip()
    with connect() as journal:
        name = plans.get_plan(journal, plan).plan.pipeline
    if undo_dag_id(name) != context["ti"].dag_id:
        raise RefusedError(
            f"plan {plan} is of {name}: {context['ti'].dag_id} takes no plan of it back; use {undo_dag_id(name)}"
        )
    return plan


def _load_context_of(plan_id: str) -> "WindowContext":
    """Load the window of a plan, with the connections of its pipeline in this process."""
    from makewhole.journal import plans, windows
    from makewhole.journal.database import connect
    from makewhole.window.context import window_context

    with connect() as journal:
        stored = plans.get_plan(journal, plan_id)
        pipeline = load_own_pipeline(stored.plan.pipeline)
        window = windows.load(journal, stored.plan.pipeline, stored.plan.window, stored.plan.revision)
    return window_context(window, pipeline)


def _counts(undo: Plan) -> str:
    names = {Remedy.RESTORE.value: "rows put back", Remedy.REVERSE.value: "reversing events sent"}
    return ", ".join(f"{count:,} {names[remedy]}" for remedy, count in undo.counts.items())


@step
@recorded
def restore() -> int:
    """Put the rows back; return the number of chunks that receipts prove."""
    from makewhole.compensation.execution.run_plan import run_window_plan
    from makewhole.journal import plans
    from makewhole.journal.database import connect

    context = get_current_context()
    undone = requested_plan(context)
    window_context = _load_context_of(undone)
    window = window_context.window
    place = {"pipeline": window.pipeline, "window": window.number, "revision": window.revision}
    context["ti"].xcom_push(key=UNDONE_WINDOW, value=place)
    with connect() as journal:
        undo = plans.undo_of(journal, undone)
    if undo is None:
        raise RefusedError(f"plan {undone} has no undo that could be done; ask for it again")
    require_whole_journal(window_context)
    return len(run_window_plan(window_context, undo.plan.id, lambda progress: logger.info("%s", progress)))


@step
@recorded
def reopen() -> dict[str, Any]:
    """Judge the window again and set its state, whatever became of the undo; fail the task when a row could not be put
    back, or the undo did not come to its end.

    Raises:
        AirflowFailException: rows were left as they are.
        AirflowSkipException: a person said no, and nothing was written.
    """
    from makewhole.compensation.undo.reopen import is_turned_down, reopen_window
    from makewhole.orchestration.deployment.connections import signing_key

    undone = requested_plan(get_current_context())
    if is_turned_down(undone):
        raise AirflowSkipException(f"the undo of plan {undone} was turned down; nothing was written")
    window_context = _load_context_of(undone)
    reopened = reopen_window(
        window_context, undone, lambda done, total: logger.info("%d of %d gaps are whole", done, total), signing_key()
    )
    if reopened.state is WindowState.CERTIFIED:
        logger.info(
            "%s stays certified: nothing in it is missing or repeated without the plan", window_context.window.label
        )
    else:
        logger.info("%s is %s: %s", window_context.window.label, reopened.state.value, reopened.reason)
    if window_context.pipeline.publish:
        note_revoked(window_context.pipeline, get_current_context())
    undo = reopened.undo
    if undo.state is not PlanState.DONE:
        raise AirflowFailException(
            f"plan {undo.id}, which takes plan {undone} back, is {undo.state.value}"
            f"{f' ({undo.reason})' if undo.reason else ''}: only a part of the rows may be back, and the window is "
            "judged as it is now. Ask for the undo again, or run the window again"
        )
    if reopened.not_restored:
        by_text = sorted((str(refusal), count) for refusal, count in reopened.not_restored.items())
        reasons = "; ".join(f"{count} {text}" for text, count in by_text)
        raise UncertifiedError(
            f"of plan {undone}, rows were left as they are ({reasons}). The others are back; see them with "
            "`makewhole plan show`"
        )
    return {"window": reopened.state.value}
