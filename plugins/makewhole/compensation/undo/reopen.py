"""Judge the window of an undone plan again, and open it where it is not whole any more.

The undo itself is run as any plan is, by `execution.run_plan`.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from makewhole.compensation.approval.answer import Decision
from makewhole.compensation.execution.attempt import Attempt
from makewhole.compensation.execution.supersede import recover_receipts
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import plan_progress, plans
from makewhole.journal.database import JournalSession, connect
from makewhole.journal.deployment.address import journal_dsn
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.model.plan import Plan, PlanState
from makewhole.model.refusal import Refusal
from makewhole.model.window import WindowState
from makewhole.signing.keys import SigningKey
from makewhole.window.certifying.certify import certify_again
from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ReopenedWindow:
    """The state of an undone plan's window. `undo`: the plan that took it back, or a part of it; `not_restored`: number
    of rows that were not put back, by refusal."""

    undo: Plan
    state: WindowState
    reason: str | None
    not_restored: Mapping[Refusal, int]


def reopen_window(
    context: WindowContext, undone: str, progress: Callable[[int, int], None], key: SigningKey
) -> ReopenedWindow:
    """Judge the window of an undone plan again, and open it where it is not whole any more. An undo that was stopped,
    or broke off, has put rows back as well.

    The stores decide what is open, not the undo. A later revision that was certified had found the repaired rows
    whole: it is opened as well. The certificates of the window stay in their chain, as what was true when they were
    issued, and are revoked by entries after them.

    Raises:
        RefusedError: no undo of the plan was begun.
        TransientError: its runner is still at work, or a system does not answer.
    """
    undo = _begun_undo(undone)
    if undo.state is not PlanState.DONE:
        _end_runner(context, undo)
    verify_window(context, progress, patience_seconds=0.0)
    with connect() as journal:
        not_restored = Counter(refusal for *_, refusal in plan_progress.refused_keys(journal, undo.id))
        closed = certify_again(
            journal, context.pipeline, context.window, context.storage, key, _because(undone, undo), also_older=True
        )
    return ReopenedWindow(undo=undo, state=closed.state, reason=closed.reason, not_restored=not_restored)


def is_turned_down(undone: str) -> bool:
    """Return whether a person said no to the undo of a plan, or did not answer, and none was begun before."""
    with connect() as journal:
        newest = plans.newest_undo_of(journal, undone)
        answer = None if newest is None else plans.approval_of(journal, newest.plan.id)
        is_begun = plans.begun_undo_of(journal, undone) is not None
    return not is_begun and answer is not None and answer.decision != Decision.APPROVED


def _begun_undo(undone: str) -> Plan:
    with connect() as journal:
        begun, waiting = plans.begun_undo_of(journal, undone), plans.undo_of(journal, undone)
    if begun is None:
        state_text = "not planned" if waiting is None else waiting.plan.state.value
        raise RefusedError(f"the undo of plan {undone} is {state_text}; nothing is said of its window")
    return begun.plan


def _end_runner(context: WindowContext, undo: Plan) -> None:
    """Fence the runner of an undo, which may be in the middle of a chunk, and copy its receipts to the journal."""
    with JournalSession(journal_dsn()) as session, Attempt(session, undo.id) as attempt:
        try:
            recover_receipts(attempt, targets_of(context.pipeline, context.connections))
        except PermanentError as error:
            logger.warning("what plan %s wrote cannot be determined any more: %s", undo.id, error)


def _because(undone: str, undo: Plan) -> str:
    if undo.state is PlanState.DONE:
        return f"plan {undone} was undone by plan {undo.id}"
    why = f" ({undo.reason})" if undo.reason else ""
    return f"plan {undone} was undone in part by plan {undo.id}, which is {undo.state.value}{why}"
