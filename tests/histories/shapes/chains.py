"""Draw changes of the orders of a chain of points that was whole, whose topics have several orders in a record.

The reference is this file alone: what a point has of an order, beside what the point before it has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import NamedTuple

from tests.histories.shapes.bundles import BUNDLES, SINGLE, RecordShape
from tests.histories.shapes.changes import draw_orders, with_another_value
from tests.world.orders import Order


class LineChange(StrEnum):
    """Name what happens to an order on its way over a hop; its points after that have it as the hop left it."""

    LOST = "missing"
    REPEATED = "duplicate"
    CHANGED = "mismatched"
    ADDED = "unexpected"


class Line(NamedTuple):
    """An order and the bundle that it belongs to."""

    bundle: str
    order: Order

    @property
    def key(self) -> tuple[str, str]:
        """The business key."""
        return self.bundle, self.order["id"]


class Record(NamedTuple):
    """A record of a bundle. `orders` None: it has no array, or none in it."""

    bundle: str
    orders: Sequence[Order] | None


Verdicts = Mapping[tuple[str, str], str]


@dataclass(frozen=True, kw_only=True)
class ChangedChain:
    """A ledger, topics of these shapes, and a store: what each has, and the verdicts of each hop by key.

    `takes_latest`: the latest version of an order counts. `changed`: the keys to which something happened, a finding or
    not.
    """

    shapes: Sequence[RecordShape]
    takes_latest: bool
    lines: Sequence[list[Line]]
    verdicts: Sequence[dict[tuple[str, str], str]]
    changed: set[tuple[str, str]] = field(default_factory=set)

    @property
    def last_hop(self) -> int:
        """The number of the hop into the store."""
        return len(self.shapes)

    def repaired_rows(self) -> list[Line]:
        """Return the rows that the store has to have: one for each order of the topic before it."""
        return list({line.key: line for line in self.lines[self.last_hop]}.values())

    def keys(self, hop: int) -> int:
        """Return how many keys a hop has, at either end."""
        return len({line.key for lines in self.lines[hop : hop + 2] for line in lines})

    def change(self, change: LineChange, hop: int, random: Random) -> None:
        """Have a change happen on a hop, to an order to which none has happened, or to another one."""
        behind = self.lines[hop + 1 :]
        if change is LineChange.ADDED:
            [order] = draw_orders(random, 1, first=random.randrange(1_000, 10**9))
            line = Line(random.choice([*{line.bundle for line in self.lines[0]}, "other"]), order)
            for lines in behind:
                lines.append(line)
        else:
            line = random.choice([line for line in self.lines[0] if line.key not in self.changed])
            self._change(change, line, behind, random)
        self.changed.add(line.key)
        is_finding = change is not LineChange.REPEATED or not self.takes_latest or hop == self.last_hop
        if is_finding:
            self.verdicts[hop][line.key] = change.value

    def _change(self, change: LineChange, line: Line, behind: Sequence[list[Line]], random: Random) -> None:
        if change is LineChange.REPEATED:
            behind[0].append(line)
            return
        other = line._replace(order=with_another_value(line.order, random))
        for lines in behind:
            lines.remove(line)
            lines += [other] if change is LineChange.CHANGED else []

    def records(self, topic: int, random: Random) -> Iterator[Record]:
        """Yield the records of a topic, those of a bundle in their order."""
        bundles: dict[str, list[Line]] = {}
        for line in self.lines[topic + 1]:
            bundles.setdefault(line.bundle, []).append(line)
        waiting = [
            list(_in_records(name, self._versions(lines, random), self.shapes[topic], random))
            for name, lines in bundles.items()
        ]
        while waiting := [records for records in waiting if records]:
            yield random.choice(waiting).pop(0)

    def _versions(self, lines: list[Line], random: Random) -> list[list[Order]]:
        """Return what is written of each order of a bundle, one version after the other."""
        if not self.takes_latest:
            return [[line.order] for line in lines]
        copies = {line.key: [other.order for other in lines if other.key == line.key] for line in lines}
        return [
            [with_another_value(same[0], random) for _ in range(random.choice([0, 0, 1, 2]))] + same
            for same in copies.values()
        ]


def _in_records(bundle: str, versions: Sequence[list[Order]], shape: RecordShape, random: Random) -> Iterator[Record]:
    """Yield records with all versions: of an order one after the other, of one in a record at most one."""
    waiting = [list(chain) for chain in versions]
    while waiting := [chain for chain in waiting if chain]:
        most = 1 if shape is SINGLE else random.choice([1, 2, 5, len(waiting)])
        chosen = random.sample(waiting, k=min(most, len(waiting)))
        yield Record(bundle, [chain.pop(0) for chain in chosen])
        if shape is not SINGLE and random.random() < 0.2:
            yield Record(bundle, random.choice([None, []]))


def draw_chain(random: Random, *, takes_latest: bool) -> ChangedChain:
    """Draw a chain without a change: one to three topics, of which one at least has several orders in a record."""
    shapes = [random.choice([*BUNDLES, *[SINGLE] * 3]) for _ in range(random.randint(0, 2))]
    shapes.insert(random.randint(0, len(shapes)), random.choice(BUNDLES))
    orders, lines = draw_orders(random, random.randint(4, 40)), list[Line]()
    while len(lines) < len(orders):
        size = random.choice([1, 2, 3, 8])
        bundle = f"B{len(lines)}"
        lines += [Line(bundle, order) for order in orders[len(lines) : len(lines) + size]]
    return ChangedChain(
        shapes=shapes,
        takes_latest=takes_latest,
        lines=[[*lines] for _ in range(len(shapes) + 2)],
        verdicts=[{} for _ in range(len(shapes) + 1)],
    )
