"""Write the records of orders in every format that a topic can have."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.world.orders import Order
from tests.world.pipeline_file import Settings

_NOTHING: Settings = {}


@dataclass(frozen=True, kw_only=True)
class RecordFormat:
    """A format. `settings` are those of the topic point; a record is its value, and its headers."""

    name: str
    value: Callable[[Order], bytes]
    settings: Settings = field(default_factory=dict)
    key: str = '"$.id"'
    headers: Callable[[Order], Mapping[str, str]] = lambda _: {}


def _json(order: Order) -> bytes:
    return json.dumps(order).encode()


def _json_in_another_order(order: Order) -> bytes:
    """Write the members in an order of their own for each record, with blanks: no layout is shared."""
    names = sorted(order, key=lambda name: hash((order["id"], name)))
    return json.dumps({name: order[name] for name in names}, indent=len(order["id"]) % 3, ensure_ascii=False).encode()


FORMATS = (
    RecordFormat(name="json", value=_json),
    RecordFormat(name="json in any order", value=_json_in_another_order),
    RecordFormat(name="json, keyed by the record", value=_json, key="kafka.key"),
    RecordFormat(
        name="json, keyed by a header",
        value=lambda order: _json({name: value for name, value in order.items() if name != "id"}),
        key='"header:id"',
        headers=lambda order: {"id": order["id"]},
    ),
)
