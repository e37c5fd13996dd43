"""Make a topic of orders and an Iceberg table of them with their positions, with holes and repeats that are planted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.catalog import load_catalog

from bench.topics.fill import PARTITIONS, idempotent_producer, make_topic, produce
from bench.windows.order_records import STATES, OrderFormat, cents_of, key_of, order_value
from bench.windows.orders import Counts
from makewhole.native.arrays import Int64s

TABLE = "dw.orders"
LAKE_HOP = "orders→lake"
_NEVER_LOADED, _LOADED_TWICE, _CHANGED = 7, 11, 5
_ROWS_OF_A_FILE = 500_000
_RECORDS_PER_CALL = 50_000
_FLUSH_SECONDS = 120
_POSITION = pa.struct([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
_TYPES: dict[str, Any] = {
    "order_id": pa.string(),
    "amount": pa.decimal128(12, 2),
    "status": pa.string(),
    "_kafka_metadata": _POSITION,
}
_SCHEMA = pa.schema(_TYPES)
_PIPELINE = """\
version: 2
pipeline: {pipeline}
start: earliest
settle: 0s
{compare}points:
  orders: {{kind: topic, connection: log, topic: {topic}, key: position}}
  lake: {{kind: dataset, connection: lake, format: iceberg, table: {table}, position: _kafka_metadata}}
hops:
  - {{from: orders, to: lake}}
"""
_COMPARE = 'compare: {amount: "decimal(12,2)", status: string}\n'


@dataclass(frozen=True, kw_only=True)
class LakeOrders:
    """So many orders in a topic and in a table. One in `stride` was never loaded, one loaded twice, and where values
    are compared one has another amount."""

    number: int
    stride: int
    has_values: bool = False

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return f"lake_{self.number}_{self.stride}"

    @property
    def planted(self) -> Counts:
        """The number of positions of each verdict that is no match."""
        faults = {"missing": _NEVER_LOADED, "duplicate": _LOADED_TWICE}
        faults |= {"mismatched": _CHANGED} if self.has_values else {}
        return {(LAKE_HOP, name): len(range(at, self.number, self.stride)) for name, at in faults.items()}

    def pipeline_file(self, pipeline: str) -> str:
        """Return the file of a pipeline over the topic and the table."""
        compare = _COMPARE if self.has_values else ""
        return _PIPELINE.format(pipeline=pipeline, compare=compare, topic=self.topic, table=TABLE)

    def fill_topic(self, bootstrap: str) -> None:
        """Make the topic and produce the records: order `n` lies in partition `n % 4`, at offset `n // 4`."""
        make_topic(bootstrap, self.topic)
        producer = idempotent_producer(bootstrap, "lz4")
        for start in range(0, self.number, _RECORDS_PER_CALL):
            for partition in range(PARTITIONS):
                numbers = range(start + partition, min(start + _RECORDS_PER_CALL, self.number), PARTITIONS)
                values = ((number, order_value(OrderFormat.JSON, number)) for number in numbers)
                produce(producer, self.topic, partition, [{"key": key_of(at), "value": value} for at, value in values])
        if left := producer.flush(_FLUSH_SECONDS):
            raise RuntimeError(f"{left} records of {self.topic} were not written in two minutes")

    def fill_table(self, lake: Mapping[str, str]) -> None:
        """Make the table, of a file for half a million orders, and one for the rows that are there twice."""
        catalog = load_catalog("default", **lake)
        catalog.create_namespace_if_not_exists(TABLE.partition(".")[0])
        table = catalog.create_table(TABLE, schema=_SCHEMA)
        for rows in self._tables():
            table.append(rows)

    def _tables(self) -> Iterator[pa.Table]:
        for start in range(0, self.number, _ROWS_OF_A_FILE):
            numbers = np.arange(start, min(start + _ROWS_OF_A_FILE, self.number), dtype=np.int64)
            yield self._rows(numbers[numbers % self.stride != _NEVER_LOADED])
        yield self._rows(np.arange(_LOADED_TWICE, self.number, self.stride, dtype=np.int64))

    def _rows(self, numbers: Int64s) -> pa.Table:
        cents = cents_of(numbers)
        if self.has_values:
            cents = cents + np.where(numbers % self.stride == _CHANGED, 100, 0)
        whole = pa.array(cents).cast(pa.decimal128(19, 0))
        states = pa.DictionaryArray.from_arrays(numbers % len(STATES), pa.array(STATES))
        parts: list[Any] = [pa.repeat(self.topic, len(numbers)), numbers % PARTITIONS, numbers // PARTITIONS]
        arrays: list[Any] = [
            pa.array([key_of(number) for number in numbers.tolist()]),
            pa.Array.from_buffers(pa.decimal128(12, 2), len(whole), whole.buffers()),
            states.cast(pa.string()),
            pa.StructArray.from_arrays(
                [pa.array(part).cast(field.type) for part, field in zip(parts, _POSITION, strict=True)],
                fields=list(_POSITION),
            ),
        ]
        return pa.Table.from_arrays(arrays, schema=_SCHEMA)
