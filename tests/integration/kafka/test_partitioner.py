"""Test that keys are put where real producers put them, librdkafka's and Java's."""

import random
from collections.abc import Mapping
from contextlib import closing

import pyarrow as pa
import pytest

from makewhole.compensation.freezing.payload_file import verified_copy, write_payloads
from makewhole.kafka.partitioner import librdkafka_name, partition_of
from makewhole.kafka.replay import ReplayWriter
from makewhole.kafka.replay_records import LineageHeaders, ReplayRecords
from makewhole.model.actions import Payload
from makewhole.model.points import Partitioner
from makewhole.stack.kafka_server import KafkaServer
from tests.world.consumer import read_records, read_settled
from tests.world.java_clients import JavaClients
from tests.world.topics import admin_client, kafka_connection, make_topic, producer

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

PARTITIONS = 7
KEYS = [b"", b"\x00", "ключ".encode(), *(random.Random(12).randbytes(size) for size in range(1, 70))]
MURMUR2, CRC32 = Partitioner.MURMUR2, Partitioner.CRC32


@pytest.fixture
def topic(kafka: KafkaServer, request: pytest.FixtureRequest) -> str:
    """Return an empty topic of several partitions."""
    name = f"{request.node.originalname}-{random.randbytes(4).hex()}"[-100:]
    make_topic(admin_client(kafka.bootstrap), name, PARTITIONS)
    return name


@pytest.mark.parametrize("partitioner", [MURMUR2, CRC32])
def test_librdkafka_puts_every_key_there(kafka: KafkaServer, topic: str, partitioner: Partitioner) -> None:
    client = producer(kafka.bootstrap, partitioner=librdkafka_name(partitioner))
    for key in KEYS:
        client.produce(topic, key=key, value=b"v")
    assert client.flush(30) == 0

    assert _agreeing(_places(kafka, topic), partitioner) == len(KEYS) - (partitioner is CRC32)


def test_java_puts_every_key_there_by_default(kafka: KafkaServer, topic: str, java: JavaClients) -> None:
    with java.producer(kafka.bootstrap) as client:
        for key in KEYS:
            client.send(topic, b"v", key=key, partition=None)
        client.flush()

    assert _agreeing(_places(kafka, topic), MURMUR2) == len(KEYS)


@pytest.mark.parametrize("partitioner", [MURMUR2, CRC32])
def test_a_replay_without_a_partition_goes_by_the_points_partitioner(
    kafka: KafkaServer, topic: str, partitioner: Partitioner
) -> None:
    """So do reversals, whose keys are made from a template."""
    writer = ReplayWriter(kafka_connection(kafka.bootstrap), topic, f"replay-{topic}", partitioner)
    try:
        writer.open()
        writer.write(0, _records(f"memory://{topic}"))
    finally:
        writer.close()

    places = {record.key or b"": record.partition for record in read_settled(kafka.bootstrap, topic)}
    assert _agreeing(places, partitioner) == len(KEYS) - (partitioner is CRC32)


def _records(prefix: str) -> ReplayRecords:
    """Return a record for every key, without a partition, as a plan freezes them."""
    frozen = [(seq, Payload(key=key, value=b"v")) for seq, key in enumerate(KEYS)]
    seqs = pa.chunked_array([pa.array(range(len(KEYS)), pa.int32())])
    with closing(verified_copy(*write_payloads(prefix, [frozen]))) as file:
        return ReplayRecords(file.chunk(0, seqs), LineageHeaders(plan="p", window="p/1", chunk=0))


def _places(kafka: KafkaServer, topic: str) -> Mapping[bytes, int]:
    return {record.key or b"": record.partition for record in read_records(kafka.bootstrap, topic)}


def _agreeing(places: Mapping[bytes, int], partitioner: Partitioner) -> int:
    """Return how many keys have a place of their own, after checking that they stand there."""
    assert set(places) == set(KEYS)
    expected = {key: partition_of(partitioner, key, PARTITIONS) for key in KEYS}
    own = {key: partition for key, partition in expected.items() if partition is not None}
    assert {key: places[key] for key in own} == own
    return len(own)
