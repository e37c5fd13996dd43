"""Record a person's answer to a plan: bound to the plan's hash, expiring, good for one run.

Who may answer for a plan may answer for findings that a person asks to accept, by the same rule (`require_answerable`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from makewhole.compensation.approval.rights import Groups, rights_of
from makewhole.journal import plans
from makewhole.journal.database import transaction
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
    """An answer, with the proof of the system where it was given. `sha256`: hash of the plan that the person saw.

    `by` is None only for a time-out; `identity`: the id by which that system knows the person, which is not always the
    name. `seen` is what the person was shown, for the record.
    """

    sha256: str
    decision: Decision
    by: str | None
    identity: str | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    seen: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OpenQuestion:
    """Hold what a person answers: `label` names it, `sha256` is of what was shown, `state` is the one that it has now.
    `asked_by`: who asked, and may not answer; none: that is no matter."""

    label: str
    state: str
    is_waiting: bool
    sha256: str
    asked_by: tuple[str, ...] = ()


def record_answer(
    journal_dsn: str,
    plan_id: str,
    answer: Answer,
    policy: Approval,
    groups: Groups = MappingProxyType({}),
    *,
    asked_by: tuple[str, ...] = (),
) -> Plan:
    """Record the answer and set the plan's state. The same decision again changes nothing. `groups`: those that the
    policy may name; `asked_by`: who asked for the runs of the plan, and may not answer where the policy has
    `four_eyes`.

    Raises:
        RefusedError: the plan waits for no answer, the answer is for other content, or its author may not answer.
    """
    with transaction(journal_dsn) as journal:
        plan = plans.get_plan(journal, plan_id, is_locked=True).plan
        given = plans.approval_of(journal, plan_id)
        if given is not None and given.decision == answer.decision.value and given.sha256 == answer.sha256:
            return plan
        require_answerable(_question(plan, asked_by if policy.four_eyes else ()), answer, policy, groups)
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
    """Refuse an answer for any plan but that of the run's own window revision (pipeline, number, revision).

    Who may approve differs from pipeline to pipeline, so a run must not answer for the plan of another one.

    Raises:
        RefusedError: the plan belongs to another window or revision.
    """
    stored = plans.plan_of_window(journal, *window)
    if stored is None or stored.plan.id != plan_id:
        own = "which has none" if stored is None else f"whose plan is {stored.plan.id}"
        raise RefusedError(
            f"plan {plan_id} is not for window {window[1]} (revision {window[2]}) of {window[0]}, {own}; "
            "the answer is not taken"
        )


def require_own_undo(journal: PgConnection, undone: str, undo: str) -> StoredPlan:
    """Return the undo of a plan; refuse an answer for any other plan than this undo.

    Raises:
        RefusedError: `undo` does not undo the plan.
    """
    stored = plans.undo_of(journal, undone)
    if stored is None or stored.plan.id != undo:
        own = "which has none" if stored is None else f"whose undo is {stored.plan.id}"
        raise RefusedError(f"plan {undo} does not undo plan {undone}, {own}; the answer is not taken")
    return stored


def require_answerable(question: OpenQuestion, answer: Answer, policy: Approval, groups: Groups) -> None:
    """Refuse an answer to what waits for none, for another content, or of a person who may not give it. A time-out has
    no author.

    Raises:
        RefusedError: it is refused.
    """
    label = question.label
    if not question.is_waiting:
        raise RefusedError(f"{label} is {question.state} and waits for no answer")
    if answer.sha256 != question.sha256:
        raise RefusedError(f"the answer is for another content than {label} has; look at it again")
    if answer.decision is Decision.TIMED_OUT:
        return
    if not answer.by:
        raise RefusedError(f"an answer to {label} needs a name")
    rights = rights_of(policy, groups)
    if not any(rights.allow(known) for known in (answer.by, answer.identity) if known):
        raise RefusedError(f"{answer.by} may not answer for {label}; {rights} may")
    if answer.by in question.asked_by:
        raise RefusedError(
            f"{answer.by} asked for {label}, so another person has to answer"
            + (f": {rights}" if rights.by else ", anybody who may run this DAG")
        )


def _question(plan: Plan, asked_by: tuple[str, ...]) -> OpenQuestion:
    return OpenQuestion(
        label=f"plan {plan.id}",
        state=plan.state.value,
        is_waiting=plan.state is PlanState.AWAITING_APPROVAL,
        sha256=plan.sha256,
        asked_by=asked_by,
    )


def _plan_state_after(answer: Answer) -> tuple[PlanState, str]:
    match answer.decision:
        case Decision.APPROVED:
            return PlanState.APPROVED, f"approved by {answer.by}"
        case Decision.REJECTED:
            return PlanState.REJECTED, f"rejected by {answer.by}"
        case _:
            return PlanState.REJECTED, "no answer came in time"
