"""Give each event of a history its order, and make rows and records comparable."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

from tests.histories.pipelines.events import Item
from tests.histories.shapes.changes import TYPES, draw_orders, with_another_value
from tests.histories.shapes.whole_formats import BYTES, CARRIED, WHOLE_FORMATS, in_bytes
from tests.world.orders import DAY, Order

Values = tuple[Any, ...]
"""The values of an order in the columns of `TYPES`, as Python has them."""

_CENT = Decimal("0.01")

FILTERS: Mapping[str, Callable[[Order], bool]] = {
    "region != 'US'": lambda order: order["region"] != "US",
    "is_paid = true": lambda order: order["is_paid"] is True,
    "number >= 0": lambda order: order["number"] >= 0,
    "region in ('EU', 'US', '')": lambda order: order["region"] in ("EU", "US", ""),
    "amount < 0": lambda order: Decimal(order["amount"]) < 0,
    "remark is null": lambda order: order["remark"] is None,
}
"""What a filter says, as the pipeline file has it, and as Python does."""


def order_of(seed: int, item: Item, record_format: str = "json") -> Order:
    """Return the order of an event in the history of a seed, as JSON has it. What records cannot carry stays as it is
    when an event is changed."""
    [order] = draw_orders(Random(f"order {seed} {item.number}"), 1, first=item.number)
    names = carried_by(record_format)
    for version in range(1, item.version + 1):
        order = with_another_value(order, Random(f"order {seed} {item.number} {version}"), names)
    order = {**order, "at": (datetime.fromisoformat(order["at"]) + item.day * DAY).isoformat()}
    return in_bytes(order) if record_format == BYTES.name else order


def carried_by(record_format: str) -> tuple[str, ...]:
    """Return the columns that records of a format carry."""
    return (CARRIED,) if record_format in {kind.name for kind in WHOLE_FORMATS} else tuple(TYPES)


def values_of(order: Mapping[str, Any]) -> Values:
    """Return the values of an order, or of a row, so that equal ones are equal."""
    return tuple(_value(name, order[name]) for name in TYPES)


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "amount":
        return Decimal(value).quantize(_CENT)
    if name == "at":
        return (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)
    if name == "due":
        return date.fromisoformat(value) if isinstance(value, str) else value
    return value


def in_columns(values: Values, columns: tuple[str, ...]) -> Values:
    """Return those of the values that are of some columns."""
    return tuple(value for name, value in zip(TYPES, values, strict=True) if name in columns)
