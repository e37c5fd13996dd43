"""Keep datasets of Parquet files of orders, in a folder, on HDFS or on S3, and write them as loaders and others do."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from makewhole.config.connections import from_airflow_fields
from makewhole.file_stores.open_store import file_store
from makewhole.file_stores.store import FileStore
from makewhole.model.connection import Connection
from tests.world.orders import Order

_COLUMNS: list["pa.Field[Any]"] = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("number", pa.int64()),
    pa.field("region", pa.string()),
    pa.field("amount", pa.decimal128(8, 2)),
    pa.field("at", pa.timestamp("us", "UTC")),
]
ORDERS = pa.schema(_COLUMNS)
"""The columns of a file of orders."""
POSITIONED = ORDERS.append(pa.field("p", pa.int32())).append(pa.field("o", pa.int64()))
"""The same with the position of each record."""


@dataclass(frozen=True, kw_only=True)
class FilesPlace:
    """A path, and the fields of the Airflow connection below which it lies."""

    path: str
    fields: Mapping[str, Any]

    @property
    def connection(self) -> Connection:
        """The connection to it."""
        return from_airflow_fields("lake", **self.fields)

    @property
    def described(self) -> str:
        """The connection, as JSON."""
        return json.dumps(self.fields)

    @property
    def store(self) -> FileStore:
        """The files below the path."""
        return file_store(self.connection, self.path)

    def add(self, path: str, rows: Iterable[Mapping[str, Any]], schema: pa.Schema = ORDERS, **settings: Any) -> None:
        """Write a file of rows, in the place of one of its name."""
        self.store.replace(path, parquet_bytes(rows, schema, **settings))

    def names(self) -> list[str]:
        """Return the paths of all files."""
        return [file.path for file in self.store.list()]

    def content(self, path: str) -> bytes:
        """Return the bytes of a file."""
        with self.store.open(path) as file:
            return file.read()

    def table(self, path: str) -> pa.Table:
        """Return the rows of a file."""
        return pq.read_table(io.BytesIO(self.content(path)))

    def rows(self) -> list[dict[str, Any]]:
        """Return every row of the files that readers look at, in an order that depends on values alone."""
        visible = [name for name in self.names() if not any(part[0] in "._" for part in name.split("/"))]
        return sorted((row for name in visible for row in self.table(name).to_pylist()), key=str)


def parquet_bytes(rows: Iterable[Mapping[str, Any]], schema: pa.Schema = ORDERS, **settings: Any) -> bytes:
    """Return a Parquet file of rows."""
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), content, **settings)
    return content.getvalue()


def row_of(order: Order) -> dict[str, Any]:
    """Return the row that a loader makes of an order."""
    moment = None if order.get("at") is None else datetime.fromisoformat(order["at"])
    return {**order, "amount": Decimal(order["amount"]), "at": moment}


def rows_of(orders: Iterable[Order]) -> list[dict[str, Any]]:
    """Return the rows of orders."""
    return [row_of(order) for order in orders]


def positioned(orders: Sequence[Order], first: int = 0, partition: int = 0) -> list[dict[str, Any]]:
    """Return rows with the positions of records: those of one partition, from an offset on."""
    return [{**row_of(order), "p": partition, "o": first + at} for at, order in enumerate(orders)]


def spoil(place: FilesPlace, path: str, column: str = "amount", group: int = 0) -> bytes:
    """Flip a bit at the end of the pages of a column, where no header is; return what the file was."""
    whole = place.content(path)
    footer = pq.read_metadata(io.BytesIO(whole))
    metadata = footer.row_group(group)
    [chunk] = [
        metadata.column(at) for at in range(metadata.num_columns) if metadata.column(at).path_in_schema == column
    ]
    first = chunk.dictionary_page_offset or chunk.data_page_offset
    at = first + chunk.total_compressed_size - 1
    place.store.replace(path, whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
    return whole
