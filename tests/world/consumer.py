"""Read a topic with a plain consumer, from the beginning or from what its group committed, to the end."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.world.topics import left_open

Isolation = Literal["read_committed", "read_uncommitted"]
Reset = Literal["earliest", "latest", "error"]
_SILENCE_SECONDS = 60.0
_COORDINATOR_COMES = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


@dataclass(frozen=True, kw_only=True)
class Record:
    """A record as a consumer is given it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...]

    @classmethod
    def of(cls, message: Message) -> Self:
        """Return the record of a message that is not an error."""
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        return cls(
            partition=partition,
            offset=offset,
            key=message.key(),
            value=message.value(),
            timestamp_ms=message.timestamp()[1],
            headers=tuple((name, _bytes(value)) for name, value in _pairs(message.headers())),
        )

    @property
    def key_text(self) -> str:
        """The key, which is text."""
        assert self.key is not None
        return self.key.decode()

    @property
    def header_texts(self) -> dict[str, str]:
        """The headers, each of which is text and there once."""
        texts = {name: value.decode() for name, value in self.headers if value is not None}
        assert len(texts) == len(self.headers)
        return texts

    @property
    def document(self) -> Any:
        """The value, which is JSON."""
        assert self.value is not None
        return json.loads(self.value)


def _pairs(headers: Any) -> list[tuple[str, str | bytes | None]]:
    return list(headers.items() if isinstance(headers, Mapping) else headers or ())


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@contextmanager
def consumer(
    bootstrap: str, group: str = "unused", isolation: Isolation = "read_committed", reset: Reset = "latest"
) -> Iterator[Consumer]:
    """Open a consumer that commits nothing by itself and says when it is at an end. `reset`: where it goes on when the
    offset that it asks for is gone, or never was; `latest` is the default of Kafka's clients."""
    client = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": isolation,
            "auto.offset.reset": reset,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
        }
    )
    try:
        yield client
    finally:
        client.close()


def partitions_of(client: Consumer, topic: str) -> list[int]:
    """Return the topic's partitions, in order."""
    described = client.list_topics(topic, timeout=30).topics[topic]
    if described.error is not None:
        raise KafkaException(described.error)
    return sorted(described.partitions)


def committed(client: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    """Return what the group has committed, by partition. A cluster that is young may have to find its coordinator."""
    deadline = time.monotonic() + _SILENCE_SECONDS
    while True:
        try:
            return client.committed(asked, timeout=30)
        except KafkaException as error:
            if error.args[0].code() not in _COORDINATOR_COMES or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def read_to_end(
    client: Consumer, topic: str, start: Mapping[int, int] | None = None, partitions: Iterable[int] | None = None
) -> Iterator[Message]:
    """Read every record from `start` (by partition; the beginning where it says nothing) to the end of now, of all
    partitions when none are named."""
    open_ends = set(partitions_of(client, topic) if partitions is None else partitions)
    client.assign([TopicPartition(topic, at, (start or {}).get(at, OFFSET_BEGINNING)) for at in sorted(open_ends)])
    while open_ends:
        message = client.poll(_SILENCE_SECONDS)
        assert message is not None, f"no word from partitions {open_ends} of {topic} for {_SILENCE_SECONDS:.0f} s"
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            open_ends.discard(message.partition() or 0)
        else:
            raise KafkaException(error)


def read_all(bootstrap: str, topic: str, isolation: Isolation = "read_committed") -> list[Message]:
    """Read every record that a consumer of this isolation is given.

    Retention may delete the first ones between the answer where the log begins and the reading from there.
    """
    with consumer(bootstrap, isolation=isolation, reset="earliest") as client:
        return list(read_to_end(client, topic))


def read_records(bootstrap: str, topic: str, isolation: Isolation = "read_committed") -> list[Record]:
    """Read every record that a consumer of this isolation is given; of a partition in their order."""
    return [Record.of(message) for message in read_all(bootstrap, topic, isolation)]


def read_settled(bootstrap: str, topic: str) -> list[Record]:
    """Read what a read_committed consumer is given when the topic's transactions have ended."""
    left_open(bootstrap, topic)
    return read_records(bootstrap, topic)
