"""End a plan for a later revision: fence its runners, copy its receipts to the journal, reject what is left of it."""

import logging
from collections.abc import Mapping
from contextlib import ExitStack

from makewhole.compensation.execution.attempt import Attempt
from makewhole.compensation.execution.content import load_checked
from makewhole.compensation.execution.target_progress import TargetProgress
from makewhole.compensation.execution.targets import Target
from makewhole.compensation.execution.writers import open_writer
from makewhole.journal import plans
from makewhole.journal.database import JournalSession
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.model.plan import PlanState
from makewhole.model.window import Window
from makewhole.sql import PgConnection

logger = logging.getLogger(__name__)
_UNFINISHED = (PlanState.FROZEN, PlanState.AWAITING_APPROVAL, PlanState.APPROVED, PlanState.RUNNING)


def end_earlier_plans(
    journal_dsn: str, journal: PgConnection, window: Window, targets: Mapping[str, Target], *, repairs: bool = True
) -> None:
    """End every plan of earlier revisions of the window. `repairs`: as this one is about to have a plan of its own.

    Raises:
        RefusedError: this one repairs, and a later revision has a plan already, which repairs the window.
        TransientError: one of them is running: wait until it ends.
    """
    for stored in plans.plans_before(journal, window.pipeline, window.number, window.revision):
        if stored.plan.revision > window.revision:
            if not repairs:
                continue
            raise RefusedError(
                f"{window.label} is judged again as revision {stored.plan.revision}, whose plan {stored.plan.id} "
                "repairs it; this revision repairs nothing"
            )
        supersede(journal_dsn, stored.plan.id, targets, window.revision)


def supersede(journal_dsn: str, plan_id: str, targets: Mapping[str, Target], revision: int) -> None:
    """Reject a plan in favour of a later revision, after the journal has learned what it wrote, as far as possible.

    The plan's runners are fenced at every target, and its receipts copied to the journal. A plan of which every chunk
    happened is done.

    Raises:
        TransientError: a runner is at work, or something is away: try again.
    """
    with (
        JournalSession(journal_dsn) as journal,
        Attempt(journal, plan_id) as attempt,
    ):
        is_known, left = True, 1
        with attempt.leased() as session:
            is_begun = plans.get_plan(session, plan_id).began_at is not None
        if is_begun:
            try:
                left = recover_receipts(attempt, targets)
            except PermanentError as error:
                logger.warning("what plan %s wrote cannot be determined any more: %s", plan_id, error)
                is_known = False
        with attempt.leased() as session:
            if plans.get_plan(session, plan_id, is_locked=True).plan.state in _UNFINISHED:
                if left:
                    plans.supersede(session, plan_id, revision)
                else:
                    plans.set_state(session, plan_id, PlanState.DONE)
            plans.settle(session, plan_id, is_unknown=not is_known)


def recover_receipts(attempt: Attempt, targets: Mapping[str, Target]) -> int:
    """Fence the plan's runners at every target, and copy the receipts to the journal.

    Returns the number of chunks that did not happen.

    Raises:
        PermanentError: a target does not know any more.
    """
    left = 0
    with ExitStack() as stack:
        stored, content = load_checked(attempt, targets)
        stack.callback(content.close)
        for name, chunks in content.chunks.items():
            at_target = TargetProgress(
                attempt=attempt,
                content=content,
                target=name,
                log_ends=(stored.log_ends or {}).get(name, {}),
                is_begun=True,
                is_done=stored.plan.state is PlanState.DONE,
            )
            writer = open_writer(stack, targets, at_target)
            left += len(chunks) - at_target.recover(writer)
    return left
