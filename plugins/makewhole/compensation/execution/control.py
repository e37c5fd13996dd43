"""Pause, resume, slow down or stop a plan; its runner obeys between chunks."""

from collections.abc import Callable

from makewhole.journal import plans
from makewhole.journal.database import transaction
from makewhole.journal.plans import Control
from makewhole.model.errors import RefusedError
from makewhole.model.plan import Plan, PlanState
from makewhole.sql import PgConnection

_ENDED = (PlanState.DONE, PlanState.REFUSED, PlanState.REJECTED)


def pause(journal_dsn: str, plan_id: str, *, by: str, reason: str = "") -> Plan:
    """Pause a plan: its runner waits before the next chunk, the first one included, and keeps its lease.

    Raises:
        RefusedError: the plan has ended.
    """
    return _changed(
        journal_dsn,
        plan_id,
        lambda journal: plans.set_control(journal, plan_id, Control.PAUSE, _reason_text("paused", by, reason)),
    )


def resume(journal_dsn: str, plan_id: str, *, by: str) -> Plan:
    """Resume a paused plan.

    Raises:
        RefusedError: the plan has ended.
    """
    return _changed(
        journal_dsn,
        plan_id,
        lambda journal: plans.set_control(journal, plan_id, Control.RUN, _reason_text("resumed", by)),
    )


def set_rate(journal_dsn: str, plan_id: str, records_per_second: int | None, *, by: str) -> Plan:
    """Set the records per second from the next chunk on; None: the rate of the pipeline file.

    Raises:
        RefusedError: the plan has ended, or the rate is not above 0.
    """
    if records_per_second is not None and records_per_second < 1:
        raise RefusedError(f"{records_per_second} records a second is no rate; pause the plan, or name 1 or more")
    rate = "the pipeline's rate" if records_per_second is None else f"{records_per_second} records a second"
    return _changed(
        journal_dsn,
        plan_id,
        lambda journal: plans.set_rate(journal, plan_id, records_per_second, _reason_text(f"set to {rate}", by)),
    )


def stop(journal_dsn: str, plan_id: str, *, by: str, reason: str) -> Plan:
    """Stop a plan: one that is not done is rejected, and its runner ends before the next chunk.

    What was written stays, with its receipts. A stopped plan does not start again: open a new revision.
    """
    with transaction(journal_dsn) as journal:
        plan = plans.get_plan(journal, plan_id, is_locked=True).plan
        if plan.state not in _ENDED:
            plans.set_state(journal, plan_id, PlanState.REJECTED, _reason_text("stopped", by, reason))
        return plans.get_plan(journal, plan_id).plan


def _changed(journal_dsn: str, plan_id: str, change: Callable[[PgConnection], None]) -> Plan:
    """Apply a change to a plan that has not ended, and return the plan."""
    with transaction(journal_dsn) as journal:
        plan = plans.get_plan(journal, plan_id, is_locked=True).plan
        if plan.state in _ENDED:
            raise RefusedError(f"plan {plan_id} is {plan.state.value}; there is nothing left of it to steer")
        change(journal)
        return plans.get_plan(journal, plan_id).plan


def _reason_text(change: str, by: str, reason: str = "") -> str:
    return f"{change} by {by}: {reason}" if reason else f"{change} by {by}"
