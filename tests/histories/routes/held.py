"""Derive what places hold of an event, and what they should hold, from their contents alone.

Written from the words of the documentation, not from the code.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from tests.histories.routes.events import TOPICS, History, Link, place_of
from tests.histories.watched import PLAN_HEADER, Contents

Values = tuple[int, ...]
"""The values of an event: their numbers among the samples of each column, −1 for one that is none of them."""

Meanings = Sequence[Mapping[str, int]]
"""Of each compared column: what PostgreSQL writes for a sample, made plain → the number of the sample."""


def plain(value: Any) -> str:
    """Return a JSON value as a text that equal values have in common: numbers by their value, members in order."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(content) for name, content in value.items()}
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        text = format(Decimal(value), "f")
        return ["number", text.rstrip("0").rstrip(".") if "." in text else text]
    return value


@dataclass(frozen=True)
class Copy:
    """A row or a record of an event. `offset`: where a record lies. `is_replay`: makewhole wrote it."""

    number: int
    values: Values
    offset: int = -1
    is_replay: bool = False


@dataclass(frozen=True)
class Held:
    """Hold what each place held at one moment."""

    history: History
    copies: Mapping[str, Sequence[Copy]]

    def of(self, point: str, number: int) -> list[Copy]:
        """Return the copies of an event at a point. A record that a repair sent again stands for the one before it."""
        copies = self.all_of(point, number)
        return [copy for copy in copies if not copy.is_replay] or copies[:1]

    def all_of(self, point: str, number: int) -> list[Copy]:
        """Return the copies of an event at a point, and those that repairs sent again."""
        return [copy for copy in self.copies[place_of(point)] if copy.number == number]

    def values(self, point: str, number: int) -> set[Values]:
        """Return the different values that a point has of an event."""
        return {copy.values for copy in self.of(point, number)}

    def numbers(self) -> set[int]:
        """Return every event that is anywhere."""
        return {copy.number for copies in self.copies.values() for copy in copies}

    def sources(self, point: str) -> list[str]:
        """Return the points from which events go to a place, whatever it is called."""
        place = place_of(point)
        return list(dict.fromkeys(source for source, target in self.history.links if place_of(target) == place))

    def expected(self, point: str, number: int) -> set[Values]:
        """Return the values that the sources of a place have of an event, all together."""
        return {value for source in self.sources(point) for value in self.values(source, number)}

    def right(self, link: Link, number: int) -> set[str | None]:
        """Return the right verdicts of a hop over an event; None: nothing is wrong, or another hop has to say it."""
        source, target = link
        here, there = self.values(source, number), self.of(target, number)
        if not here:
            return {"unexpected"} if there and not self.expected(target, number) else {None}
        if len(here) > 1:
            of_count = {0: "missing", 1: "mismatched"}.get(len(there), "duplicate")
            return {"conflict", of_count}
        if len(self.expected(target, number)) > 1:
            return {"conflict", *(["duplicate"] if len(there) > 1 else [])}
        if len(there) != 1:
            return {"duplicate", *(["conflict"] if self._differ(there) else [])} if there else {"missing"}
        return {None} if there[0].values in here else {"mismatched"}

    def _differ(self, copies: Iterable[Copy]) -> bool:
        return len({copy.values for copy in copies}) > 1

    def is_whole(self, link: Link, number: int) -> bool:
        """Whether an event has come over a hop as far as can be mended: what is twice in a log stays there, and did no
        harm where all that comes after it has the event once."""
        right, target = self.right(link, number), link[1]
        if right != {"duplicate"} or target not in TOPICS:
            return None in right
        after = [hop for hop in self.history.links if hop[0] == target]
        return bool(after) and all(self.is_whole(hop, number) for hop in after)

    def is_disputed(self, point: str, number: int) -> bool:
        """Whether what a point has of an event is called wrong by a hop into it, or into a point before it."""
        if len(self.values(point, number)) > 1:
            return True
        links = [link for link in self.history.links if place_of(link[1]) == place_of(point)]
        wrong = {"unexpected", "mismatched", "conflict"}
        if any(self.right(link, number) & wrong for link in links):
            return True
        return any(self.is_disputed(source, number) for source, _ in links)

    def due(self, point: str, number: int) -> Values | None:
        """Return what a repair may write of an event at a point: what its sources have, all alike, undisputed."""
        expected = self.expected(point, number)
        sources = [source for source in self.sources(point) if self.values(source, number)]
        if len(expected) != 1 or any(self.is_disputed(source, number) for source in sources):
            return None
        return next(iter(expected))


def held(history: History, contents: Contents, meanings: Meanings, topics: Mapping[str, str]) -> Held:
    """Return what places hold. `topics`: the names of the topics, by point."""
    copies: dict[str, list[Copy]] = {}
    for table, rows in contents.tables.items():
        copies[table.removeprefix("public.")] = [_copy(row.columns, history, meanings) for row in rows]
    for point, topic in topics.items():
        copies[point] = [
            replace(
                _copy(json.loads(record.value or b"null", parse_float=Decimal), history, meanings),
                offset=offset,
                is_replay=PLAN_HEADER in dict(record.headers),
            )
            for (_, offset), record in sorted(contents.topics[topic].items())
        ]
    return Held(history, {point: copies.get(point, []) for point in {*copies, *TOPICS}})


def _copy(columns: Mapping[str, Any], history: History, meanings: Meanings) -> Copy:
    values = (meanings[at].get(plain(columns.get(f"c{at}")), -1) for at in range(len(history.columns)))
    return Copy(int(columns["number"]), tuple(values))


@dataclass
class Seen:
    """Hold what was true whenever makewhole looked at one window, and what it said.

    `moments`: at the snapshot and at the end. `before`, `after`: around the repair. `found`: (hop, number) → (verdict,
    cause). `of_day`: the events of its day; `handed`: those that the window before has left to it. `unreached`: the
    hops whose group has an offset that its log does not have. `begins`: the first offset of the window, by topic.
    """

    day: int
    of_day: frozenset[int]
    handed: frozenset[tuple[Link, int]] = frozenset()
    unreached: frozenset[Link] = frozenset()
    begins: Mapping[str, int] = field(default_factory=dict)
    moments: list[Held] = field(default_factory=list)
    before: Held | None = None
    after: Held | None = None
    found: Mapping[tuple[Link, int], tuple[str, str]] = field(default_factory=dict)
    state: str | None = None
    reason: str | None = None
    unnamed: Sequence[str] = ()

    def is_about(self, link: Link, number: int) -> bool:
        """Whether the window has to judge an event on a hop."""
        return number in self.of_day or (link, number) in self.handed

    def is_of_earlier(self, held: Held, point: str, number: int) -> bool:
        """Whether all copies of an event in a topic lie in windows before this one."""
        copies = held.all_of(point, number)
        return point in TOPICS and all(copy.offset < self.begins.get(point, 0) for copy in copies)

    def pending(self) -> frozenset[tuple[Link, int]]:
        """Return the events that this window leaves to the next, by hop."""
        return frozenset(place for place, (verdict, _) in self.found.items() if verdict == "pending")
