"""Prove the result independently, by plain SQL, a plain consumer and pyiceberg: each order is everywhere, once in the
warehouse, as it was placed, and in the lake as often as in the topic."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from examples.cdc.contents import changed_orders, orders_in_outbox, orders_in_topic, orders_in_warehouse
from examples.cdc.settings import TO_LAKE, TO_TOPIC, TO_WAREHOUSE, Systems


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Counts for people, and every order that is not as it should be."""

    outbox: int
    topic_records: int
    topic_orders: int
    warehouse_rows: int
    warehouse_orders: int
    lake_rows: int
    lake_orders: int
    wrong: list[dict[str, str]]
    repeated_in_topic: list[str]

    @property
    def holds(self) -> bool:
        """Return whether all is as it should be; an empty outbox proves nothing."""
        return self.outbox > 0 and not self.wrong

    def document(self) -> dict[str, Any]:
        """Return the proof as JSON-able values."""
        return {"holds": self.holds, **asdict(self)}


def prove(systems: Systems) -> Proof:
    """Read all three and judge. A log keeps its second copies: they are not wrong, as long as the warehouse has the
    order once."""
    outbox, topic, warehouse = orders_in_outbox(systems), orders_in_topic(systems), orders_in_warehouse(systems)
    lake = systems.lake.orders()
    return Proof(
        outbox=len(outbox),
        topic_records=topic.total(),
        topic_orders=len(topic),
        warehouse_rows=warehouse.total(),
        warehouse_orders=len(warehouse),
        lake_rows=lake.total(),
        lake_orders=len(lake),
        wrong=[
            *_wrong(outbox, topic, warehouse),
            *_lines(TO_WAREHOUSE, "mismatched", changed_orders(systems)),
            *_wrong_in_lake(topic, lake),
        ],
        repeated_in_topic=sorted(order for order, records in topic.items() if records > 1),
    )


def _wrong(outbox: Counter[str], topic: Counter[str], warehouse: Counter[str]) -> list[dict[str, str]]:
    return [
        *_lines(TO_TOPIC, "missing", outbox.keys() - topic.keys()),
        *_lines(TO_TOPIC, "unexpected", topic.keys() - outbox.keys()),
        *_lines(TO_WAREHOUSE, "missing", topic.keys() - warehouse.keys()),
        *_lines(TO_WAREHOUSE, "unexpected", warehouse.keys() - topic.keys()),
        *_lines(TO_WAREHOUSE, "duplicate", (order for order, rows in warehouse.items() if rows > 1)),
    ]


def _wrong_in_lake(topic: Counter[str], lake: Counter[str]) -> list[dict[str, str]]:
    """Each record has one row: an order that is in the topic twice has two."""
    return [
        *_lines(TO_LAKE, "missing", (topic - lake).keys()),
        *_lines(TO_LAKE, "unexpected", lake.keys() - topic.keys()),
        *_lines(TO_LAKE, "duplicate", (lake - topic).keys() & topic.keys()),
    ]


def _lines(hop: str, verdict: str, orders: Iterable[str]) -> list[dict[str, str]]:
    return [{"hop": hop, "key": order, "verdict": verdict} for order in sorted(orders)]
