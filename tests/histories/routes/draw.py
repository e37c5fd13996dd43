"""Draw a history of routes from a seed: which places there are, what goes wrong between them, and each day's window."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from tests.histories.routes.column_types import COLUMNS, KEYS
from tests.histories.routes.events import (
    LEDGERS,
    Carry,
    Event,
    Fulfil,
    History,
    Item,
    Link,
    Mishap,
    Restore,
    Shape,
    Window,
    Write,
)

KINDS = {
    "two_stores": True,  # one topic fills two tables
    "two_hops": True,  # a topic is copied into another one, which fills a table
    "two_topics": True,  # two topics fill one table
    "two_names": True,  # and the table is two points
    "two_ledgers": True,  # two ledgers go into one topic
    "direct": True,  # two ledgers fill one table
    "table_between": True,  # a topic fills a table, which is the ledger of another one
    "named": True,  # the pipeline file calls the compared columns otherwise than tables and records do
    "types": True,  # keys and compared columns are of any type of PostgreSQL
    "lost": True,
    "doubled": True,
    "changed": True,
    "stray": True,  # what no source has
    "shared": True,  # two sources have an event
    "disagreeing": True,  # and with different values
    "again": True,  # an event of an earlier day comes to the other source, too
    "redelivered": True,  # what a topic lacks of another one is sent again
    "out_of_range": True,  # the offset of a group is none that its log has
    "fulfilled": True,  # another system changes a column that nothing compares
}
"""The kinds of shapes and events, and whether they are drawn when nothing names any."""

_SHAPES: tuple[Shape, ...] = (
    "two_stores",
    "two_hops",
    "two_topics",
    "two_names",
    "two_ledgers",
    "direct",
    "table_between",
)
_WINDOWS = 3
_TROUBLES = (0.0, 0.4, 1.0)


def draw(seed: int, kinds: frozenset[str]) -> History:
    """Draw the history of a seed, of these kinds; of all shapes, where they have none."""
    return _Draw(Random(f"routes {seed}"), kinds).history(seed)


@dataclass
class _Draw:
    """The state of a drawing: what has been made so far."""

    random: Random
    kinds: frozenset[str]
    number: int = 0
    known: list[tuple[str, Item]] = field(default_factory=list)
    links: tuple[Link, ...] = ()
    origins: tuple[str, ...] = ()
    has_groups: bool = False
    trouble: float = 1.0

    def history(self, seed: int) -> History:
        choice = self.random.choice
        shape = choice([style for style in _SHAPES if style in self.kinds] or _SHAPES)
        columns = self.random.sample(sorted(COLUMNS), self.random.randint(2, 4))
        key = choice(sorted(KEYS))
        has_types = "types" in self.kinds
        self.has_groups = choice([True, False])
        frame = History(
            seed=seed,
            shape=shape,
            key=key if has_types else "text",
            columns=tuple(columns) if has_types else ("numeric", "text"),
            are_texts=choice([True, False]) and has_types,
            has_groups=self.has_groups,
            redelivers=choice([True, False]) and "redelivered" in self.kinds,
            is_repairing=self.random.random() < 0.8,
        )
        self.links, self.origins = frame.links, frame.origins
        events = tuple(event for day in range(_WINDOWS) for event in self._day(day))
        is_named = Random(f"names {seed}").choice([True, False]) and "named" in self.kinds
        return replace(frame, events=events, is_named=is_named)

    def _day(self, day: int) -> Iterator[Event]:
        self.trouble = self.random.choice(_TROUBLES)
        numbers: list[int] = []
        for _ in range(self.random.randint(3, 6)):
            item = self._item(day)
            numbers.append(item.number)
            yield from self._written(item)
        yield from self._again(day)
        yield from self._strays(day)
        for link in self.links:
            yield Carry(link, day, self._mishaps(numbers))
            if self._happens("fulfilled", 0.4):
                yield Fulfil(self.random.choice(["outbox", "warehouse"]))
        yield from self._restores(day)
        yield Window(day)

    def _item(self, day: int) -> Item:
        self.number += 1
        return Item(self.number, tuple(self.random.randint(0, 9) for _ in range(4)), day, self.number)

    def _written(self, item: Item) -> Iterator[Event]:
        """An event begins at one of the origins, or at all of them."""
        is_shared = len(self.origins) > 1 and self._happens("shared", 0.4)
        origins = self.origins if is_shared else (self.random.choice(self.origins),)
        self.known += [] if is_shared else [(origins[0], item)]
        for origin in origins:
            differs = is_shared and origin != self.origins[0] and self._goes_wrong("disagreeing", 0.4)
            yield Write(origin, item.changed() if differs else item)

    def _again(self, day: int) -> Iterator[Event]:
        known = [entry for entry in self.known if entry[1].day < day]
        if len(self.origins) > 1 and known and self._happens("again", 0.5):
            first, item = self.random.choice(known)
            item = replace(item.changed() if self._happens("disagreeing", 0.5) else item, day=day)
            yield Write(next(origin for origin in self.origins if origin != first), item)

    def _strays(self, day: int) -> Iterator[Event]:
        if self._goes_wrong("stray", 0.4):
            points = sorted({point for link in self.links for point in link} - set(LEDGERS))
            yield Write(self.random.choice(points), self._item(day))

    def _mishaps(self, numbers: list[int]) -> tuple[tuple[int, Mishap], ...]:
        mishaps: tuple[Mishap, ...] = ("lost", "doubled", "changed")
        drawn = ((number, mishap) for number in numbers for mishap in mishaps if self._goes_wrong(mishap, 0.09))
        return tuple(dict(drawn).items())

    def _restores(self, day: int) -> Iterator[Event]:
        read = [hop for hop in self.links if hop[0] not in LEDGERS]
        if read and self.has_groups and self._happens("out_of_range", 0.25):
            link = self.random.choice(read)
            yield Restore(link, self.random.choice(["past", "before"] if day else ["past"]))

    def _goes_wrong(self, kind: str, probability: float) -> bool:
        return self._happens(kind, probability * self.trouble)

    def _happens(self, kind: str, probability: float) -> bool:
        """Draw in any case: a kind that is switched off changes little of the rest."""
        return self.random.random() < probability and kind in self.kinds
