"""Prove the result independently, by plain SQL, a plain consumer and pyiceberg: each order is everywhere, once in the
warehouse and in the lake, as it was placed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from examples.cdc.contents import (
    changed_orders,
    orders_in_outbox,
    orders_in_topic,
    orders_in_warehouse,
    values_in_outbox,
)
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
    """Read all four and judge. A log keeps its second copies: they are not wrong, as long as warehouse and lake have
    the order once each."""
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
            *_wrong_in_topic(outbox, topic),
            *_wrong_in_sink(TO_WAREHOUSE, topic, warehouse),
            *_lines(TO_WAREHOUSE, "mismatched", changed_orders(systems)),
            *_wrong_in_sink(TO_LAKE, topic, lake),
            *_lines(TO_LAKE, "mismatched", _changed_in_lake(systems)),
        ],
        repeated_in_topic=sorted(order for order, records in topic.items() if records > 1),
    )


def _wrong_in_topic(outbox: Counter[str], topic: Counter[str]) -> list[dict[str, str]]:
    return [
        *_lines(TO_TOPIC, "missing", outbox.keys() - topic.keys()),
        *_lines(TO_TOPIC, "unexpected", topic.keys() - outbox.keys()),
    ]


def _wrong_in_sink(hop: str, topic: Counter[str], rows: Counter[str]) -> list[dict[str, str]]:
    return [
        *_lines(hop, "missing", topic.keys() - rows.keys()),
        *_lines(hop, "unexpected", rows.keys() - topic.keys()),
        *_lines(hop, "duplicate", (order for order, copies in rows.items() if copies > 1)),
    ]


def _changed_in_lake(systems: Systems) -> set[str]:
    """Return the orders that have other values in the lake than in the outbox."""
    placed = values_in_outbox(systems)
    return {order for order, row in systems.lake.values() if order in placed and placed[order] != row}


def _lines(hop: str, verdict: str, orders: Iterable[str]) -> list[dict[str, str]]:
    return [{"hop": hop, "key": order, "verdict": verdict} for order in sorted(orders)]
