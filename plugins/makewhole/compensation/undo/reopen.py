"""Judge the window of an undone plan anew, and open it where it is not whole any more.

The undo itself is run as any plan is, by `execution.run_plan`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import plan_progress, plans, windows
from makewhole.journal.database import connect
from makewhole.model.errors import RefusedError
from makewhole.model.plan import PlanState
from makewhole.model.window import Window, WindowState
from makewhole.signing.keys import SigningKey
from makewhole.sql import PgConnection
from makewhole.window.certificate_chain import ChainWriter
from makewhole.window.certify import decide
from makewhole.window.context import WindowContext


@dataclass(frozen=True, kw_only=True)
class ReopenedWindow:
    """The state of an undone plan's window. `not_restored`: number of rows that were not put back, by reason."""

    state: WindowState
    reason: str | None
    not_restored: Mapping[str, int]


def reopen_window(
    context: WindowContext, undone: str, progress: Callable[[int, int], None], key: SigningKey
) -> ReopenedWindow:
    """Judge the window of an undone plan anew, and open it where it is not whole any more.

    The stores decide what is open, not the undo. A later revision that was certified had found the repaired rows
    whole: it is opened as well. The certificates of the window stay in their chain, as what was true when they were
    issued, and are revoked by entries after them.
    """
    with connect() as journal:
        undo = plans.undo_of(journal, undone)
    if undo is None or undo.plan.state is not PlanState.DONE:
        state_text = "not planned" if undo is None else undo.plan.state.value
        raise RefusedError(f"the undo of plan {undone} is {state_text}; nothing is said of its window")
    verify_window(context, progress, patience_seconds=0.0)
    with connect() as journal:
        state, why = decide(journal, context.pipeline, context.window)
        not_restored = Counter(reason for *_, reason in plan_progress.refused_keys(journal, undo.plan.id))
        if state is WindowState.CERTIFIED:
            return ReopenedWindow(state=state, reason=None, not_restored=not_restored)
        reason = f"plan {undone} was undone by plan {undo.plan.id}: {why}"
        chain = ChainWriter(journal=journal, storage=context.storage, key=key)
        chain.begin(context.pipeline.name)
        for window in _windows_to_open(journal, context.window):
            windows.close(journal, window, state, reason)
        revoked = chain.revoke(context.window, state, reason)
        journal.commit()
        chain.publish(revoked)
    return ReopenedWindow(state=state, reason=reason, not_restored=not_restored)


def _windows_to_open(journal: PgConnection, window: Window) -> list[Window]:
    """Return the revision, and the newest one of the window where that is another and certified."""
    [newest] = windows.newest(journal, window.pipeline, number=window.number)
    is_later = newest.revision != window.revision and newest.state is WindowState.CERTIFIED
    return [window, newest] if is_later else [window]
