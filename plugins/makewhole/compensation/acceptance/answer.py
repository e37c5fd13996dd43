"""Record a person's answer to findings that another one asks to accept, and take a word back."""

from collections.abc import Mapping
from types import MappingProxyType

from makewhole.compensation.approval.answer import Answer, Decision
from makewhole.compensation.approval.rights import Groups, rights_of
from makewhole.journal import acceptances, windows
from makewhole.journal.database import transaction
from makewhole.model.acceptance import Acceptance, AcceptanceState
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Approval
from makewhole.sql import PgConnection

_NO_GROUPS: Groups = MappingProxyType({})
_STATE: Mapping[Decision, AcceptanceState] = {
    Decision.APPROVED: AcceptanceState.STANDING,
    Decision.REJECTED: AcceptanceState.REJECTED,
    Decision.TIMED_OUT: AcceptanceState.REJECTED,
}


def record_answer_to(
    journal_dsn: str, acceptance_id: str, answer: Answer, policy: Approval, groups: Groups = _NO_GROUPS
) -> Acceptance:
    """Record the answer to an acceptance that waits. The same answer again changes nothing.

    Raises:
        RefusedError: it waits for no answer, the answer is for other content, or its author may not answer: also who
            asked may not.
    """
    with transaction(journal_dsn) as journal:
        asked = acceptances.get(journal, acceptance_id, is_locked=True)
        windows.lock_pipeline(journal, asked.pipeline)
        state = _STATE[answer.decision]
        if asked.state is state and asked.decided_by == answer.by:
            return asked
        _require_answerable(journal, asked, answer)
        if answer.decision is not Decision.TIMED_OUT:
            require_right(asked, answer.by, policy, groups)
        if answer.decision is Decision.APPROVED:
            acceptances.end_expired(journal, asked.pipeline)
            _require_still_there(journal, asked)
        acceptances.decide(journal, acceptance_id, state, answer.by, answer.seen)
        return acceptances.get(journal, acceptance_id)


def _require_answerable(journal: PgConnection, asked: Acceptance, answer: Answer) -> None:
    if asked.state is not AcceptanceState.AWAITING_APPROVAL:
        raise RefusedError(f"acceptance {asked.id} is {asked.state.value} and waits for no answer")
    if answer.sha256 != asked.sha256:
        raise RefusedError(f"the answer is for another content than acceptance {asked.id} has; look at it again")
    if answer.decision is Decision.APPROVED and acceptances.has_question_expired(journal, asked.id):
        raise RefusedError(f"the question about acceptance {asked.id} has expired; ask again")


def require_right(asked: Acceptance, person: str | None, policy: Approval, groups: Groups) -> None:
    """Refuse an answer of a person who may not give it.

    Raises:
        RefusedError: they have no name, no right, or asked for it themselves.
    """
    if not person:
        raise RefusedError(f"an answer to acceptance {asked.id} needs a name")
    rights = rights_of(policy, groups)
    if not rights.allow(person):
        raise RefusedError(f"{person} may not answer for acceptance {asked.id}; {rights} may")
    if person == asked.asked_by:
        raise RefusedError(
            f"{person} asked for acceptance {asked.id}, so another person has to answer"
            + (f": {rights}" if rights.by else ", anybody who may run this DAG")
        )


def _require_still_there(journal: PgConnection, asked: Acceptance) -> None:
    """Refuse a yes to what is not there any more as it was asked: the window was judged again, or another acceptance
    has taken a finding meanwhile.

    Raises:
        RefusedError: it is not.
    """
    newest = windows.newest(journal, asked.pipeline, number=asked.window)[0]
    if newest.revision != asked.revision:
        raise RefusedError(
            f"window {asked.window} of {asked.pipeline} was judged again since (revision {newest.revision}); "
            f"acceptance {asked.id} is of revision {asked.revision}. Ask again for what the newest one found"
        )
    taken = acceptances.taken_meanwhile(journal, asked.id)
    if taken:
        raise RefusedError(
            f"{taken} of the findings of acceptance {asked.id} were accepted meanwhile by another one, or are not open "
            "any more; ask again for those that are left"
        )


def revoke(
    journal_dsn: str,
    acceptance_id: str,
    by: str,
    reason: str,
    policy: Approval,
    groups: Groups = _NO_GROUPS,
) -> Acceptance:
    """Take an acceptance back: its findings are open again. Asked again, it changes nothing.

    Raises:
        RefusedError: it does not stand, the person has no right, or gives no reason.
    """
    with transaction(journal_dsn) as journal:
        known = acceptances.get(journal, acceptance_id, is_locked=True)
        windows.lock_pipeline(journal, known.pipeline)
        if known.state is AcceptanceState.REVOKED and known.revoked_by == by:
            return known
        require_revocable(known, by, reason, policy, groups)
        acceptances.revoke(journal, acceptance_id, by, reason.strip())
        return acceptances.get(journal, acceptance_id)


def require_revocable(known: Acceptance, by: str, reason: str, policy: Approval, groups: Groups) -> None:
    """Refuse to take back what does not stand, or a person who may not.

    Raises:
        RefusedError: it does not stand, the person has no right, or gives no reason.
    """
    if not reason.strip():
        raise RefusedError("a revocation needs a reason: --reason TEXT; it is signed into the chain")
    if known.state is not AcceptanceState.STANDING:
        why = f" by {known.revoked_by}: {known.revoked_because}" if known.revoked_by else ""
        raise RefusedError(f"acceptance {known.id} is {known.state.value}{why}; only one that stands can be revoked")
    rights = rights_of(policy, groups)
    if not by or not rights.allow(by):
        raise RefusedError(f"{by or 'a person without a name'} may not revoke acceptance {known.id}; {rights} may")
