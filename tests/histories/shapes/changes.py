"""Draw random changes of a day that was whole, and say what each of them is: one finding, or none.

The reference is this file alone: a key that lacks a record or a row is missing behind the place before it, one that is
there twice is a duplicate, one with another value is mismatched, one of no source is unexpected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from random import Random

from tests.world.orders import BORN, Order
from tests.world.shop import LEDGER_HOP, STORE_HOP

TYPES = {
    "number": "bigint",
    "region": "string",
    "amount": "decimal(8,2)",
    "at": "timestamp",
    "due": "date",
    "is_paid": "boolean",
    "remark": "string",
}
"""The compared columns, with the types that the pipeline file gives them."""


class Change(StrEnum):
    """The changes that are drawn."""

    RECORD_LOST = "record lost"
    RECORD_REPEATED = "record repeated"
    RECORD_CHANGED = "record and its row changed"
    RECORD_ADDED = "record and row of no order"
    ROW_LOST = "row lost"
    ROW_REPEATED = "row repeated"
    ROW_CHANGED = "row changed"
    ROW_ADDED = "row of no record"


Verdicts = Mapping[str, Mapping[str, str]]
"""Hop → key → verdict."""

_FINDING = {
    Change.RECORD_LOST: (LEDGER_HOP, "missing"),
    Change.RECORD_REPEATED: (LEDGER_HOP, "duplicate"),
    Change.RECORD_CHANGED: (LEDGER_HOP, "mismatched"),
    Change.RECORD_ADDED: (LEDGER_HOP, "unexpected"),
    Change.ROW_LOST: (STORE_HOP, "missing"),
    Change.ROW_REPEATED: (STORE_HOP, "duplicate"),
    Change.ROW_CHANGED: (STORE_HOP, "mismatched"),
    Change.ROW_ADDED: (STORE_HOP, "unexpected"),
}
_WITHOUT_OTHER_SIDE = frozenset({Change.RECORD_ADDED, Change.ROW_ADDED})
OF_ROWS = (Change.ROW_LOST, Change.ROW_REPEATED, Change.ROW_CHANGED, Change.ROW_ADDED)


@dataclass(kw_only=True)
class ChangedDay:
    """A day as its ledger, its topic and its store have it, with what was changed, by key."""

    ledger: list[Order]
    records: list[Order]
    rows: list[Order]
    changes: dict[str, Change] = field(default_factory=dict)

    @property
    def verdicts(self) -> Verdicts:
        """What is right."""
        verdicts: dict[str, dict[str, str]] = {LEDGER_HOP: {}, STORE_HOP: {}}
        for key, change in self.changes.items():
            hop, verdict = _FINDING[change]
            verdicts[hop][key] = verdict
        return verdicts

    @property
    def repaired_rows(self) -> list[Order]:
        """The rows that the store has to have when it is repaired: one for each order of which there is a record."""
        return list({record["id"]: record for record in self.records}.values())


def draw_orders(random: Random, count: int, *, first: int = 0) -> list[Order]:
    """Return so many orders of one day."""
    return [_order(random, number) for number in range(first, first + count)]


def draw_day(seed: int, kinds: Sequence[Change] = tuple(Change)) -> ChangedDay:
    """Draw a day of some orders, a few of which are changed; of each kind of change there may be none or several."""
    random = Random(seed)
    ledger = draw_orders(random, random.randint(8, 60))
    day = ChangedDay(ledger=ledger, records=[*ledger], rows=[*ledger])
    changed = random.sample(ledger, k=random.randint(0, min(12, len(ledger) - 1)))
    for at, order in enumerate(changed):
        change = random.choice(kinds)
        if change in _WITHOUT_OTHER_SIDE:
            [order] = draw_orders(random, 1, first=1_000 + at)
        _apply(day, change, order, random)
        day.changes[order["id"]] = change
    random.shuffle(day.rows)
    return day


def _apply(day: ChangedDay, change: Change, order: Order, random: Random) -> None:
    if change is Change.RECORD_LOST:
        day.records.remove(order)
        day.rows.remove(order)
    elif change is Change.RECORD_REPEATED:
        day.records.insert(random.randint(0, len(day.records)), order)
    elif change is Change.RECORD_CHANGED:
        other = with_another_value(order, random)
        day.records[day.records.index(order)] = day.rows[day.rows.index(order)] = other
    elif change is Change.RECORD_ADDED:
        day.records.insert(random.randint(0, len(day.records)), order)
        day.rows.append(order)
    elif change is Change.ROW_LOST:
        day.rows.remove(order)
    elif change is Change.ROW_CHANGED:
        day.rows[day.rows.index(order)] = with_another_value(order, random)
    else:
        day.rows.append(order)


def _order(random: Random, number: int) -> Order:
    return {"id": f"O{number}", **{name: _value(random, name) for name in TYPES}}


def with_another_value(order: Order, random: Random, names: Sequence[str] = tuple(TYPES)) -> Order:
    """Return an order with another value in one of these columns, and no other difference."""
    name = random.choice(names)
    while (value := _value(random, name)) == order[name]:
        pass
    return {**order, name: value}


def _value(random: Random, name: str) -> object:
    """Return a value of a compared column, as JSON has it."""
    second = random.randrange(86_400)
    values: Mapping[str, object] = {
        "number": random.choice([0, -1, random.randrange(-(2**62), 2**62), random.randrange(1_000)]),
        "region": random.choice(["EU", "US", "", " ", "Ü\u00df", 'a "b"', "\\", "0", "null", "\U0001f680"]),
        "amount": str(Decimal(random.randrange(-99_999_999, 100_000_000)) / 100),
        "at": f"{BORN:%Y-%m-%d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        f".{random.choice([0, 1, 500_000, 999_999]):06d}+00:00",
        "due": f"{random.randint(1970, 2100)}-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}",
        "is_paid": random.choice([True, False]),
        "remark": random.choice([None, None, "", "late", "x" * 200]),
    }
    return values[name]
