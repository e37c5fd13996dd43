"""Read some of the newest records of a topic, to see what they look like. Nothing is committed, and no group joined."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.replay import client_properties
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import TransientError

_OF_A_PARTITION = 20
_SECONDS = 15.0
_SETTINGS: Mapping[str, Any] = {
    "group.id": "makewhole-init",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "log_level": 0,
}


@dataclass(frozen=True, kw_only=True)
class SampledRecord:
    """The bytes of a record; None where it has no key, or no value."""

    key: bytes | None
    value: bytes | None


def newest_records(connection: KafkaConnection, topic: str) -> list[SampledRecord]:
    """Return some of the newest committed records of each partition; none where the topic is empty.

    Raises:
        ConfigurationError: there is no such topic.
        TransientError: the brokers do not answer.
    """
    with TopicLog(connection, topic) as log:
        starts, ends = log.starts(), log.stable_ends()
    places = [
        TopicPartition(topic, partition, max(starts[partition].offset, end.offset - _OF_A_PARTITION))
        for partition, end in ends.items()
        if end.offset > starts[partition].offset
    ]
    if not places:
        return []
    consumer = Consumer({**client_properties(connection), **_SETTINGS})
    try:
        consumer.assign(places)
        return _read(consumer, {place.partition: ends[place.partition].offset for place in places})
    except KafkaException as error:
        raise TransientError(f"Kafka {connection.id}: topic {topic} cannot be read ({error.args[0].name()})") from error
    finally:
        consumer.close()


def _read(consumer: Consumer, ends: Mapping[int, int]) -> list[SampledRecord]:
    """Return records until each partition is at its end, none came for a second (behind markers there may be none), or
    time is up."""
    records: list[SampledRecord] = []
    left, deadline = dict(ends), time.monotonic() + _SECONDS
    while left and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is None or message.error() is not None:
            if records:
                break
            continue
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        records.append(SampledRecord(key=message.key(), value=message.value()))
        if offset + 1 >= left.get(partition, 0):
            left.pop(partition, None)
    return records
