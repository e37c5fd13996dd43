"""Record a person's answer to findings that another one asks to accept, and take a word back."""

from collections.abc import Mapping
from types import MappingProxyType

from makewhole.compensation.approval.answer import Answer, Decision, OpenQuestion, require_answerable
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
        asked = _locked(journal, acceptance_id)
        state = _STATE[answer.decision]
        if asked.state is state and asked.decided_by == answer.by:
            return asked
        require_answerable(_question(asked), answer, policy, groups)
        if answer.decision is Decision.APPROVED:
            _require_in_time(journal, asked)
            acceptances.end_expired(journal, asked.pipeline)
            _require_still_there(journal, asked)
        acceptances.decide(journal, acceptance_id, state, answer.by, answer.seen)
        return acceptances.get(journal, acceptance_id)


def _locked(journal: PgConnection, acceptance_id: str) -> Acceptance:
    """Lock an acceptance, and its pipeline before it, as all do who write what is accepted."""
    windows.lock_pipeline(journal, acceptances.get(journal, acceptance_id).pipeline)
    return acceptances.get(journal, acceptance_id, is_locked=True)


def require_own_acceptance(journal: PgConnection, pipeline: str, run: str, acceptance_id: str) -> Acceptance:
    """Return the acceptance that a run asked for; refuse an answer for any other one.

    Who may answer differs from pipeline to pipeline, so a run must not answer for what another one asked.

    Raises:
        RefusedError: it is of another run or pipeline.
    """
    own = acceptances.by_request(journal, pipeline, run)
    if own is None or own.id != acceptance_id:
        asked = "asked for none" if own is None else f"asked for {own.id}"
        raise RefusedError(
            f"acceptance {acceptance_id} is not what this run of {pipeline} asked for, which {asked}; the answer is "
            "not taken"
        )
    return own


def _question(asked: Acceptance) -> OpenQuestion:
    return OpenQuestion(
        label=f"acceptance {asked.id}",
        state=asked.state.value,
        is_waiting=asked.state is AcceptanceState.AWAITING_APPROVAL,
        sha256=asked.sha256,
        asked_by=(asked.asked_by,),
    )


def _require_in_time(journal: PgConnection, asked: Acceptance) -> None:
    if acceptances.has_question_expired(journal, asked.id):
        raise RefusedError(f"the question about acceptance {asked.id} has expired; ask again")


def _require_still_there(journal: PgConnection, asked: Acceptance) -> None:
    """Refuse to accept what is not there any more as it was asked: the window was judged again, or another acceptance
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
        known = _locked(journal, acceptance_id)
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
