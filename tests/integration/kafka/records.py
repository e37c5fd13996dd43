"""Write numbered records to a topic, and read them back with a plain consumer."""

from confluent_kafka import OFFSET_BEGINNING

from makewhole.kafka.offsets import describe_topic
from makewhole.model.connection import KafkaConnection
from makewhole.model.window import PartitionRange
from tests.world.consumer import Record, consumer, read_to_end
from tests.world.topics import producer


def produce(bootstrap: str, topic: str, count: int, *, partition: int = 0, start: int = 0, **settings: object) -> None:
    """Write records numbered from `start`; settings as librdkafka names them, with `_` for `.`."""
    client = producer(bootstrap, **settings)
    for index in range(start, start + count):
        client.produce(topic, partition=partition, key=b"k%06d" % index, value=b'{"id": %d, "text": "value"}' % index)
        if index % 1000 == 0:
            client.poll(0)
    assert client.flush(30) == 0


def consume(
    bootstrap: str, topic: str, partition: int = 0, start: int = OFFSET_BEGINNING
) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return (offset, key, value) of every record of a partition that a read_committed consumer sees."""
    with consumer(bootstrap, reset="earliest") as client:
        records = [Record.of(message) for message in read_to_end(client, topic, {partition: start}, [partition])]
    return [(record.offset, record.key, record.value) for record in records]


def range_of(connection: KafkaConnection, topic: str, lo: int, hi: int, partition: int = 0) -> PartitionRange:
    """Return a range of a topic as it is now."""
    topic_id = describe_topic(connection, topic).topic_id
    return PartitionRange(topic=topic, topic_id=topic_id, partition=partition, lo=lo, hi=hi)
