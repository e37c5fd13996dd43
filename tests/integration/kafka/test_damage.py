"""Test damaged batches and records that a broker holds: placed, counted, and never in the way.

A broker checks what producers send, not what its disk gives back: the segment is changed under its hands. What a broker
takes from a producer as it is, however odd, is sent as it is.
"""

import struct
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import pyarrow as pa
import pytest

from makewhole.kafka.log.batches import Batch, split_batches
from makewhole.kafka.log.reader import ArchiveLog, BrokerLog, RangeReader, SegmentWriter, read_range
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import TransientError
from makewhole.model.window import Accounting
from makewhole.stack.kafka_server import KafkaServer
from tests.integration.conftest import MakeTopic
from tests.integration.kafka.records import consume, produce, range_of
from tests.world.combinations import with_every_change
from tests.world.java_clients import JavaClients

pytestmark = pytest.mark.integration

Damage = Callable[[bytearray, Batch], None]


def put(form: str, at: int, *values: int) -> Damage:
    """Overwrite a header field; its place is counted from the batch's beginning."""

    def damage(data: bytearray, batch: Batch) -> None:
        struct.pack_into(form, data, batch.start + at, *values)

    return damage


def resealed(damage: Damage) -> Damage:
    """The same with a checksum that fits: a broken writer, not a broken disk."""

    def damaged(data: bytearray, batch: Batch) -> None:
        damage(data, batch)
        struct.pack_into(">I", data, batch.start + 17, google_crc32c.value(bytes(data[batch.start + 21 : batch.end])))

    return damaged


DAMAGES = {
    "wrong checksum (CRC-32C)": put(">B", 70, 0xFF),
    "record format 1 is not supported, only 2 is": put(">B", 16, 1),
    "impossible counts: -5 records": resealed(put(">i", 57, -5)),
    "impossible counts: 2000000000 records": resealed(put(">i", 57, 2_000_000_000)),
    "unknown compression codec 7": resealed(put(">h", 21, 7)),
    "damaged zstd data": resealed(put(">h", 21, 4)),
    "record length leaves the batch": resealed(put(">B", 61, 0x7F)),
}
LENGTHS = {"too short": 3, "shorter": 80, "longer": 300, "huge": 2**30}


def offsets(reader: RangeReader) -> list[int]:
    return [int(offset) for batch in reader for offset in batch.column("offset").to_numpy()]


MakeDamaged = Callable[[dict[int, Damage]], str]


@pytest.fixture
def damaged(kafka: KafkaServer, make_topic: MakeTopic, java: JavaClients) -> MakeDamaged:
    """Make a topic of 30 batches of ten records and damage some of them on the broker's disk."""

    def make(damages: dict[int, Damage]) -> str:
        topic = make_topic(index_interval_bytes="1")
        with java.producer(kafka.bootstrap, linger_ms=60_000) as producer:
            for offset in range(300):
                producer.send(topic, b'{"id": %d}' % offset, key=b"k%06d" % offset)
                if offset % 10 == 9:
                    producer.flush()
        [segment] = Path(kafka.directory).glob(f"node-1/data/{topic}-0/*.log")
        data = bytearray(segment.read_bytes())
        batches = list(split_batches(bytes(data)))
        assert [batch.base_offset for batch in batches] == list(range(0, 300, 10))
        for number, damage in damages.items():
            damage(data, batches[number])
        with segment.open("r+b") as file:
            file.write(data)
        return topic

    return make


@pytest.mark.parametrize("page_bytes", with_every_change([8 << 20, 1, 700], first=1))
def test_a_damaged_batch_costs_itself_only_and_is_placed(
    connection: KafkaConnection, damaged: MakeDamaged, tmp_path: Path, page_bytes: int
) -> None:
    numbers = range(2, 2 + 3 * len(DAMAGES), 3)
    topic = damaged(dict(zip(numbers, DAMAGES.values(), strict=True)))
    wanted = range_of(connection, topic, 0, 300)
    whole = [offset for offset in range(300) if offset // 10 not in numbers]
    writer = SegmentWriter(str(tmp_path), wanted)
    with BrokerLog(connection, page_bytes=page_bytes, patience_seconds=3) as log:
        reader = read_range(log, wanted, on_fetched=writer.write)
        assert offsets(reader) == whole
    assert reader.accounting == Accounting(span=300, data=len(whole), undecodable=300 - len(whole))
    assert [gap[1:3] for gap in reader.undecodable] == [(10 * number, 10 * number + 10) for number in numbers]
    for span, expected in zip(reader.undecodable, DAMAGES, strict=True):
        # The broker itself stumbles over some of them, when it is asked for nothing else.
        assert span.reason.startswith((expected, "no whole batch stands at these offsets"))
    account = reader.account
    writer.finish(account.expired, reader.aborted, unexplained=account.unexplained)
    again = read_range(ArchiveLog(str(tmp_path)), wanted)
    assert offsets(again) == whole
    assert again.accounting == reader.accounting
    assert again.undecodable == reader.undecodable


@pytest.mark.parametrize("length", with_every_change(LENGTHS.values(), first=1), ids=LENGTHS)
def test_a_length_that_lies_ends_no_read(
    connection: KafkaConnection, damaged: MakeDamaged, tmp_path: Path, length: int
) -> None:
    wanted = range_of(connection, damaged({5: put(">i", 8, length)}), 0, 300)
    whole = [offset for offset in range(300) if offset // 10 != 5]
    writer = SegmentWriter(str(tmp_path), wanted)
    with BrokerLog(connection, patience_seconds=3) as log:
        reader = read_range(log, wanted, on_fetched=writer.write)
        assert offsets(reader) == whole
    assert reader.accounting == Accounting(span=300, data=290, undecodable=10)
    assert [span[1:3] for span in reader.undecodable] == [(50, 60)]
    writer.finish(reader.expired, reader.aborted, unexplained=reader.account.unexplained)
    again = read_range(ArchiveLog(str(tmp_path)), wanted)
    assert offsets(again) == whole
    assert again.accounting == reader.accounting


@pytest.mark.extended
def test_a_last_batch_that_is_cut_off_is_waited_for_until_something_stands_behind_it(
    kafka: KafkaServer, connection: KafkaConnection, damaged: MakeDamaged
) -> None:
    """Takes long: the reader's patience has to end."""
    topic = damaged({29: put(">i", 8, 2**30)})
    wanted = range_of(connection, topic, 0, 300)
    with BrokerLog(connection, patience_seconds=3) as log:
        with pytest.raises(TransientError, match=r"offset 290 of .* cannot be read, the broker answers with nothing"):
            offsets(read_range(log, wanted))
        produce(kafka.bootstrap, topic, 1)
        reader = read_range(log, range_of(connection, topic, 0, 301))
        assert offsets(reader) == [*range(290), 300]
        assert reader.accounting == Accounting(span=301, data=291, undecodable=10)


def test_odd_records_that_a_broker_takes_are_read_as_they_are(
    kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic, java: JavaClients
) -> None:
    """Against what the consumer gets: keys, values and headers of every odd kind, and times at the edges."""
    topic = make_topic(
        retention_ms="-1",
        max_message_bytes=str(20 << 20),
        message_timestamp_before_max_ms=str(2**63 - 1),
        message_timestamp_after_max_ms=str(2**63 - 1),
    )
    odd = [None, b"", b"\xff\xfe", b"\0", b"\xed\xa0\x80", "e\u0301".encode(), "\u202eid\u200b ".encode(), b"<script>"]
    odd += [b"=cmd()", b"\x1b[31m\r\n", bytes(3000), b"[" * 100_000, b'{"a": 1, "a": 2}', b"NaN", b"\x01" * (8 << 20)]
    many = [(f"h{index % 7}", b"v" if index % 2 else None) for index in range(10_000)]
    with java.producer(
        kafka.bootstrap, max_request_size=20 << 20, compression_type="zstd", buffer_memory=64 << 20
    ) as producer:
        for content in odd:
            producer.send(topic, content, key=content if content is None or len(content) < 5000 else None).get()
        producer.send(topic, b"headers", headers=many).get()
        for time_ms in (0, 2**62, 2**63 - 1):
            producer.send(topic, b"time", timestamp_ms=time_ms).get()
        producer.send(topic, b"forged", headers=[("makewhole-plan", b"p")]).get()
    count = len(odd) + 5
    wanted = range_of(connection, topic, 0, count)
    with BrokerLog(connection) as log:
        reader = read_range(log, wanted)
        table = pa.Table.from_batches(reader)
    assert reader.accounting == Accounting(span=count, data=count)
    rows = zip(*(table[name].to_pylist() for name in ("offset", "key", "value")), strict=True)
    assert list(rows) == consume(kafka.bootstrap, topic)
    assert [(header["key"], header["value"]) for header in table["headers"][len(odd)].as_py()] == many
    assert table["timestamp"].cast(pa.int64()).to_pylist()[-4:-1] == [0, 2**62, 2**63 - 1]
    assert table["is_replayed"].to_pylist() == [False] * (count - 1) + [True]
