"""Draw days of orders whose lines are added up to one row each, some of them wrongly; and what is right of each day."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum, auto
from random import Random
from typing import Any

from tests.world.rows_of_totals import TotalsRow
from tests.world.windows import Found

_CENT = Decimal("0.01")


class RecordKind(StrEnum):
    """How a record was sent; only what is committed and of the hop's region counts."""

    SENT = auto()
    ABORTED = auto()
    EXCLUDED = auto()


class Fault(StrEnum):
    """A fault of a row."""

    NONE = auto()
    SHORT = auto()
    AGAIN = auto()
    UNCOMMITTED = auto()
    CENT = auto()
    NULL = auto()
    GONE = auto()
    TWICE = auto()


_CAUSES = {
    Fault.SHORT: "record_not_counted",
    Fault.AGAIN: "resend_counted",
    Fault.UNCOMMITTED: "read_uncommitted",
    Fault.CENT: "value_differs",
    Fault.NULL: "value_differs",
}


@dataclass(frozen=True, kw_only=True)
class DrawnLine:
    """A record of an order. `amount` None: null. `line` None: it does not say which line it is."""

    order: str
    line: str | None
    amount: Decimal | None
    day: int
    kind: RecordKind = RecordKind.SENT
    as_number: bool = False

    def value(self) -> dict[str, Any]:
        """Return the value as JSON has it."""
        amount = self.amount if self.amount is None else str(self.amount)
        price = {"amount": float(amount) if self.as_number and amount else amount}
        region = "US" if self.kind is RecordKind.EXCLUDED else "EU"
        return {"order": self.order, "line_id": self.line, "price": price, "region": region}


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """By what the records of an order cannot be added up, from a day on."""

    verdict: str
    cause: str
    day: int


@dataclass(frozen=True, kw_only=True)
class _DrawnOrder:
    name: str
    records: tuple[DrawnLine, ...]
    fault: Fault
    flaw: Flaw | None
    rows: tuple[TotalsRow, ...]

    def right(self, day: int) -> tuple[str, str] | None:
        """Return verdict and cause in the window of a day; `matched` has no cause. None: it is not judged there."""
        days = [record.day for record in self.records if record.kind is RecordKind.SENT]
        if self.fault is Fault.TWICE:  # also where the rows are seen
            return ("duplicate", "several_rows") if day in (*days, self.rows[0].day) else None
        if not min(days) <= day <= max(days):
            return None
        if self.fault is Fault.GONE:
            return ("pending", "key_continues") if day < max(days) else ("missing", "lost_after_topic")
        if self.flaw is not None and day >= self.flaw.day:
            return self._behind_its_flaw(self.flaw, day, days)
        if day < max(days):
            return "pending", "key_continues"
        return ("matched", "") if self.fault is Fault.NONE else ("mismatched", self._cause(day))

    def _cause(self, day: int) -> str:
        """Return why the row is wrong, as far as a window of that day has read: an aborted record may come later."""
        aborted = [record.day for record in self.records if record.kind is RecordKind.ABORTED]
        is_later = self.fault is Fault.UNCOMMITTED and day < min(aborted)
        return "value_differs" if is_later else _CAUSES[self.fault]

    def _behind_its_flaw(self, flaw: Flaw, day: int, days: list[int]) -> tuple[str, str] | None:
        """A fault of the records is reported once; windows of later ones do not have the amounts of the others."""
        if day == flaw.day:
            return flaw.verdict, flaw.cause
        return ("undecidable", "key_not_whole") if day in days else None


@dataclass(frozen=True, kw_only=True)
class DrawnSums:
    """Some days: the records of each in their order, and the rows that are there in the end."""

    days: int
    records: Mapping[int, list[DrawnLine]]
    rows: list[TotalsRow]
    orders: tuple[_DrawnOrder, ...]
    strays: Mapping[str, int]

    def right(self, day: int) -> tuple[Found, int]:
        """Return the findings in the window of a day, and the number of rows that are right."""
        verdicts = {order.name: right for order in self.orders if (right := order.right(day)) is not None}
        wrong = {name: right for name, right in verdicts.items() if right[0] != "matched"}
        strays = {name: ("unexpected", "not_in_source") for name, at in self.strays.items() if at == day}
        return {**wrong, **strays}, len(verdicts) - len(wrong)


def draw_sums(seed: str) -> DrawnSums:
    """Return some days of orders, by a seed."""
    random = Random(f"sums {seed}")
    days = random.randint(1, 3)
    orders = tuple(_order(random, f"O{number}", days) for number in range(random.randint(5, 25)))
    strays = {f"S{number}": random.randrange(days) for number in range(random.randint(0, 3))}
    rows = [row for order in orders for row in order.rows]
    rows += [TotalsRow(name, 1, "1.00", day) for name, day in strays.items()]
    random.shuffle(rows)
    records: dict[int, list[DrawnLine]] = {day: [] for day in range(days)}
    for order in orders:
        for record in order.records:
            records[record.day].append(record)
    for of_day in records.values():
        random.shuffle(of_day)
    return DrawnSums(days=days, records=records, rows=rows, orders=orders, strays=strays)


def _order(random: Random, name: str, days: int) -> _DrawnOrder:
    first = random.randrange(days)
    amounts = iter(random.sample(range(-10_000, 10_000), 9))

    def line(number: str | None, **more: Any) -> DrawnLine:
        day = first if random.random() < 0.85 else random.randrange(first, days)
        amount = next(amounts) * _CENT
        made = DrawnLine(order=name, line=number, amount=amount, day=day, as_number=random.random() < 0.5)
        return replace(made, **more)

    lines = [line(str(number)) for number in range(random.randint(1, 5))]
    resent = [replace(copy, as_number=random.random() < 0.5) for copy in lines if random.random() < 0.15]
    resent = [
        replace(copy, day=random.randrange(copy.day, days) if random.random() < 0.3 else copy.day) for copy in resent
    ]
    excluded = [line("out", kind=RecordKind.EXCLUDED)] if random.random() < 0.2 else []
    aborted = [line("aborted", kind=RecordKind.ABORTED)] if random.random() < 0.2 else []
    flawed, flaw = _flaw(random, line, lines[0]) if random.random() < 0.15 else ([], None)
    records = (*lines, *resent, *excluded, *aborted, *flawed)
    is_of_one_day = len({record.day for record in records if record.kind is RecordKind.SENT}) == 1
    possible = [Fault.SHORT, Fault.CENT, Fault.NULL, Fault.GONE]
    possible += [Fault.AGAIN] if resent else []
    possible += [Fault.UNCOMMITTED] if aborted else []
    possible += [Fault.TWICE] if is_of_one_day else []
    fault = random.choice(possible) if random.random() < 0.4 else Fault.NONE
    more = {Fault.AGAIN: resent, Fault.UNCOMMITTED: aborted, Fault.SHORT: lines}.get(fault, [])
    changed = random.choice(more) if more else None
    row = _row(name, lines, fault, changed, random.randrange(days))
    rows = {Fault.GONE: (), Fault.TWICE: (row, row)}.get(fault, (row,))
    return _DrawnOrder(name=name, records=records, fault=fault, flaw=flaw, rows=rows)


def _flaw(random: Random, line: Callable[[str | None], DrawnLine], first: DrawnLine) -> tuple[list[DrawnLine], Flaw]:
    """Return a record by which an order cannot be added up, and what is right then."""
    drawn = random.choice(("null", "digits", "unnamed", "contradicts"))
    if drawn == "contradicts":
        other = line(first.line)
        both = max(first.day, other.day)
        return [other], Flaw(verdict="conflict", cause="source_contradicts_itself", day=both)
    made = line("flawed")
    flawed = {
        "null": replace(made, amount=None),
        "digits": replace(made, amount=Decimal("1.005")),
        "unnamed": replace(made, line=None),
    }[drawn]
    return [flawed], Flaw(verdict="undecidable", cause="no_amount", day=flawed.day)


def _row(name: str, lines: list[DrawnLine], fault: Fault, changed: DrawnLine | None, day: int) -> TotalsRow:
    """Return the row of an order; `changed` is the record that it lacks, or has besides."""
    count, total = len(lines), sum((line.amount or Decimal(0) for line in lines), Decimal(0))
    if changed is not None and changed.amount is not None:
        sign = -1 if fault is Fault.SHORT else 1
        count, total = count + sign, total + sign * changed.amount
    if fault is Fault.CENT:
        total += _CENT
    return TotalsRow(name, count, None if fault is Fault.NULL else str(total), day)


def in_partitions(lines: list[DrawnLine], partitions: int) -> Iterator[tuple[int, DrawnLine]]:
    """Yield lines with the partition of their order."""
    for line in lines:
        yield sum(line.order.encode()) % partitions, line
