"""A plain consumer, as anybody would write it: from the beginning, or from what its group committed, to the end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

Isolation = Literal["read_committed", "read_uncommitted"]
_SILENCE_SECONDS = 60.0
_COORDINATOR_COMES = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


@contextmanager
def consumer(bootstrap: str, group: str = "nobody", isolation: Isolation = "read_committed") -> Iterator[Consumer]:
    """A consumer that commits nothing by itself and says when it is at an end."""
    client = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": isolation,
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
    """The topic's partitions."""
    found = client.list_topics(topic, timeout=30).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    return sorted(found.partitions)


def committed(client: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    """What the group has committed, by partition; a cluster that is young may have to find its coordinator first."""
    deadline = time.monotonic() + _SILENCE_SECONDS
    while True:
        try:
            return client.committed(asked, timeout=30)
        except KafkaException as error:
            if error.args[0].code() not in _COORDINATOR_COMES or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def read_to_end(client: Consumer, topic: str, start: dict[int, int] | None = None) -> Iterator[Message]:
    """Every record from `start` (by partition; the beginning where it says nothing) to the end of now."""
    open_ends = set(partitions_of(client, topic))
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
    """Every record that a consumer of this isolation is given."""
    with consumer(bootstrap, isolation=isolation) as client:
        return list(read_to_end(client, topic))
