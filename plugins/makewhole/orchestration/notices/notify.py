"""Send what waits for a person to those who are to know: only what is new, through each channel of a pipeline."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import islice

from makewhole.compensation.planning.deadlines import DeadlineCounts, read_deadlines
from makewhole.journal import notices, waiting, windows
from makewhole.journal.database import connect
from makewhole.journal.findings.stored_findings import StoredFindings
from makewhole.journal.notices import SentNotice
from makewhole.model.connection import Connection
from makewhole.model.errors import MakewholeError
from makewhole.model.people.notices import Channel, Waits
from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.notices.compose import Message, message_of
from makewhole.orchestration.notices.decide import News, fingerprint, news_of, said
from makewhole.orchestration.notices.late import late_item
from makewhole.orchestration.notices.waiting_items import (
    LogUrl,
    TodoItem,
    ranked,
    span,
    subject_of_channel,
    waiting_items,
)
from makewhole.sql import PgConnection

logger = logging.getLogger(__name__)
Send = Callable[[Channel, Message, str], None]
_WITH_ORIGINALS = (Waits.GAPS, Waits.REPAIR_STOPPED, Waits.REFUSED, Waits.QUESTION)
_FINDINGS_ASKED = 20_000
_UNTIL_ASKED = timedelta(minutes=15)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """The surroundings that sending needs besides the journal: `send`, the connections of the pipeline by id, the
    address of the log of a task, and the page of Airflow to link to."""

    send: Send
    connections: Mapping[str, Connection]
    log_url: LogUrl
    link: str


def notify(pipeline: Pipeline, around: Surroundings) -> dict[str, str]:
    """Send what is new of a pipeline through each of its channels; return why the others did not take it, by channel.

    What was sent is noted after it was sent, in one transaction that holds the channel: whoever is killed between the
    two sends it once more, and two that run at once send it once. A channel that does not take a message keeps no other
    from theirs: the reason is kept, and the next call tries again.
    """
    channels = {} if pipeline.notify is None else pipeline.notify.channels
    reasons = {name: _through(pipeline, name, around) for name in channels}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _through(pipeline: Pipeline, name: str, around: Surroundings) -> str | None:
    """Send what is new through a channel; return why it was not taken."""
    settings = pipeline.notify
    assert settings is not None
    channel, now = settings.channels[name], datetime.now(UTC)
    with connect() as journal:
        if not notices.lock(journal, pipeline.name, name):
            logger.info("%s: another task sends through %s now", pipeline.name, name)
            return None
        # Each question sees the journal as it is then: a window that was opened again, or closed, between the first and
        # the last of them is among the items of neither state.
        was_at_work = waiting.is_at_work(journal, pipeline.name)
        known = items_of(journal, pipeline, name, around.log_url, now)
        of_channel = [item for item in known if channel.takes(item.kind)]
        items = [item for item in of_channel if not _is_about_to_be_asked(item, now)]
        news = news_of(
            items,
            notices.sent(journal, pipeline.name, name),
            elsewhere=[item for item in known if not channel.takes(item.kind)],
            now=now,
            remind=settings.remind,
            is_at_work=was_at_work or len(items) < len(of_channel) or waiting.is_at_work(journal, pipeline.name),
        )
        if not news.is_sent:
            return None
        details = _details(journal, pipeline, around.connections, (*news.new, *news.again), now)
        message = message_of(pipeline.name, news, details, link=around.link, now=now)
        reason = _try_to_send(around.send, channel, message, place_of(name))
        notices.note_outcome(journal, pipeline.name, name, reason)
        if reason is not None:
            logger.warning("%s: nothing could be sent through %s: %s", pipeline.name, name, reason)
            return reason
        _note(journal, pipeline.name, name, news, now)
    logger.info("%s, through %s: %s", pipeline.name, name, message.subject)
    return None


def place_of(channel: str) -> str:
    """Return the place of a channel in the pipeline file."""
    return f"notify.through.{channel}"


def items_of(journal: PgConnection, pipeline: Pipeline, name: str, log_url: LogUrl, now: datetime) -> list[TodoItem]:
    """Return what waits for a person of a pipeline, the most urgent first. That channel `name` itself does not work is
    for the others."""
    late = late_item(journal, pipeline, now)
    items = [item for item in waiting_items(journal, log_url) if item.pipeline == pipeline.name]
    known = ranked([*items, *([late] if late else [])])
    return [item for item in known if item.subject != subject_of_channel(name)]


def _is_about_to_be_asked(item: TodoItem, now: datetime) -> bool:
    """Return whether an item is a question that its task has not put yet: it has no end, and will have one."""
    return item.kind is Waits.QUESTION and item.until is None and now - item.since < _UNTIL_ASKED


def _try_to_send(send: Send, channel: Channel, message: Message, place: str) -> str | None:
    """Send a message; return why it was not taken."""
    try:
        send(channel, message, place)
    except MakewholeError as error:
        return str(error)
    return None


def _note(journal: PgConnection, pipeline: str, channel: str, news: News, now: datetime) -> None:
    notices.forget(journal, pipeline, channel, [notice.subject for notice in news.over])
    for item in (*news.new, *news.again):
        notices.note(
            journal,
            pipeline,
            channel,
            SentNotice(
                subject=item.subject,
                fingerprint=fingerprint(item),
                said=said(item),
                first_said_at=now,
                said_at=now,
            ),
        )


def _details(
    journal: PgConnection,
    pipeline: Pipeline,
    connections: Mapping[str, Connection],
    items: Iterable[TodoItem],
    now: datetime,
) -> dict[str, str]:
    """Return what an item's window covers, and how long Kafka keeps the originals of its findings."""
    details: dict[str, str] = {}
    deadlines = cache(partial(read_deadlines, pipeline, connections))
    for item in items:
        if item.window is None:
            continue
        [window] = windows.newest(journal, pipeline.name, number=item.window)
        begin = "the beginning" if window.start is None else f"{window.start.astimezone(UTC):%Y-%m-%d %H:%M}"
        details[item.subject] = f"from {begin} to {window.end.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        if item.kind in _WITH_ORIGINALS:
            counts = DeadlineCounts(deadlines())
            findings = islice(StoredFindings(window=window).in_order(journal), _FINDINGS_ASKED)
            counts.add(judged.finding for judged in findings)
            details[item.subject] += _originals(counts, now)
    return details


def _originals(counts: DeadlineCounts, now: datetime) -> str:
    if counts.first is None and not counts.deleted:
        return ""
    gone = f"{counts.deleted:,} originals are gone from Kafka" if counts.deleted else ""
    due = "" if counts.first is None else f"Kafka may delete the first originals in {span(counts.first - now)}"
    return "; " + "; ".join(text for text in (gone, due) if text)
