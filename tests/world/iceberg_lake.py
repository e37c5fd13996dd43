"""Keep Iceberg tables of orders in a catalogue of their own, on a folder, and write them as loaders and others do."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from makewhole.datasets.iceberg.warehouse import IO_NAME, IO_PROPERTY
from tests.world.orders import Order

_TYPES: dict[str, Any] = {
    "id": pa.string(),
    "number": pa.int64(),
    "region": pa.string(),
    "amount": pa.decimal128(8, 2),
    "at": pa.timestamp("us", "UTC"),
}
ORDERS = pa.schema(_TYPES)
"""The columns of a table of orders."""
POSITION = pa.struct(
    [("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", pa.int64()), ("topic", pa.string())]
)
"""The column that a sink writes the position of each record into."""


@dataclass(frozen=True, kw_only=True)
class Lake:
    """A catalogue in a file of SQLite, or in the database at `uri`, whose warehouse is a folder.

    `settings`: properties of the catalogue besides, or instead.
    """

    folder: Path
    uri: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def catalog(self) -> Catalog:
        """The catalogue, made where it is not there."""
        return load_catalog("default", **{IO_PROPERTY: IO_NAME, **self._properties})

    @property
    def _properties(self) -> dict[str, str]:
        return {
            "type": "sql",
            "uri": self.uri or f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"file://{self.folder}/warehouse",
            **self.settings,
        }

    @property
    def described(self) -> str:
        """The Airflow connection to it, as JSON."""
        return json.dumps({"conn_type": "iceberg", "extra": self._properties})

    def make_table(self, name: str, schema: pa.Schema = ORDERS, **settings: Any) -> Table:
        """Make a table, empty; in the place of one of its name."""
        self.catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
        if self.catalog.table_exists(name):
            self.catalog.drop_table(name)
        return self.catalog.create_table(name, schema=schema, **settings)

    def table(self, name: str) -> Table:
        """Return a table as it is now."""
        return self.catalog.load_table(name)

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> Table:
        """Append rows in one file, as a loader does."""
        table = self.table(name)
        table.append(pa.Table.from_pylist(list(rows), schema=table.schema().as_arrow()))
        return table

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return every row, in an order that depends on its values alone."""
        return in_order(self.table(name).scan().to_arrow().to_pylist())

    def list_again(self, name: str) -> str:
        """List the newest file of a table once more, as a sink that lost its own progress does; return its path."""
        table = self.table(name)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        entries = [
            entry for manifest in snapshot.manifests(table.io) for entry in manifest.fetch_manifest_entry(table.io)
        ]
        newest = max(entries, key=lambda entry: entry.sequence_number or 0).data_file
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            append.append_data_file(newest)
        return newest.file_path


def in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in an order that depends on their values alone."""
    return sorted(rows, key=lambda row: [str(value) for _, value in sorted(row.items())])


def row_of(order: Order) -> dict[str, Any]:
    """Return the row that a loader makes of an order."""
    moment = None if order.get("at") is None else datetime.fromisoformat(order["at"])
    return {**order, "amount": Decimal(order["amount"]), "at": moment}


def rows_of(orders: Iterable[Order]) -> list[dict[str, Any]]:
    """Return the rows of orders."""
    return [row_of(order) for order in orders]


def with_position(orders: Sequence[Order], topic: str, first: int = 0) -> list[dict[str, Any]]:
    """Return rows of a sink that keeps the positions of records: those of one partition, from an offset on."""
    return [
        {**row_of(order), "_kafka_metadata": {"partition": 0, "offset": first + at, "timestamp": 0, "topic": topic}}
        for at, order in enumerate(orders)
    ]
