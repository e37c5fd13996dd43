"""Decide which unfinished window a run goes on with before it opens its own, and take one up where it was left.

Duplicates are found against all windows before, so no window is compared before the one before it was. A window that
was compared and then left (the gate could not answer, a repair broke off) holds up no other, but comes first as well.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from makewhole.journal import continuations, windows
from makewhole.journal.continuations import UnfinishedWindow
from makewhole.model.errors import RefusedError, RequestRefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.sql import PgConnection
from makewhole.window.opening.interval import Request, interval_text
from makewhole.window.opening.observe import settled_at
from makewhole.window.opening.open import OpenedWindow, require_offsets

ATTEMPTS_MOST = 5
"""So often a compared window is gone on with unasked; one that later windows wait for is gone on with by every run."""
_UNASKED = timedelta(days=7)  # what a compared window would write after that is for a person to decide


@dataclass(frozen=True, kw_only=True)
class OlderWindow:
    """The window that comes first. `run` is at work on it already, or has to be started."""

    window: UnfinishedWindow
    run: str
    is_worked_on: bool

    def __str__(self) -> str:
        name, after = _name(self.window), "this run's own window comes after it"
        if self.is_worked_on:
            return f"{name} is being worked on by run {self.run}; {after}"
        return f"{name} was left unfinished and is gone on with by run {self.run}; {after}"


def find_older(
    journal: PgConnection, pipeline: Pipeline, request: Request, asked_by: str, is_active: Callable[[str], bool]
) -> OlderWindow | None:
    """Return the oldest window to be finished before the request's own; None: its own may be opened.

    `asked_by` names this try of this run; `is_active` returns whether a run has not ended. A request for an interval
    that is covered already opens no new window and waits for no other.

    Raises:
        RefusedError: the window before was gone on with for this run and was left again, or this run changes nothing.
    """
    known = windows.bounds_near(journal, pipeline.name, request.end)
    is_new = not known or request.end > known[-1].end
    if not is_new or windows.by_request(journal, pipeline.name, request.id) is not None:
        return None
    since = datetime.now(UTC) - 2 * _UNASKED  # none older is gone on with unasked
    for window in continuations.unfinished(journal, pipeline.name, since):
        at_work = next((run for run in window.newest_runs() if is_active(run)), None)
        if at_work is not None and _is_waited_for(window, asked_by):
            return OlderWindow(window=window, run=at_work, is_worked_on=True)
        if at_work is None and _is_continued(window, request, asked_by):
            return OlderWindow(window=window, run=_next_run(window), is_worked_on=False)
    return None


def _is_waited_for(window: UnfinishedWindow, asked_by: str) -> bool:
    """Return whether a window that a run is at comes first. A plan can wait for a person for hours: that holds up
    no other window, and neither does the repair of a compared window that another run is at."""
    return not window.is_compared or (asked_by in window.askers and not window.awaits_approval)


def _is_continued(window: UnfinishedWindow, request: Request, asked_by: str) -> bool:
    """Return whether this run has an abandoned window gone on with.

    Raises:
        RefusedError: later windows wait for it, and this run has done for it what it may.
    """
    is_ours = asked_by in window.askers
    if window.is_compared:
        is_recent = datetime.now(UTC) - window.opened_at < _UNASKED
        return is_recent and not is_ours and not request.plan_only and len(window.askers) < ATTEMPTS_MOST
    if is_ours or request.plan_only:
        raise RefusedError(_blocked(window, is_ours=is_ours))
    return True


def _next_run(window: UnfinishedWindow) -> str:
    """Return the id of the run to start: the same whoever asks, so that two who ask start one."""
    bounds = window.bounds
    return f"continue__{window.pipeline}__{bounds.number}.{bounds.revision}__{len(window.askers) + 1}"


def _name(window: UnfinishedWindow) -> str:
    return f"window {window.bounds.number} ({interval_text(window.bounds)}) of {window.pipeline}"


def _blocked(window: UnfinishedWindow, *, is_ours: bool) -> str:
    why = (
        f"was gone on with by run {window.runs[-1]} and was left again ({window.reason or 'its run ended'})"
        if is_ours
        else "was left unfinished, and a run that changes nothing does not go on with it"
    )
    return (
        f"{_name(window)} {why}. No later window is compared before it: duplicates are found against all windows "
        "before. Mend what the failed task of that run says; the next run goes on with it by itself, and then with its "
        "own window, which covers everything since"
    )


def continue_window(journal: PgConnection, pipeline: Pipeline, number: int, revision: int) -> OpenedWindow:
    """Take an unfinished window up where it was left: the steps that committed are not done again.

    Raises:
        RefusedError: it is finished, has a newer revision, or has no offsets of a topic that the file names now.
    """
    windows.lock_pipeline(journal, pipeline.name)
    window = windows.load(journal, pipeline.name, number, revision)
    unfinished = continuations.unfinished(journal, pipeline.name, window.opened_at, number)
    left = {(unfinished_window.bounds.number, unfinished_window.bounds.revision) for unfinished_window in unfinished}
    if (number, revision) not in left:
        raise RequestRefusedError(
            f"{window.label} is {window.state.value}, or was judged again since; there is nothing left to go on with"
        )
    require_offsets(pipeline, window)
    continuations.reopen(journal, window)
    return OpenedWindow(window=window, settled_at=settled_at(journal, pipeline, window), is_new=False)
