"""Test the raw log reader against a real broker and a plain consumer."""

import itertools
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from makewhole.kafka import offsets
from makewhole.kafka.log.reader import ArchiveLog, BrokerLog, RangeReader, SegmentWriter, TransactionCounts, read_range
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.window import Accounting, PartitionRange
from makewhole.stack.kafka_server import KafkaServer, kafka_libs
from makewhole.stack.maven_jars import java
from tests.integration.conftest import MakeTopic
from tests.integration.kafka.records import consume, produce, range_of
from tests.world import topics
from tests.world.combinations import with_every_change
from tests.world.java_clients import JavaClients
from tests.world.topics import left_open, producer

pytestmark = pytest.mark.integration

_TRANSACTION_MS = 600_000  # it is left open while the tests of this module run


def rows(reader: RangeReader) -> list[tuple[int, bytes, bytes]]:
    return [
        row
        for batch in reader
        for row in zip(*(batch.column(name).to_pylist() for name in ("offset", "key", "value")), strict=True)
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_gives_what_a_consumer_gets(
    kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic, codec: str
) -> None:
    topic = make_topic()
    produce(kafka.bootstrap, topic, 3000, compression_type=codec, linger_ms=5)
    with BrokerLog(connection) as log:
        reader = read_range(log, range_of(connection, topic, 0, 3000))
        assert rows(reader) == consume(kafka.bootstrap, topic)
    assert reader.accounting == Accounting(span=3000, data=3000)
    assert reader.leader_epochs == [(0, 0, 3000)]


@pytest.mark.parametrize("codec", with_every_change(["snappy", "zstd", "none", "gzip", "lz4"], first=2))
def test_every_codec_of_javas_gives_what_a_consumer_gets(
    kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic, java: JavaClients, codec: str
) -> None:
    topic = make_topic()
    with java.producer(kafka.bootstrap, compression_type=codec, linger_ms=100, batch_size=100_000) as producer:
        for index in range(500):
            producer.send(topic, b'{"id": %d, "text": "value"}' % index + bytes(100), key=b"k%d" % index)
        producer.flush()
    fetched: list[bytes] = []
    with BrokerLog(connection) as log:
        wanted = range_of(connection, topic, 0, 500)
        reader = read_range(log, wanted, on_fetched=lambda _, data: fetched.append(data))
        assert rows(reader) == consume(kafka.bootstrap, topic)
    assert reader.accounting == Accounting(span=500, data=500)
    assert (b"\x82SNAPPY\x00" in b"".join(fetched)) == (codec == "snappy"), "Java frames snappy, no other client does"


@pytest.fixture(scope="module")
def transactions(kafka: KafkaServer, admin: AdminClient) -> Iterator[str]:
    """Two transactional producers and a plain one on one partition; every third transaction aborted, one left open.

    The tests only read it.
    """
    topic = f"t-{uuid.uuid4().hex[:12]}"
    topics.make_topic(admin, topic)
    settings = {"linger_ms": 0, "transaction_timeout_ms": _TRANSACTION_MS}
    clients = [producer(kafka.bootstrap, transactional_id=f"{topic}-{n}", **settings) for n in range(3)]
    for client in clients:
        client.init_transactions(30)
    for turn in range(9):
        for client in clients[:2]:
            client.begin_transaction()
        for index in range(20):
            for number, client in enumerate(clients[:2]):
                client.produce(topic, key=b"%d-%d-%d" % (turn, number, index), value=b"v" * 50)
                client.poll(0)
                if index % 7 == 0:
                    client.flush()
        produce(kafka.bootstrap, topic, 3, start=turn * 10)
        for number, client in enumerate(clients[:2]):
            client.flush()
            if (turn + number) % 3 == 0:
                client.abort_transaction(30)
            else:
                client.commit_transaction(30)
    clients[2].begin_transaction()
    clients[2].produce(topic, key=b"open", value=b"open")
    clients[2].flush()
    produce(kafka.bootstrap, topic, 5, start=900)
    assert len(left_open(kafka.bootstrap, topic, 1)) == 1
    yield topic
    clients[2].abort_transaction(30)
    topics.delete_topics(admin, [topic])


@pytest.mark.parametrize("page_bytes", [1, 700, 8 << 20])
def test_committed_records_equal_a_read_committed_consumers(
    kafka: KafkaServer, connection: KafkaConnection, transactions: str, page_bytes: int
) -> None:
    stable = offsets.stable_offsets(connection, transactions)[0]
    assert offsets.high_watermarks(connection, transactions)[0] == stable + 6
    expected = consume(kafka.bootstrap, transactions)
    with BrokerLog(connection, page_bytes=page_bytes) as log:
        reader = read_range(log, range_of(connection, transactions, 0, stable))
        assert rows(reader) == expected
        assert reader.accounting.control == 18
        assert reader.accounting.aborted == 6 * 20
        assert reader.transactions == TransactionCounts(committed=12, aborted=6)
        assert reader.sequences.breaks == []
        for lo in range(0, stable, stable // 7):
            part = read_range(log, range_of(connection, transactions, lo, stable))
            assert rows(part) == [row for row in expected if row[0] >= lo]


def test_an_open_transaction_is_named_when_it_holds_the_range(connection: KafkaConnection, transactions: str) -> None:
    end = offsets.high_watermarks(connection, transactions)[0]
    with BrokerLog(connection, patience_seconds=1) as log:
        wanted = range_of(connection, transactions, 0, end)
        with pytest.raises(TransientError, match=f"an open transaction holds the log at {end - 6}"):
            rows(read_range(log, wanted))
        tail = read_range(log, wanted, isolation="uncommitted")
        assert rows(tail)[-6:][0][1] == b"open"
        assert tail.accounting.aborted == 0


def test_a_range_beyond_the_log_is_not_read_short(
    kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    produce(kafka.bootstrap, topic, 10)
    reason = r"offset 10 of \[0, 20\) cannot be read, the log ends before it"
    with BrokerLog(connection, patience_seconds=1) as log, pytest.raises(TransientError, match=reason):
        rows(read_range(log, range_of(connection, topic, 0, 20)))


def test_deleted_records_are_expired_not_lost(
    kafka: KafkaServer, connection: KafkaConnection, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    produce(kafka.bootstrap, topic, 100, linger_ms=50)
    for future in admin.delete_records([TopicPartition(topic, 0, 23)]).values():
        future.result()
    assert offsets.log_starts(connection, topic) == {0: 23}
    with BrokerLog(connection) as log:
        reader = read_range(log, range_of(connection, topic, 10, 100))
        assert rows(reader) == consume(kafka.bootstrap, topic)
    assert reader.accounting == Accounting(span=90, data=77, expired=13)


def test_holes_of_compaction_are_compacted(
    kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic(
        cleanup_policy="compact", segment_ms="300", min_cleanable_dirty_ratio="0.001", delete_retention_ms="100"
    )
    client = producer(kafka.bootstrap, enable_idempotence=True, linger_ms=5)
    for index in range(400):
        client.produce(topic, key=b"k%d" % (index % 10), value=b"v%d" % index)
        if index % 100 == 99:
            client.flush()
            time.sleep(0.5)
    wanted = range_of(connection, topic, 0, 400)
    deadline = time.monotonic() + 20
    with BrokerLog(connection) as log:
        while True:
            reader = read_range(log, wanted)
            records = rows(reader)
            if reader.accounting.compacted > 200 or time.monotonic() > deadline:
                break
            client.produce(topic, key=b"k0", value=b"roll")
            client.flush()
            time.sleep(0.5)
    assert [row for row in consume(kafka.bootstrap, topic) if row[0] < 400] == records
    assert reader.accounting.compacted > 200
    assert reader.accounting.is_complete
    assert reader.sequences.breaks == []


def test_a_topic_made_again_is_refused(connection: KafkaConnection, kafka: KafkaServer, make_topic: MakeTopic) -> None:
    topic = make_topic()
    produce(kafka.bootstrap, topic, 10)
    gone = PartitionRange(topic=topic, topic_id="AAAAAAAAAAAAAAAAAAAAAA", partition=0, lo=0, hi=10)
    with BrokerLog(connection) as log, pytest.raises(RefusedError, match="was deleted and made again"):
        rows(read_range(log, gone))


@pytest.mark.parametrize("cuts", [(), (40, 41, 100)], ids=["whole", "in pieces"])
def test_an_archive_reads_like_the_broker_and_kafkas_own_tool_reads_it(
    connection: KafkaConnection, transactions: str, tmp_path: Path, cuts: tuple[int, ...]
) -> None:
    stable = offsets.stable_offsets(connection, transactions)[0]
    wanted = range_of(connection, transactions, 7, stable)
    paths: list[str] = []
    for lo, hi in itertools.pairwise([7, *cuts, stable]):
        piece = replace(wanted, lo=lo, hi=hi)
        writer = SegmentWriter(str(tmp_path), piece, window_lo=7)
        with BrokerLog(connection, page_bytes=2000) as log:
            reader = read_range(log, piece, on_fetched=writer.write)
            list(reader)
        paths += [path for path in writer.finish(reader.expired, reader.aborted) if path.endswith(".log")]
    for lo in range(7, stable, stable // 9):
        part = replace(wanted, lo=lo)
        with BrokerLog(connection) as log:
            live, archived = (
                read_range(source, part, include_aborted=True) for source in (log, ArchiveLog(str(tmp_path)))
            )
            assert pa.Table.from_batches(archived).equals(pa.Table.from_batches(live))
            assert archived.accounting == live.accounting
    dumped = dump(paths)
    assert dumped == list(range(dumped[0], stable))
    assert dumped[0] <= 7


def dump(paths: list[str]) -> list[int]:
    """The offsets of the records in segment files, as Kafka's own tool reads them."""
    command = [java(), "-Xmx128m", "-cp", f"{kafka_libs()}/*", "kafka.tools.DumpLogSegments", "--deep-iteration"]
    command += ["--files", ",".join(paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert "isvalid: true" in done.stdout
    assert "isvalid: false" not in done.stdout
    return [
        int(line.split("offset: ")[1].split()[0]) for line in done.stdout.splitlines() if line.startswith("| offset:")
    ]
