"""Judge the window of an undone plan again, and open it where it is not whole any more.

The undo itself is run as any plan is, by `execution.run_plan`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import plan_progress, plans
from makewhole.journal.database import connect
from makewhole.model.errors import RefusedError
from makewhole.model.plan import PlanState
from makewhole.model.refusal import Refusal
from makewhole.model.window import WindowState
from makewhole.signing.keys import SigningKey
from makewhole.window.certifying.certify import certify_again
from makewhole.window.context import WindowContext


@dataclass(frozen=True, kw_only=True)
class ReopenedWindow:
    """The state of an undone plan's window. `not_restored`: number of rows that were not put back, by refusal."""

    state: WindowState
    reason: str | None
    not_restored: Mapping[Refusal, int]


def reopen_window(
    context: WindowContext, undone: str, progress: Callable[[int, int], None], key: SigningKey
) -> ReopenedWindow:
    """Judge the window of an undone plan again, and open it where it is not whole any more.

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
        not_restored = Counter(refusal for *_, refusal in plan_progress.refused_keys(journal, undo.plan.id))
        because = f"plan {undone} was undone by plan {undo.plan.id}"
        closed = certify_again(
            journal, context.pipeline, context.window, context.storage, key, because, also_older=True
        )
    return ReopenedWindow(state=closed.state, reason=closed.reason, not_restored=not_restored)
