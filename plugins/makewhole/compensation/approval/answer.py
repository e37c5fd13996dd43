"""A person's answer to a plan: bound to the plan's hash, expiring, good for one run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from makewhole.compensation.approval.rights import Groups, rights_of
from makewhole.journal import leases, plans
from makewhole.journal.plans import StoredPlan
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Approval
from makewhole.model.plan import Plan, PlanState
from makewhole.sql import PgConnection


class Decision(StrEnum):
    APPROVED = "approved"
    REJECTED = "rejected"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was answered, as the place where the person gave it proves. `sha256` is the plan that the person saw.

    `by` is None only for a time-out; `seen` is what else that place says, for the record.
    """

    sha256: str
    decision: Decision
    by: str | None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    seen: Mapping[str, Any] = field(default_factory=dict)


def record_answer(
    journal_dsn: str, plan_id: str, answer: Answer, policy: Approval, groups: Groups = MappingProxyType({})
) -> Plan:
    """Record the answer and move the plan on. The same decision again changes nothing. `groups` are those that the
    policy may name.

    Raises:
        RefusedError: the plan waits for no answer, the answer is for other content, or not from somebody who may.
    """
    with leases.transaction(journal_dsn) as journal:
        plan = plans.get_plan(journal, plan_id, is_locked=True).plan
        given = plans.approval_of(journal, plan_id)
        if given is not None and given.decision == answer.decision.value and given.sha256 == answer.sha256:
            return plan
        _require_answerable(plan, answer, policy, groups)
        plans.put_approval(
            journal,
            plan,
            decision=answer.decision.value,
            by=answer.by,
            at=answer.at,
            expires=policy.expires,
            seen=answer.seen,
        )
        state, reason = _plan_state_after(answer)
        plans.set_state(journal, plan_id, state, reason)
        return plans.get_plan(journal, plan_id).plan


def require_own_plan(journal: PgConnection, window: tuple[str, int, int], plan_id: str) -> None:
    """A run answers for the plan of its own window revision (pipeline, number, revision) and for no other, whatever it
    was handed: who may say yes differs from pipeline to pipeline.

    Raises:
        RefusedError: the plan is another one's.
    """
    stored = plans.plan_of_window(journal, *window)
    if stored is None or stored.plan.id != plan_id:
        own = "which has none" if stored is None else f"whose plan is {stored.plan.id}"
        raise RefusedError(
            f"plan {plan_id} is not for window {window[1]} (revision {window[2]}) of {window[0]}, {own}; "
            "the answer is not taken"
        )


def require_own_undo(journal: PgConnection, undone: str, undo: str) -> StoredPlan:
    """The undo of a plan, if it is this one: a run answers for the undo of the plan that it was asked for, and for no
    other, whatever it was handed.

    Raises:
        RefusedError: it is another one's.
    """
    stored = plans.undo_of(journal, undone)
    if stored is None or stored.plan.id != undo:
        own = "which has none" if stored is None else f"whose undo is {stored.plan.id}"
        raise RefusedError(f"plan {undo} does not undo plan {undone}, {own}; the answer is not taken")
    return stored


def _require_answerable(plan: Plan, answer: Answer, policy: Approval, groups: Groups) -> None:
    if plan.state is not PlanState.AWAITING_APPROVAL:
        raise RefusedError(f"plan {plan.id} is {plan.state.value} and waits for no answer")
    if answer.sha256 != plan.sha256:
        raise RefusedError(f"the answer is for another content than plan {plan.id} has; look at it again")
    if answer.decision is Decision.TIMED_OUT:
        return
    if not answer.by:
        raise RefusedError(f"an answer to plan {plan.id} needs a name")
    rights = rights_of(policy, groups)
    if not rights.allow(answer.by):
        raise RefusedError(f"{answer.by} may not answer for plan {plan.id}; {rights} may")


def _plan_state_after(answer: Answer) -> tuple[PlanState, str]:
    match answer.decision:
        case Decision.APPROVED:
            return PlanState.APPROVED, f"approved by {answer.by}"
        case Decision.REJECTED:
            return PlanState.REJECTED, f"rejected by {answer.by}"
        case _:
            return PlanState.REJECTED, "nobody answered in time"
