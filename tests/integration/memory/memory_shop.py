"""Run a shop whose warehouse is a table in memory: its orders go from a topic into it, and no ledger is before them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from makewhole.tables.description import Column
from tests.memory.rows import Database, RowValues, StoredRow, StoredTable
from tests.memory.server import MemoryServer
from tests.memory.values import TYPES, stored_text
from tests.memory.writing import fence_off
from tests.world.orders import Order
from tests.world.repaired_shop import RepairedShop

ORDERS = {
    "id": "text",
    "number": "bigint",
    "region": "text",
    "amount": "numeric",
    "at": "timestamp with time zone",
}
"""The columns of a table of orders, with their types."""


@dataclass(kw_only=True)
class MemoryShop(RepairedShop):
    """A shop whose tables are those of a database in the memory of this process."""

    server: MemoryServer
    database: str

    def make_table(self, table: str = "warehouse", types: Mapping[str, str] = ORDERS) -> None:
        """Make a table, empty."""
        self.server.run(self.database, make_table, table, types)

    def write(self, table: str, orders: Iterable[Order]) -> None:
        """Write rows, in the order given, as a loader does."""
        self.server.run(self.database, write_rows, table, list(orders))

    def change(self, key: str, *, table: str = "warehouse", **changed: Any) -> None:
        """Change the rows of a key, as another writer does."""
        self.server.run(self.database, change_rows, table, key, changed)

    def remove(self, key: str, *, amount: str | None = None, table: str = "warehouse") -> None:
        """Delete the rows of a key, or only those with an amount, as another writer does."""
        self.server.run(self.database, remove_rows, table, key, amount)

    def placed(self, table: str = "warehouse") -> dict[str, RowValues]:
        """Return every row by its place: a row that was written again has another one."""
        rows = self.server.run(self.database, lambda database: list(database.tables[table].rows.values()))
        return {row.place: row.values for row in rows}

    def rows(self, table: str = "warehouse") -> list[RowValues]:
        """Return every row, whatever its place, in an order that depends on its values alone."""
        return in_order(self.placed(table).values())

    def kept(self) -> Database:
        """Return the whole database, with what chunks left in it."""
        return self.server.run(self.database, lambda database: database)

    def fence(self, plan: str, target: str, lease_epoch: int) -> None:
        """Fence off runners of a plan, as one with this lease does."""
        self.server.run(self.database, fence_off, plan, target, lease_epoch)


def in_order(rows: Iterable[RowValues]) -> list[RowValues]:
    """Return rows in an order that depends on their values alone."""
    return sorted(rows, key=lambda values: [*map(str, values.values())])


def row_of(order: Order) -> RowValues:
    """Return the row that a loader makes of an order with these columns."""
    return {name: stored_text(order.get(name), _column(name, ORDERS.get(name, "bigint"))) for name in order}


def _column(name: str, column_type: str) -> Column:
    assert column_type in TYPES
    return Column(
        name=name,
        type=column_type,
        base_type=column_type,
        is_generated=False,
        is_identity_always=False,
        is_required=name == "id",
        has_default=False,
    )


def make_table(database: Database, name: str, types: Mapping[str, str]) -> None:
    """Make a table, empty; in the place of one of its name."""
    columns = {column: _column(column, column_type) for column, column_type in types.items()}
    database.tables[name] = StoredTable(number=len(database.tables), name=name, columns=columns)


def write_rows(database: Database, name: str, orders: Iterable[Order]) -> None:
    """Add a row for each order."""
    table = database.tables[name]
    for order in orders:
        database.insert(
            table,
            {column_name: stored_text(order.get(column_name), column) for column_name, column in table.columns.items()},
        )


def change_rows(database: Database, name: str, key: str, changed: Mapping[str, Any]) -> None:
    """Write the rows of a key again, with other values."""
    table = database.tables[name]
    texts = {column_name: stored_text(value, table.columns[column_name]) for column_name, value in changed.items()}
    for row in _of_key(table, key):
        database.update(table, row, {**row.values, **texts})


def remove_rows(database: Database, name: str, key: str, amount: str | None) -> None:
    """Delete the rows of a key, or only those with an amount."""
    table = database.tables[name]
    for row in _of_key(table, key):
        if amount is None or row.values["amount"] == amount:
            database.delete(table, row)


def _of_key(table: StoredTable, key: str) -> list[StoredRow]:
    return [row for row in table.rows.values() if row.values["id"] == key]
