"""Write the message about what waits: a subject, a text, the same as HTML, and a link."""

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from makewhole.model.text import counted
from makewhole.orchestration.notices.decide import News
from makewhole.orchestration.notices.waiting_items import TodoItem, lines_of

_SUBJECT_LENGTH = 150
Details = Mapping[str, str]
"""Texts that are added to items, by their subjects: the interval of its window, how long Kafka keeps the originals."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message to people. `items` are data for notifiers that take some."""

    pipeline: str
    subject: str
    text: str
    html: str
    link: str
    is_all_clear: bool
    items: list[dict[str, Any]]

    def template_values(self) -> dict[str, Any]:
        """Return what the arguments of a notifier may name, as `makewhole.subject` and so on."""
        return vars(self)


def message_of(pipeline: str, news: News, details: Details, *, link: str, now: datetime) -> Message:
    """Write one message about all that is new to people of a pipeline. It has no keys, values or secrets."""
    text = "\n".join(_lines(news, details, link, now))
    return Message(
        pipeline=pipeline,
        subject=_subject(pipeline, news),
        text=text,
        html=f"<pre>{html.escape(text)}</pre>",
        link=link,
        is_all_clear=news.is_all_clear,
        items=[item.document() for item in (*news.new, *news.again)],
    )


def _subject(pipeline: str, news: News) -> str:
    items = (*news.new, *news.again)
    if not items:
        return f"[makewhole] {pipeline}: " + ("all clear" if news.is_all_clear else _waits_elsewhere(news))
    word = "" if news.new else "still waits: "
    first = items[0].headline.partition("\n")[0].removeprefix(f"{pipeline} ")
    text = f"[makewhole] {pipeline}: {word}{first}"
    if len(text) > _SUBJECT_LENGTH:
        text = text[: _SUBJECT_LENGTH - 1] + "…"
    return text if len(items) == 1 else f"{text} (and {counted(len(items) - 1, 'other')})"


def _waits_elsewhere(news: News) -> str:
    return f"still waiting of other kinds: {counted(len(news.elsewhere), 'thing')}"


def _lines(news: News, details: Details, link: str, now: datetime) -> Iterator[str]:
    if news.is_all_clear:
        yield "All clear: nothing waits for a person any more."
    elif news.is_last:
        yield f"What this channel was sent is over; {_waits_elsewhere(news)}"
        yield from (f"- {item.headline}" for item in news.elsewhere)
    for items, heading in ((news.new, None), (news.again, "Still waits:")):
        if items and heading:
            yield heading
        for item in items:
            yield from _item(item, details, now)
    if news.over:
        yield "Over by now:"
        yield from (f"- {notice.said}" for notice in news.over)
    yield ""
    yield f"All that waits: makewhole todo; in Airflow: {link}"


def _item(item: TodoItem, details: Details, now: datetime) -> Iterator[str]:
    first, *rest = lines_of(item, now)
    yield f"- {first}"
    if item.subject in details:
        yield f"   {details[item.subject]}"
    yield from rest


def message_of_test(pipeline: str, *, link: str, now: datetime) -> Message:
    """Write a message that says that it is a test."""
    text = (
        f"This is a test of the channels of {pipeline}, sent at {now:%Y-%m-%d %H:%M} UTC. Nothing is wrong.\n\n{link}"
    )
    return Message(
        pipeline=pipeline,
        subject=f"[makewhole] {pipeline}: a test",
        text=text,
        html=f"<pre>{html.escape(text)}</pre>",
        link=link,
        is_all_clear=False,
        items=[],
    )
