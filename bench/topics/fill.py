"""Fill topics with records, the same in every run: JSON of about 110 bytes or of 1 KB, from an idempotent producer."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.measuring.data_set import DataSet

PARTITIONS = 4
_RECORDS_PER_BATCH = 1_000
_RECORDS_PER_CALL = 50_000
_CARRIERS = ("AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN")
_NOTES = 997
_NOTE_BYTES = 910
_WORDS = ("gate", "runway", "delayed", "crew", "weather", "boarding", "taxi", "slot", "fuel", "inbound", "cleared")

Progress = Callable[[int], None]


def fill(bootstrap: str, data: DataSet, progress: Progress, topic: str | None = None) -> None:
    """Make a topic, that of the data set where none is named, and produce the records; `progress` is called with how
    many more are written."""
    topic = topic or data.topic
    make_topic(bootstrap, topic)
    producer = idempotent_producer(bootstrap, data.codec)
    for number, messages in enumerate(_calls(data)):
        produce(producer, topic, number % PARTITIONS, messages)
        progress(len(messages))
    if left := producer.flush(120):
        raise RuntimeError(f"{left} records of {topic} were not written in two minutes")


def records(data: DataSet) -> Iterator[dict[str, Any]]:
    """Yield the records themselves, in order: `key` and `value`, both text."""
    for messages in _calls(data):
        yield from messages


def idempotent_producer(bootstrap: str, codec: str) -> Producer:
    """Return a producer that fills topics in batches of about a thousand records."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "batch.num.messages": _RECORDS_PER_BATCH,
            "batch.size": 1 << 20,
            "message.max.bytes": 2 << 20,
            "linger.ms": 50,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 512 << 10,
        }
    )


def make_topic(bootstrap: str, topic: str, more: Mapping[str, str] | None = None) -> None:
    """Make a topic of four partitions; `more` are settings of its own."""
    settings = {"max.message.bytes": str(4 << 20), **(more or {})}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1, config=settings)])[topic].result()


def remove(bootstrap: str, topic: str) -> None:
    """Delete the topic; its space is free soon after."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result()


def produce(producer: Producer, topic: str, partition: int, messages: list[dict[str, Any]]) -> None:
    """Produce messages (`key`, `value`), however full the producer's queue is."""
    waiting = messages
    while waiting:
        producer.produce_batch(topic, waiting, partition=partition)
        waiting = [message for message in waiting if message.pop("_error", None) is not None]
        producer.poll(0.05 if waiting else 0)


def _calls(data: DataSet) -> Iterator[list[dict[str, Any]]]:
    record = _large if data.is_large else _small
    size = min(_RECORDS_PER_CALL // (10 if data.is_large else 1), -(-data.records // PARTITIONS))
    notes = _notes()
    for start in range(0, data.records, size):
        yield [record(index, notes) for index in range(start, min(start + size, data.records))]


def _small(index: int, _: list[str]) -> dict[str, Any]:
    key = f"F{index:09d}"
    value = (
        f'{{"flight_id":"{key}","carrier":"{_CARRIERS[index % 8]}","dep_delay":{index * 7 % 3001 / 10},'
        f'"seats":{50 + index * 31 % 350},"cancelled":{"true" if index % 41 == 0 else "false"},"minute":{index // 60}}}'
    )
    return {"key": key, "value": value}


def _large(index: int, notes: list[str]) -> dict[str, Any]:
    message = _small(index, notes)
    message["value"] = f'{message["value"][:-1]},"note":"{notes[index % _NOTES]}"}}'
    return message


def _notes() -> list[str]:
    chance = random.Random(20260101)
    notes = []
    for _ in range(_NOTES):
        words: list[str] = []
        while len(" ".join(words)) < _NOTE_BYTES:
            words.append(f"{chance.choice(_WORDS)}{chance.randrange(10_000)}")
        notes.append(" ".join(words)[:_NOTE_BYTES])
    return notes
