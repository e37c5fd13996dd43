"""Test that no all clear is sent while a window is opened again, or closed, between two questions to the journal."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from makewhole.journal import notices, waiting
from makewhole.journal.notices import SentNotice
from makewhole.model.people.notices import Channel
from makewhole.orchestration.notices import notify as module
from makewhole.orchestration.notices.compose import Message
from makewhole.orchestration.notices.notify import Surroundings, notify

pytestmark = pytest.mark.unit

BEFORE = datetime(2026, 11, 27, tzinfo=UTC)
NOTICE = SentNotice(
    subject="window 3", fingerprint="", said="shop window 3 has 2 gaps", first_said_at=BEFORE, said_at=BEFORE
)


@contextmanager
def journal() -> Iterator[None]:
    yield None


@pytest.mark.parametrize(
    ("at_work", "number"),
    [((False, False), 1), ((False, True), 0), ((True, False), 0), ((True, True), 0)],
    ids=["closed", "opened meanwhile", "closed meanwhile", "open"],
)
def test_an_all_clear_is_sent_only_where_nothing_was_at_work_before_and_after(
    monkeypatch: pytest.MonkeyPatch, at_work: Sequence[bool], number: int
) -> None:
    """Between the two the window is open, so that it is not among what waits."""
    answers, sent = iter(at_work), list[Message]()
    monkeypatch.setattr(module, "connect", journal)
    monkeypatch.setattr(module, "items_of", lambda *_: [])
    monkeypatch.setattr(waiting, "is_at_work", lambda *_: next(answers))
    for name, answer in (("lock", True), ("sent", [NOTICE]), ("forget", None), ("note_outcome", None)):
        monkeypatch.setattr(notices, name, lambda *_, answer=answer: answer)
    settings = SimpleNamespace(channels={"chat": Channel(notifier="", arguments={})}, remind=timedelta(days=7))
    pipeline = cast(Any, SimpleNamespace(name="shop", notify=settings))
    around = Surroundings(
        send=lambda _, message, __: sent.append(message), connections={}, log_url=lambda *_: None, link=""
    )

    assert notify(pipeline, around) == {}

    assert len(sent) == number
