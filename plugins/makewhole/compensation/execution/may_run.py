"""Return whether a plan may run, by its state and the approval of its hash."""

from makewhole.journal import plans
from makewhole.journal.plans import StoredApproval
from makewhole.model.errors import RefusedError
from makewhole.model.plan import Plan, PlanState
from makewhole.sql import PgConnection


def require_approved(journal: PgConnection, plan_id: str) -> Plan:
    """Lock and return the plan if it may run: the approval is for its hash. Its content is checked elsewhere.

    A plan that is running may be continued: it has used its approval already.

    Raises:
        RefusedError: it may not run; the message says what is missing.
    """
    plan = plans.get_plan(journal, plan_id, is_locked=True).plan
    reason = why_not_approved(plan, plans.approval_of(journal, plan_id))
    if reason is not None:
        raise RefusedError(reason)
    return plan


def why_not_approved(plan: Plan, approval: StoredApproval | None) -> str | None:
    """Return why a plan may not run with this approval, or without one; None: it may."""
    if plan.state not in (PlanState.FROZEN, PlanState.APPROVED, PlanState.RUNNING, PlanState.DONE):
        return f"plan {plan.id} is {plan.state.value}{': ' + plan.reason if plan.reason else ''}"
    if approval is None or approval.decision not in ("approved", "not_needed"):
        return f"plan {plan.id} has no approval; ask for one"
    if approval.sha256 != plan.sha256:
        return f"plan {plan.id} was approved with another content; ask for a new approval"
    if approval.has_expired and plan.state in (PlanState.FROZEN, PlanState.APPROVED):
        return f"the approval of plan {plan.id} has expired; open a new revision and ask again"
    return None
