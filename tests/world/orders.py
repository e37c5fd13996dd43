"""Make the orders that go through a test's pipeline."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

BORN = datetime(2025, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)

COLUMNS = {"id": "string", "number": "int", "region": "string", "amount": "decimal(8,2)", "at": "timestamp"}
"""The columns of a table of orders, with the types that a pipeline file gives them."""

Order = dict[str, Any]
"""An order as its record and its rows have it: id, number, region, amount, at (ISO)."""


def orders(numbers: Iterable[int], day: int = 0) -> list[Order]:
    """Return orders of a day, a minute apart. Odd ones are of the US, even ones of the EU."""
    return [
        {
            "id": f"O{number}",
            "number": number,
            "region": "US" if number % 2 else "EU",
            "amount": f"{number}.50",
            "at": (BORN + day * DAY + timedelta(minutes=number % 1000)).isoformat(),
        }
        for number in numbers
    ]


def at_day(day: float, order: Order) -> Order:
    """Return an order with the time of another day."""
    return {**order, "at": (BORN + day * DAY).isoformat()}


def milliseconds(moment: str) -> int:
    """Return a time of an order as Kafka has it."""
    return int(datetime.fromisoformat(moment).timestamp() * 1000)
