"""Define what happens in a history of routes: several tables and topics, and who carries events between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Shape = Literal["two_stores", "two_hops", "two_topics", "two_names", "two_ledgers", "direct", "table_between"]
Mishap = Literal["lost", "doubled", "changed"]
Link = tuple[str, str]
"""A hop: the point that events come from, and the point that they go to."""

LINKS: Mapping[Shape, tuple[Link, ...]] = {
    "two_stores": (("outbox", "orders"), ("orders", "warehouse"), ("orders", "archive")),
    "two_hops": (("outbox", "orders"), ("orders", "mirror"), ("mirror", "warehouse")),
    "two_topics": (("orders", "warehouse"), ("mirror", "warehouse")),
    "two_names": (("orders", "warehouse"), ("mirror", "annex")),
    "two_ledgers": (("outbox", "orders"), ("shelf", "orders"), ("orders", "warehouse")),
    "direct": (("outbox", "warehouse"), ("shelf", "warehouse")),
    "table_between": (("orders", "warehouse"), ("stock", "archive")),
}
"""The hops of each shape, from the origins on."""

TOPICS = ("orders", "mirror")
LEDGERS = ("outbox", "shelf", "stock")
TABLE_OF = {
    **{table: table for table in ("outbox", "shelf", "warehouse", "archive")},
    "annex": "warehouse",
    "stock": "warehouse",
}
"""Point → its table. Two points can be one."""


def place_of(point: str) -> str:
    """Return what a point is: the name of its table, or of its topic."""
    return TABLE_OF.get(point, point)


@dataclass(frozen=True)
class Item:
    """A business event: `number` names it, `values` are the numbers of its values among the samples of each column."""

    number: int
    values: tuple[int, ...]
    day: int
    minute: int

    def changed(self) -> "Item":
        """Return it with another value in its first column."""
        return Item(self.number, (self.values[0] + 1, *self.values[1:]), self.day, self.minute)


@dataclass(frozen=True)
class Write:
    """An application writes an event into a place where events begin; or what is no event, anywhere (a stray)."""

    point: str
    item: Item


@dataclass(frozen=True)
class Carry:
    """Carry over a hop what goes over it, on a day. `mishaps`: what happens to the events of a number."""

    link: Link
    day: int
    mishaps: tuple[tuple[int, Mishap], ...] = ()


@dataclass(frozen=True)
class Fulfil:
    """Another system moves on what nothing compares, in all rows of a table."""

    table: str


@dataclass(frozen=True)
class Restore:
    """The offset of the group that carries a hop comes from elsewhere: past the end of the log, or before its
    beginning, which goes as far as windows have read it."""

    link: Link
    where: Literal["past", "before"]


@dataclass(frozen=True)
class Window:
    """makewhole takes the window of a day all the way."""

    day: int


Event = Write | Carry | Fulfil | Restore | Window


@dataclass(frozen=True, kw_only=True)
class History:
    """A history of routes. `key`, `columns`: the names of the key's type and of those that are compared, in
    `column_types`. `are_texts`: producers write every value as a text. `redelivers`: what a topic lacks of another one
    is sent again. `is_named`: the pipeline file has names of its own for the compared columns."""

    seed: int
    shape: Shape
    key: str
    columns: tuple[str, ...]
    are_texts: bool
    has_groups: bool
    redelivers: bool
    is_repairing: bool
    is_named: bool = False
    events: tuple[Event, ...] = field(default=())
    partitions: int = 1

    @property
    def links(self) -> tuple[Link, ...]:
        """The hops."""
        return LINKS[self.shape]

    @property
    def origins(self) -> tuple[str, ...]:
        """The points that no hop leads to, whatever they are called."""
        targets = {place_of(target) for _, target in self.links}
        return tuple(dict.fromkeys(source for source, _ in self.links if place_of(source) not in targets))
