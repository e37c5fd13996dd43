"""Test the reader against a read_committed consumer, record by record, on random transactional histories.

`MAKEWHOLE_HISTORIES=200` plays so many of them instead of a dozen.
"""

import os
import random
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from makewhole.kafka import offsets
from makewhole.kafka.log.reader import ArchiveLog, BrokerLog, RangeReader, SegmentWriter, read_range
from makewhole.model.connection import KafkaConnection
from makewhole.model.window import Accounting, PartitionRange
from makewhole.stack.kafka_server import KafkaServer
from tests.integration.conftest import MakeTopic
from tests.integration.kafka.histories import Actor, cast, end_all, play
from tests.world.consumer import Record
from tests.world.java_clients import JavaClients

pytestmark = pytest.mark.integration

HISTORIES = int(os.environ.get("MAKEWHOLE_HISTORIES", "12"))
Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@dataclass
class Seen:
    """Count what the histories held, all together."""

    total: Accounting = field(default_factory=lambda: Accounting(span=0))
    held_by_open: int = 0
    epochs: set[int] = field(default_factory=set)


@pytest.fixture(scope="module")
def actors(kafka: KafkaServer, java: JavaClients) -> list[Actor]:
    return cast(kafka.bootstrap, java, random.Random(0))


def consumed(bootstrap: str, ranges: Sequence[PartitionRange]) -> dict[int, list[Row]]:
    """Return what a consumer sees of the ranges, by partition. It is at its end when it says so at `hi` or later."""
    settings = {"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "enable.auto.commit": False}
    at_once = {"enable.partition.eof": True, "fetch.wait.max.ms": 50}
    consumer = Consumer({**settings, **at_once, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(part.topic, part.partition, part.lo) for part in ranges])
    missing = {part.partition: part.hi for part in ranges}
    seen: dict[int, list[Row]] = {part.partition: [] for part in ranges}
    ends = dict(missing)
    while missing:
        message = consumer.poll(20)
        assert message is not None, "the consumer came to no end"
        error, partition, offset = message.error(), message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            if offset >= ends[partition]:
                missing.pop(partition, None)
        elif offset < ends[partition]:
            record = Record.of(message)
            headers = list(record.headers)
            seen[partition].append((offset, record.timestamp_ms, record.key, record.value, headers))
    consumer.close()
    return seen


def wait_for_markers(connection: KafkaConnection, topic: str) -> None:
    """A transaction is decided when its end is answered; its markers come a moment later."""
    deadline = time.monotonic() + 20
    while offsets.stable_offsets(connection, topic) != offsets.high_watermarks(connection, topic):
        assert time.monotonic() < deadline, "a transaction stays open"
        time.sleep(0.02)


def rows(batches: Iterator[pa.RecordBatch]) -> list[Row]:
    return [_row(record) for batch in batches for record in _with_times(batch).to_pylist()]


def _with_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Have timestamps as milliseconds."""
    times = batch.column("timestamp").view(pa.int64())
    return batch.set_column(batch.schema.get_field_index("timestamp"), "timestamp", times)


def _row(record: dict[str, Any]) -> Row:
    headers = [(header["key"], header["value"]) for header in record["headers"]]
    return record["offset"], record["timestamp"], record["key"], record["value"], headers


def test_the_filter_equals_a_read_committed_consumer(
    kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic, actors: list[Actor], tmp_path: Path
) -> None:
    """Takes long: a dozen histories are played. In one test, which knows what all of them held."""
    seen = Seen()
    for seed in range(HISTORIES):
        chance = random.Random(seed)
        partitions = chance.randint(1, 3)
        topic = make_topic(partitions, retention_ms="-1")  # some records say that they are old
        topic_id = offsets.describe_topic(connection, topic).topic_id
        for act in ("with transactions open", "with all ended"):
            print(f"history of seed {seed}, {act}")  # shown when it fails
            play(actors, topic, partitions, chance)
            if act == "with all ended":
                end_all(actors, chance)
                wait_for_markers(connection, topic)
            page_bytes = chance.choice([1, 700, chance.randint(700, 5000), 8 << 20])
            stable = offsets.stable_offsets(connection, topic)
            ranges = [
                PartitionRange(
                    topic=topic, topic_id=topic_id, partition=partition, lo=chance.choice([0, middle]), hi=hi
                )
                for partition, hi in stable.items()
                for middle in [chance.randint(0, hi)]
            ]
            expected = consumed(kafka.bootstrap, ranges)
            seen.held_by_open += stable != offsets.high_watermarks(connection, topic)
            for wanted in ranges:
                archive = str(tmp_path / f"{seed} {act}")
                reader = compare(connection, wanted, expected[wanted.partition], page_bytes, archive, chance)
                seen.total += reader.accounting
                seen.epochs |= {state.producer_epoch for state in reader.sequences.states}

    assert min(seen.total.data, seen.total.control, seen.total.aborted, seen.held_by_open) > 0
    assert max(seen.epochs) > 5, "Java's producers give each transaction an epoch of its own"


def compare(
    connection: KafkaConnection,
    wanted: PartitionRange,
    expected: list[Row],
    page_bytes: int,
    archive: str,
    chance: random.Random,
) -> RangeReader:
    """Read from the broker, and again from the archive that this writes."""
    writer = SegmentWriter(archive, wanted)
    with BrokerLog(connection, page_bytes=page_bytes) as log:
        reader = read_range(log, wanted, max_records=chance.choice([1, 10, 65_536]), on_fetched=writer.write)
        assert rows(reader.batches()) == expected
    accounting = reader.accounting
    assert accounting.is_complete
    assert (accounting.data, accounting.compacted, accounting.undecodable) == (len(expected), 0, 0)
    assert reader.sequences.breaks == []
    writer.finish(reader.expired, reader.aborted)
    again = read_range(ArchiveLog(archive, page_bytes=page_bytes), wanted)
    assert rows(again.batches()) == expected
    assert again.accounting == accounting
    return reader
