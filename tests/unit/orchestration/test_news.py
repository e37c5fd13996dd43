"""Test what is new to people of what waits, and that nothing is new twice."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from makewhole.journal import waiting
from makewhole.journal.notices import SentNotice
from makewhole.journal.waiting import UnopenedRun
from makewhole.orchestration.notices.decide import fingerprint, news_of, said
from makewhole.orchestration.notices.waiting_items import TodoItem, unopened_items
from makewhole.orchestration.task_ids import OPEN_WINDOW, PLANT_FAULTS

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 28, tzinfo=UTC)


def failed(step: str, reason: str) -> UnopenedRun:
    return UnopenedRun(pipeline="shop", step=step, dag="shop", run="scheduled__1", reason=reason, failed_at=NOW)


def sent(items: Sequence[TodoItem]) -> list[SentNotice]:
    """Return what the journal has of items that were sent: one notice of each subject."""
    notices = {
        item.subject: SentNotice(
            subject=item.subject, fingerprint=fingerprint(item), said=said(item), first_said_at=NOW, said_at=NOW
        )
        for item in items
    }
    return list(notices.values())


def test_two_steps_that_kept_a_window_from_being_opened_are_each_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run breaks in the step that opens a window, the next one in the step before it."""
    runs = [failed(OPEN_WINDOW, "the file has a mistake"), failed(PLANT_FAULTS, "the topic is gone")]
    monkeypatch.setattr(waiting, "unopened", lambda _: runs)
    items = unopened_items(cast(Any, None), "shop", lambda *_: None)

    assert len({item.subject for item in items}) == len(items) == 2
    assert not news_of(items, sent(items), now=NOW, remind=timedelta(days=1), is_at_work=False).is_sent
    assert news_of(items, sent(items[:1]), now=NOW, remind=timedelta(days=1), is_at_work=False).new == (items[1],)
