"""Accept findings of a shop's windows, as the tasks of Airflow do it."""

import uuid
from collections.abc import Callable
from datetime import datetime

from makewhole.compensation.acceptance.answer import record_answer_to, revoke
from makewhole.compensation.acceptance.ask import AcceptRequest, Asked, ask
from makewhole.compensation.acceptance.carry_out import (
    OpenedWindowAgain,
    accept_findings,
    open_again,
    open_again_after,
)
from makewhole.compensation.approval.answer import Answer, Decision
from makewhole.journal import acceptances
from makewhole.journal.database import connect
from makewhole.model.acceptance import Acceptance, Selection
from makewhole.model.verdict import Cause
from makewhole.model.window import Window
from makewhole.signing.key_files import signing_key_from_environment
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext, window_context
from tests.world.shop import Shop


def asked(
    shop: Shop,
    *names: str,
    window: int = 1,
    by: str = "anna",
    cause: Cause | None = None,
    until: datetime | None = None,
    reason: str = "the record cannot be changed",
    run: str = "",
) -> Asked:
    """Ask that findings be accepted: some by their ids or keys, those of a cause, or all."""
    request = AcceptRequest(
        pipeline="shop",
        window=window,
        selection=Selection(names=names, cause=cause),
        reason=reason,
        until=until,
        asked_by=by,
        run=run or uuid.uuid4().hex,
    )
    return ask(shop.pipeline, request, {}, shop.journal)


def answered(shop: Shop, acceptance: Acceptance, by: str | None, decision: Decision = Decision.APPROVED) -> Acceptance:
    """Answer as a person."""
    answer = Answer(sha256=acceptance.sha256, decision=decision, by=by)
    return record_answer_to(shop.journal, acceptance.id, answer, shop.pipeline.approval)


def carried_out(shop: Shop, acceptance: Acceptance) -> ClosedWindow:
    """Certify the window of an acceptance that stands."""
    return accept_findings(acceptance, _context_of(shop), signing_key_from_environment())


def accepted(
    shop: Shop, *names: str, window: int = 1, until: datetime | None = None
) -> tuple[Acceptance, ClosedWindow]:
    """Accept findings by the word of one person."""
    acceptance = asked(shop, *names, window=window, until=until).acceptance
    return acceptance, carried_out(shop, acceptance)


def revoked(shop: Shop, acceptance: Acceptance, by: str = "ben", reason: str = "it was a mistake") -> ClosedWindow:
    """Take an acceptance back, and judge its window again."""
    taken = revoke(shop.journal, acceptance.id, by, reason, shop.pipeline.approval)
    return open_again_after(taken, _context_of(shop), signing_key_from_environment())


def opened_again(shop: Shop) -> list[OpenedWindowAgain]:
    """Open again what does not hold, as the end of every run does."""
    return open_again("shop", _context_of(shop), signing_key_from_environment())


def stored(shop: Shop, acceptance: Acceptance) -> Acceptance:
    """Read an acceptance."""
    with connect(shop.journal) as journal:
        return acceptances.get(journal, acceptance.id)


def _context_of(shop: Shop) -> Callable[[Window], WindowContext]:
    def context(window: Window) -> WindowContext:
        return window_context(window, shop.pipeline)

    return context
