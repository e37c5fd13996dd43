"""The steps of an undo as Airflow calls them: find the plan, do the step, say what happened."""

import logging
from collections.abc import Mapping
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from makewhole.journal import plans, windows
from makewhole.journal.database import connect
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Remedy
from makewhole.model.plan import Plan, PlanState
from makewhole.model.window import WindowState
from makewhole.orchestration.steps import prepare, step
from makewhole.orchestration.task_ids import APPROVE, RESTORE
from makewhole.window.context import WindowContext, window_context

logger = logging.getLogger(__name__)


@step
def plan(context: Mapping[str, Any]) -> str:
    """Freeze the undo; returns the id of the task to go on with."""
    from makewhole.compensation.approval.ask import what_to_approve
    from makewhole.compensation.undo.reopen import plan_undo

    undone = asked(context)
    there = _window_of(undone)
    undo = plan_undo(there, undone, reverses=bool(context["params"]["reverse"]))
    for sentence in undo.stays:
        logger.warning("%s", sentence)
    if undo.plan is None:
        raise RefusedError(". ".join([f"plan {undone} wrote nothing that could be put back", *undo.stays]))
    logger.info("plan %s: %s; %s", undo.plan.id, _told(undo.plan), undo.plan.state.value)
    reason = context["params"]["reason"]
    about = ([f"Why: {reason}"] if reason else []) + list(undo.stays)
    context["ti"].xcom_push(key="approval", value=what_to_approve(there, undo.plan, about))
    return APPROVE if undo.plan.state is PlanState.AWAITING_APPROVAL else RESTORE


def asked(context: Mapping[str, Any]) -> str:
    """The plan that the form names."""
    return str(context["params"]["plan"]).strip()


def _window_of(plan_id: str) -> WindowContext:
    """The window of a plan, and this process its connections."""
    with connect() as journal:
        stored = plans.get_plan(journal, plan_id)
        prepare(stored.plan.pipeline)
        window = windows.load(journal, stored.plan.pipeline, stored.plan.window, stored.plan.revision)
    return window_context(window)


def _told(undo: Plan) -> str:
    """What an undo does, in numbers."""
    names = {Remedy.RESTORE.value: "rows put back", Remedy.REVERSE.value: "reversing events sent"}
    return ", ".join(f"{count:,} {names[remedy]}" for remedy, count in undo.counts.items())


@step
def restore(context: Mapping[str, Any]) -> int:
    """Put the rows back; returns how many chunks are proven by receipts."""
    from makewhole.compensation.plan_window import carry_out

    undone = asked(context)
    there = _window_of(undone)
    with connect() as journal:
        undo = plans.undo_of(journal, undone)
    if undo is None:
        raise RefusedError(f"plan {undone} has no undo that could be done; ask for it again")
    return len(carry_out(there, undo.plan.id, lambda progress: logger.info("%s", progress)))


@step
def reopen(context: Mapping[str, Any]) -> dict[str, Any]:
    """Say of the window what is true now; red when a row could not be put back.

    Raises:
        AirflowFailException: rows were left as they are.
    """
    from makewhole.compensation.undo.reopen import reopen as open_it

    undone = asked(context)
    there = _window_of(undone)
    reopened = open_it(there, undone, lambda done, total: logger.info("%d of %d gaps are whole", done, total))
    if reopened.state is WindowState.CERTIFIED:
        logger.info("%s stays certified: nothing in it is missing or repeated without the plan", there.window.label)
    else:
        logger.info("%s is %s: %s", there.window.label, reopened.state.value, reopened.reason)
    if reopened.left:
        reasons = "; ".join(f"{count} {reason}" for reason, count in sorted(reopened.left.items()))
        raise AirflowFailException(
            f"of plan {undone}, rows were left as they are ({reasons}). The others are back; see them with "
            "`makewhole plan show`"
        )
    return {"window": reopened.state.value}
