"""Describe a running plan that no task works on."""

from datetime import datetime

from makewhole.journal import plans
from makewhole.model.plan import Plan
from makewhole.sql import PgConnection


def idle_since(journal: PgConnection, plan: Plan) -> datetime | None:
    """Return since when no task has worked on a plan that is running; None: one does, or it is not running."""
    return plans.idle_plans(journal, [plan.id]).get(plan.id)


def idle_sentence(since: datetime) -> str:
    """Return that no task has worked on a plan since a moment."""
    return f"no task has worked on it since {since:%Y-%m-%d %H:%M} UTC"


def what_to_do(plan: Plan) -> str:
    """Return what to do where no task works on a plan."""
    if plan.undoes is not None:
        return f"clear the task that failed in Airflow, or go on with it: makewhole plan undo {plan.undoes}"
    again = f"makewhole run {plan.pipeline} --window {plan.window}"
    return (
        f"`makewhole windows {plan.pipeline}` names the task that failed; clear it, or judge the window again: {again}"
    )
