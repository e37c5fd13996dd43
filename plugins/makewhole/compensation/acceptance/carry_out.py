"""Carry out a person's word: certify the window with its accepted findings, and open again what does not hold."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from makewhole.compensation.acceptance.rows_of_keys import read_key_rows
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import acceptances, windows
from makewhole.journal.acceptances import OpenedAgain, StandingFindings
from makewhole.journal.database import connect
from makewhole.journal.retention.removable import FORGOTTEN
from makewhole.model.acceptance import Acceptance
from makewhole.model.errors import PermanentError, RefusedError, TransientError
from makewhole.model.text import counted
from makewhole.model.window import Window, WindowState
from makewhole.signing.keys import SigningKey
from makewhole.window.certifying.certify import ClosedWindow, certify_again
from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)
ContextOf = Callable[[Window], WindowContext]

_OF_CLOSED = (WindowState.CERTIFIED, WindowState.GAPS, WindowState.NOT_KNOWN)


@dataclass(frozen=True, kw_only=True)
class OpenedWindowAgain:
    """A window of which accepted findings are open again, and the state that it has since."""

    again: OpenedAgain
    closed: ClosedWindow


def accept_findings(acceptance: Acceptance, context_of: ContextOf, key: SigningKey) -> ClosedWindow:
    """Certify the window of an acceptance that stands, or report what keeps it open. Called again it reports the same.

    A finding whose rows were changed since it was asked for is open again; one that is whole by now needs no word.

    Raises:
        RefusedError: the window was judged again since.
    """
    context = _context(acceptance, context_of)
    _end_changed_of(context)
    by = f"{counted(acceptance.findings, 'finding')} accepted by {acceptance.decided_by}"
    return _judged_again(context, f"{by}, and the window is open all the same", key)


def open_again_after(acceptance: Acceptance, context_of: ContextOf, key: SigningKey) -> ClosedWindow:
    """Judge the window of a revoked acceptance again: what it accepted is open."""
    because = f"acceptance {acceptance.id} was revoked by {acceptance.revoked_by} ({acceptance.revoked_because})"
    return _judged_again(_context(acceptance, context_of), because, key)


def open_again(pipeline: str, context_of: ContextOf, key: SigningKey) -> list[OpenedWindowAgain]:
    """Open the windows of a pipeline again in which a person's word does not hold any more: its time is over, the rows
    of a key were changed, or a later window met the key again. Returns them as they are since. A window that cannot be
    looked at stops no other one.

    Raises:
        TransientError: a system does not answer; what is left is opened by the next run.
    """
    with connect() as journal:
        acceptances.end_expired(journal, pipeline)
        standing = acceptances.standing(journal, pipeline)
    for of_window in standing:
        try:
            _end_changed(_context_of_revision(pipeline, of_window, context_of), of_window)
        except PermanentError as error:
            logger.warning("%s, window %d: accepted keys cannot be looked at: %s", pipeline, of_window.window, error)
    with connect() as journal:
        left = acceptances.unanswered(journal, pipeline)
    opened = [_opened(pipeline, again, context_of, key) for again in left]
    return [window for window in opened if window is not None]


def _opened(pipeline: str, again: OpenedAgain, context_of: ContextOf, key: SigningKey) -> OpenedWindowAgain | None:
    with connect() as journal:
        newest = windows.newest(journal, pipeline, number=again.window)[0]
        if newest.revision != again.revision:  # a later revision has judged its keys by itself
            acceptances.set_answered(journal, pipeline, again.window, again.revision)
            return None
    if newest.state not in _OF_CLOSED:
        return None
    context = context_of(newest)
    try:
        _verify(context)
    except PermanentError as error:  # the file has changed, or what was read is gone: by what was judged it is open
        logger.warning("%s cannot be judged again: %s", newest.label, error)
    try:
        return OpenedWindowAgain(again=again, closed=_close_again(context, again.sentence(), key))
    except RefusedError as error:
        logger.info("%s", error)
        return None


def _end_changed_of(context: WindowContext) -> None:
    """End what stands of the keys of a window whose rows were changed."""
    with connect() as journal:
        standing = acceptances.standing(journal, context.pipeline.name)
    for of_window in standing:
        if of_window.window == context.window.number:
            _end_changed(context, of_window)


def _end_changed(context: WindowContext, standing: StandingFindings) -> None:
    """End what stands of keys of a window whose rows are not what they were when they were accepted. Of a hop that the
    file does not have any more nothing is looked at, nor of a key that was erased on request."""
    hops = {hop.name for hop in context.pipeline.hops}
    known = [finding for finding in standing.findings if finding.hop in hops and finding.key != FORGOTTEN]
    rows = read_key_rows(context, known)
    why = "the rows of the key were changed since"
    changed = {(finding.hop, finding.key_hash): why for finding in known if rows.has_changed(finding)}
    if changed:
        with connect() as journal:
            acceptances.end(journal, context.window, changed)


def _context(acceptance: Acceptance, context_of: ContextOf) -> WindowContext:
    with connect() as journal:
        newest = windows.newest(journal, acceptance.pipeline, number=acceptance.window)[0]
    if newest.revision != acceptance.revision or newest.state not in _OF_CLOSED:
        raise RefusedError(
            f"window {acceptance.window} of {acceptance.pipeline} was judged again since (revision {newest.revision}, "
            f"{newest.state.value}); its run says what became of acceptance {acceptance.id}"
        )
    return context_of(newest)


def _context_of_revision(pipeline: str, standing: StandingFindings, context_of: ContextOf) -> WindowContext:
    with connect() as journal:
        return context_of(windows.load(journal, pipeline, standing.window, standing.revision))


def open_again_before(context: WindowContext, context_of: ContextOf, key: SigningKey) -> list[OpenedWindowAgain]:
    """Open windows again as `open_again`, before another one is certified: a system that does not answer is logged, and
    left to the next run. Every face shows such findings as open already.

    Raises:
        TransientError: a system does not say what became of the keys that are accepted in the window itself.
    """
    pipeline = context.pipeline.name
    _end_changed_of(context)
    try:
        return open_again(pipeline, context_of, key)
    except TransientError as error:
        logger.warning("%s: not every accepted finding could be looked at again: %s", pipeline, error)
        return []


def _judged_again(context: WindowContext, because: str, key: SigningKey) -> ClosedWindow:
    """Read the keys of a window's findings again, ask the gate, and certify the window or open it.

    Raises:
        TransientError: a system does not answer; nothing was closed.
        CorruptionError: the chain in the journal is not the one beside the files.
    """
    _verify(context)
    return _close_again(context, because, key)


def _verify(context: WindowContext) -> None:
    verify_window(context, _log_progress, patience_seconds=0.0)


def _close_again(context: WindowContext, because: str, key: SigningKey) -> ClosedWindow:
    window = context.window
    with connect() as journal:
        closed = certify_again(journal, context.pipeline, window, context.storage, key, because)
        acceptances.set_answered(journal, window.pipeline, window.number, window.revision)
    return closed


def _log_progress(done: int, total: int) -> None:
    logger.info("%d of %d gaps are whole", done, total)
