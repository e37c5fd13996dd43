"""Keep beside each row where its record lies, or how its producer numbered it, as a loader does that goes by them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from makewhole.config.connections import from_environment
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.offsets import describe_topic, high_watermarks
from makewhole.model.connection import kafka_of
from makewhole.model.window import PartitionRange
from tests.histories.shapes.formats import RecordFormat
from tests.world.orders import BORN, DAY, Order
from tests.world.topics import producer
from tests.world.windows import ReconciledShop


@dataclass(frozen=True, kw_only=True)
class Coordinates:
    """What of a record is its key. `columns`: those of the table, with the name that the log's reader has for each.
    `stray`: what a row has that is of no record."""

    name: str
    columns: Mapping[str, str]
    stray: Mapping[str, int] = field(default_factory=dict)

    def of(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a record that the log's reader gives."""
        return {column: record[name] for column, name in self.columns.items()}

    def key_of(self, row: Order) -> str:
        """Return the business key of a row."""
        return json.dumps([str(row[column]) for column in self.columns], separators=(",", ":"))


COORDINATES = (
    Coordinates(name="position", columns={"part": "partition", "pos": "offset"}, stray={"part": 0, "pos": 1_000}),
    Coordinates(
        name="sequence",
        columns={"pid": "producer_id", "epoch": "producer_epoch", "part": "partition", "seq": "sequence"},
        stray={"pid": 1_000_000, "epoch": 0, "part": 0, "seq": 0},
    ),
)


def send_numbered(shop: ReconciledShop, record_format: RecordFormat, records: Iterable[Order]) -> None:
    """Send records by an idempotent producer, which numbers them, into the partitions of their keys."""
    client = producer(shop.bootstrap, enable_idempotence=True, linger_ms=5)
    for record in records:
        client.produce(
            shop.topic,
            partition=sum(record["id"].encode()) % shop.partitions,
            key=record_format.record_key(record),
            value=record_format.value(record),
            timestamp=int((BORN + DAY / 2).timestamp() * 1000),
            headers=[(name, text.encode()) for name, text in record_format.headers(record).items()],
        )
    assert client.flush(30) == 0


def in_log_order(shop: ReconciledShop, records: Iterable[Order]) -> list[tuple[Order, Mapping[str, Any]]]:
    """Return records with what the log has of each: they were sent one after the other, so that in each partition they
    lie in the order in which they are given."""
    read: dict[int, list[Mapping[str, Any]]] = {}
    for (partition, _), row in sorted(log_rows(shop).items()):
        read.setdefault(partition, []).append(row)
    pairs: list[tuple[Order, Mapping[str, Any]]] = []
    for record in records:
        partition = sum(record["id"].encode()) % shop.partitions
        pairs.append((record, read[partition].pop(0)))
    assert not any(read.values())
    return pairs


def log_rows(shop: ReconciledShop) -> dict[tuple[int, int], Mapping[str, Any]]:
    """Return what the log has of each record, by partition and offset: `partition` and the columns of its reader."""
    log = kafka_of(from_environment("log"))
    by_place: dict[tuple[int, int], Mapping[str, Any]] = {}
    topic_id, ends = describe_topic(log, shop.topic).topic_id, high_watermarks(log, shop.topic)
    with BrokerLog(log) as broker:
        for partition, end in ends.items():
            if not end:
                continue
            wanted = PartitionRange(topic=shop.topic, topic_id=topic_id, partition=partition, lo=0, hi=end)
            rows = (row for batch in read_range(broker, wanted).batches() for row in batch.to_pylist())
            by_place.update({(partition, row["offset"]): {**row, "partition": partition} for row in rows})
    return by_place
