"""Topics, producers and a plain consumer to compare with."""

import sys
import uuid
from collections.abc import Iterator
from types import ModuleType

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from makewhole.kafka.offsets import describe_topic
from makewhole.model.connection import KafkaConnection
from makewhole.model.window import PartitionRange
from tests.world.java_clients import JavaClients


@pytest.fixture(scope="session")
def java() -> Iterator[JavaClients]:
    """A JVM with Java's own clients."""
    with JavaClients() as clients:
        yield clients


@pytest.fixture(scope="session")
def kafka_tools() -> ModuleType:
    """This module: helpers that take a bootstrap address."""
    return sys.modules[__name__]


def producer(bootstrap: str, **settings: object) -> Producer:
    return Producer(
        {"bootstrap.servers": bootstrap, **{key.replace("_", "."): value for key, value in settings.items()}}
    )


def produce(bootstrap: str, topic: str, count: int, *, partition: int = 0, start: int = 0, **settings: object) -> None:
    client = producer(bootstrap, **settings)
    for index in range(start, start + count):
        client.produce(topic, partition=partition, key=b"k%06d" % index, value=b'{"id": %d, "text": "value"}' % index)
        if index % 1000 == 0:
            client.poll(0)
    assert client.flush(30) == 0


def consume(
    bootstrap: str, topic: str, partition: int = 0, start: int = OFFSET_BEGINNING
) -> list[tuple[int, bytes, bytes]]:
    """(offset, key, value) of every record that a read_committed consumer sees."""
    client = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"g-{uuid.uuid4().hex}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    client.assign([TopicPartition(topic, partition, start)])
    seen = []
    while True:
        message = client.poll(10)
        assert message is not None, "the consumer came to no end"
        if message.error() is not None:
            break
        seen.append((message.offset(), message.key(), message.value()))
    client.close()
    return seen


def range_of(connection: KafkaConnection, topic: str, lo: int, hi: int, partition: int = 0) -> PartitionRange:
    topic_id = describe_topic(connection, topic).topic_id
    return PartitionRange(topic=topic, topic_id=topic_id, partition=partition, lo=lo, hi=hi)
