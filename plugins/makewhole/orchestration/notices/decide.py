"""Decide what is new to people: what waits now, against what was sent before."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from makewhole.journal.notices import SentNotice
from makewhole.model.people.notices import Waits
from makewhole.orchestration.notices.waiting_items import TodoItem

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_LATE_SHARE = 0.75
"""The share of a question's time after which it is sent once more."""


@dataclass(frozen=True, kw_only=True)
class News:
    """The news of a pipeline for a channel: items that are `new` or say something else than before, items that are sent
    `again` because they still wait, and what is `over`: nothing while the pipeline is at work. `elsewhere` still waits,
    and is not of the channel's kinds. `is_last`: nothing of these waits any more. It is sent where there is something
    new, again or last."""

    new: tuple[TodoItem, ...]
    again: tuple[TodoItem, ...]
    over: tuple[SentNotice, ...]
    elsewhere: tuple[TodoItem, ...]
    is_last: bool

    @property
    def is_all_clear(self) -> bool:
        """Whether nothing of the pipeline waits any more."""
        return self.is_last and not self.elsewhere

    @property
    def is_sent(self) -> bool:
        """Whether there is anything to send now: what is over waits for the next message, or for the last one."""
        return bool(self.new or self.again or self.is_last)


def news_of(
    items: Sequence[TodoItem],
    sent: Sequence[SentNotice],
    *,
    elsewhere: Sequence[TodoItem] = (),
    now: datetime,
    remind: timedelta,
    is_at_work: bool,
) -> News:
    """Compare what waits now with what was sent; an item is known by its subject, and says something new with another
    headline. `elsewhere`: what waits and does not go through this channel. While a window is repaired or judged again
    (`is_at_work`), what was sent and does not wait now is not over: its end decides."""
    before = {notice.subject: notice for notice in sent}
    new, again = [], []
    for item in items:
        notice = before.get(item.subject)
        if notice is None or notice.fingerprint != fingerprint(item):
            new.append(item)
        elif now - notice.said_at >= remind or _ends_soon(item, notice, now):
            again.append(item)
    waiting = {item.subject for item in items}
    over = () if is_at_work else tuple(notice for notice in sent if notice.subject not in waiting)
    return News(
        new=tuple(new),
        again=tuple(again),
        over=over,
        elsewhere=tuple(elsewhere),
        is_last=bool(over) and not waiting,
    )


def fingerprint(item: TodoItem) -> str:
    """Return a digest over what an item says; times are not in it, nor the run that met the same again."""
    return hashlib.sha256(f"{item.kind.value}\n{said(item)}".encode()).hexdigest()


def said(item: TodoItem) -> str:
    """Return the headline of an item as it is compared: a run that fails each night for the same reason says nothing
    new, nor does a pipeline that is late when the next window is due as well."""
    if item.kind is Waits.LATE:
        return _MOMENT.sub("…", item.headline)
    return item.headline if item.run is None else item.headline.replace(item.run, "…")


def _ends_soon(item: TodoItem, notice: SentNotice, now: datetime) -> bool:
    """Return whether most of a question's time is over since it was sent last."""
    if item.until is None:
        return False
    late = item.since + (item.until - item.since) * _LATE_SHARE
    return notice.said_at < late <= now
