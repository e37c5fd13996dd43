"""Change a drawn history into one of another pipeline: each kind by a generator of its own, so that the rest stays."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random

from tests.histories.events import (
    Begin,
    Erase,
    Event,
    Fulfil,
    History,
    Insert,
    Item,
    Load,
    Mishap,
    Pass,
    Send,
    Step,
    Stray,
)

_STATUSES = ("shipped", "new", 'it\'s \\ "done"', "")


def filtered(history: History, random: Random) -> History:
    """Make the store take one region alone, in some histories, and its loader let in some that it does not take."""
    if random.random() > 0.35:
        return history
    others = {key for key in _keys(history) if random.random() < 0.3}
    let_in: set[str] = {key for key in sorted(others) if random.random() < 0.15}
    mishaps: tuple[tuple[str, Mishap], ...] = tuple((key, "let_in") for key in sorted(let_in))

    def changed(event: Event) -> Event:
        if isinstance(event, Load):
            return replace(event, mishaps=(*event.mishaps, *mishaps))
        if isinstance(event, Insert | Stray):
            return replace(event, item=_of_region(event.item, others))
        if isinstance(event, Send | Begin):
            return replace(event, items=tuple(_of_region(item, others) for item in event.items))
        return event

    return replace(history, has_filter=True, events=tuple(changed(event) for event in history.events))


def named(history: History, random: Random) -> History:
    """Make a table name keys that were erased, in some histories: those that are deleted, and some that never came."""
    if random.random() > 0.4:
        return history
    return replace(history, names_erased=True, events=tuple(_with_erasures(history.events, random)))


def waiting(history: History, random: Random) -> History:
    """Make the loader stop for good at some day, in some histories, and days pass between windows."""
    if random.random() > 0.25:
        return history
    return replace(history, events=tuple(_without_loads(history.events, random.randint(0, 3), random)))


def fulfilled(history: History, random: Random) -> History:
    """Have another system move on what nothing compares, at any moment: between the steps of a window, too."""
    return replace(history, events=tuple(_with_fulfilments(history.events, random)))


CHANGES: Mapping[str, Callable[[History, Random], History]] = {
    "filter": filtered,
    "named": named,
    "waiting": waiting,
    "fulfilled": fulfilled,
}
"""By kind. None of them changes which records there are, or their order."""


def _keys(history: History) -> list[str]:
    return [event.item.key for event in history.events if isinstance(event, Insert)]


def _of_region(item: Item, others: set[str]) -> Item:
    return replace(item, region="US") if item.key in others else item


def _with_erasures(events: tuple[Event, ...], random: Random) -> Iterator[Event]:
    known: list[str] = []
    for event in events:
        if isinstance(event, Insert):
            known.append(event.item.key)
        if isinstance(event, Step) and event.name == "open" and known and random.random() < 0.5:
            yield Erase(random.choice(known[-6:]), is_named=True)
        if isinstance(event, Erase):
            yield replace(event, is_named=random.random() < 0.6)
        else:
            yield event


def _with_fulfilments(events: tuple[Event, ...], random: Random) -> Iterator[Event]:
    known: list[str] = []
    for event in events:
        yield event
        if isinstance(event, Insert | Stray):
            known.append(event.item.key)
        while known and random.random() < (0.04 if isinstance(event, Step) else 0.15):
            yield Fulfil(random.choice(["outbox", "warehouse"]), random.choice(known[-8:]), random.choice(_STATUSES))


def _without_loads(events: tuple[Event, ...], last: int, random: Random) -> Iterator[Event]:
    """Leave out what is loaded after the window of the day `last`; between windows days may pass."""
    is_over = False
    for event in events:
        if isinstance(event, Load) and is_over:
            continue
        yield event
        if isinstance(event, Step) and event.name == "certify":
            is_over = is_over or event.window >= last
            if random.random() < 0.5:
                yield Pass()
