"""Send the lines of orders into a shop's topic, and keep one row for each order that adds its lines up."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tests.world.orders import BORN, DAY
from tests.world.pipeline_file import Settings, flow, store, topic
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

_FILE = """\
version: 2
pipeline: shop
start: earliest
settle: 0s
late: 30d
pending: {{max_age: {max_age}}}
reach: log
gate: {{allow_empty: true}}
points:
  orders: {orders}
  warehouse: {warehouse}
hops:
  - {hop}
"""
TABLE = "warehouse"


@dataclass(kw_only=True)
class OrderLines:
    """The lines of a shop's orders. `store`: the point of the rows, another one than the table of `make_table`."""

    shop: ReconciledShop
    store: Settings = field(default_factory=lambda: store("db", TABLE))

    def make_table(self) -> None:
        """Make the table of rows, empty."""
        self.shop.sql(f"create table {TABLE} (id text, lines int, total numeric(12,2), at timestamptz)")

    def describe(self, *, identity: str = "line_id", max_age: str = "30d", **hop: str) -> None:
        """Write the pipeline's file; `hop` is what its hop has besides."""
        group = flow({"identity": identity, "counts": "lines", "sums": '{total: "decimal(12,2)"}'})
        columns = flow({"total": '"$.price.amount"'})
        text = _FILE.format(
            max_age=max_age,
            orders=flow(topic("log", self.shop.topic, key='"$.order"', columns=columns)),
            warehouse=flow(self.store),
            hop=flow({"from": "orders", "to": "warehouse", "group": group, **hop}),
        )
        self.shop.file.write_text(text)

    def line(self, order: str, line: str | None, amount: Any, day: float = 0) -> dict[str, Any]:
        """Return a line of an order, as its record has it."""
        return {"order": order, "line_id": line, "price": {"amount": amount}, "at": day}

    def send(self, *lines: Mapping[str, Any], partition: int = 0) -> None:
        """Send lines in their order."""
        client = producer(self.shop.bootstrap)
        for line in lines:
            client.produce(self.shop.topic, json.dumps(line).encode(), b"k", partition, timestamp=moment(line["at"]))
        assert client.flush(30) == 0

    def row(self, order: str, lines: int | None, total: str | None, day: float = 0) -> None:
        """Write a row of the table."""
        self.shop.sql(f"insert into {TABLE} values (%s, %s, %s, %s)", order, lines, total, BORN + day * DAY)


def moment(day: float) -> int:
    """Return the time of a record of a day, in milliseconds."""
    return int((BORN + day * DAY + timedelta(minutes=1)).timestamp() * 1000)
