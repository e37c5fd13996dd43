"""Make, fill and read the topic that a self-check plants faults in, and read what its loader has not read yet.

It is read by the client that people's own consumers have, and not by the reader of logs that windows go by: what that
loses, the self-check has to see.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from makewhole.kafka.offsets import Offsets, TopicLog, committed, describe_topic, log_starts, stable_offsets
from makewhole.kafka.replay import ReplayWriter, client_properties
from makewhole.kafka.replay_records import MessageFields
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import PermanentError, TransientError

_SECONDS = 30.0
_DAY = timedelta(days=1)
_BROKERS_CHOICE = -1
_PARTITIONER_CHOICE = -1
_EOF = KafkaError._PARTITION_EOF
_REFUSED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
_GROUP_REFUSED = KafkaError.GROUP_AUTHORIZATION_FAILED


@dataclass(frozen=True, kw_only=True)
class ScratchRecord:
    """A record of the topic: the bytes of its key and of its value."""

    key: bytes
    value: bytes


@dataclass(frozen=True, kw_only=True)
class ScratchRecords:
    """Records of one transaction, all with the same time, in milliseconds since 1970."""

    records: Sequence[ScratchRecord]
    time_ms: int

    @property
    def seqs(self) -> Sequence[int]:
        """The numbers of the records in their transaction."""
        return range(len(self.records))

    def messages(self) -> Iterator[MessageFields]:
        """Yield value, key, headers, partition and timestamp of each record."""
        for record in self.records:
            yield record.value, record.key, [], _PARTITIONER_CHOICE, self.time_ms


def topic_id(connection: KafkaConnection, topic: str) -> str | None:
    """Return the id of a topic; None: there is none of this name."""
    with _translated(connection, f"topic {topic}"):
        topics = AdminClient(client_properties(connection)).list_topics(timeout=_SECONDS).topics
    return describe_topic(connection, topic).topic_id if topic in topics else None


def make_topic(connection: KafkaConnection, topic: str, keep: timedelta) -> str:
    """Make a topic whose records are kept for `keep`, with as many partitions and replicas as the brokers give; return
    its id."""
    settings = {
        "cleanup.policy": "delete",
        "retention.ms": _milliseconds(keep),
        "segment.ms": _milliseconds(min(_DAY, keep)),  # only a closed segment is deleted
    }
    wanted = NewTopic(topic, num_partitions=_BROKERS_CHOICE, replication_factor=_BROKERS_CHOICE, config=settings)
    with _translated(connection, f"topic {topic} could not be made"):
        admin = AdminClient(client_properties(connection))
        made = admin.create_topics([wanted])[topic]
        try:
            made.result(timeout=_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # of an attempt whose answer was lost
                raise
    return _id_of_new(connection, topic)


def _id_of_new(connection: KafkaConnection, topic: str) -> str:
    """Return the id of a topic that was made just now; the brokers may not know it at once."""
    deadline = time.monotonic() + _SECONDS
    while (new_id := topic_id(connection, topic)) is None:
        if time.monotonic() > deadline:
            raise TransientError(f"Kafka {connection.id} does not know topic {topic} yet, which was made; try again")
        time.sleep(0.2)
    return new_id


def is_empty(connection: KafkaConnection, topic: str) -> bool:
    """Return whether nothing was ever written to a topic."""
    return not any(stable_offsets(connection, topic).values())


def send_once(
    connection: KafkaConnection, topic: str, identity: str, number: int, records: ScratchRecords, since: Offsets
) -> bool:
    """Send records in one transaction, unless they are there from these offsets on; return whether they were sent now.
    `identity` is the transactional id: whoever used it before is fenced, so that what is there is known."""
    writer = ReplayWriter(connection, topic, identity)
    try:
        writer.open()
        wanted = {record.key for record in records.records}
        if any(record.key in wanted for record in read_from(connection, topic, since)):
            return False
        writer.write(number, records)
        return True
    finally:
        writer.close()


def read_from(connection: KafkaConnection, topic: str, since: Offsets) -> Iterator[ScratchRecord]:
    """Yield the committed records of a topic from these offsets on; from its beginning where there is none."""
    starts, ends = log_starts(connection, topic), _settled_ends(connection, topic)
    begins = {part: max(since.get(part, 0), start) for part, start in starts.items() if part in ends}
    yield from _read(connection, topic, {p: at for p, at in begins.items() if at < ends[p]}, group="makewhole-init")


@contextmanager
def unread(connection: KafkaConnection, topic: str, group: str) -> Iterator[Iterator[ScratchRecord]]:
    """Give the committed records that a group has not read yet; when the block ends well, it has read them."""
    ends = _settled_ends(connection, topic)
    begins = {part: offset or 0 for part, offset in committed(connection, group, topic).items()}
    starts = log_starts(connection, topic)
    places = {part: max(begins.get(part, 0), starts[part]) for part, end in ends.items()}
    left = {part: at for part, at in places.items() if at < ends[part]}
    yield _read(connection, topic, left, group=group, ends=ends)
    with _translated(connection, f"group {group}"), _consumer(connection, group) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, part, end) for part, end in ends.items()], asynchronous=False)


def _settled_ends(connection: KafkaConnection, topic: str) -> Offsets:
    """Return the ends of a topic in which every transaction has ended: the answer to a commit comes before its markers
    are in the log.

    Raises:
        TransientError: a transaction is open there for longer than one of the self-check's own can be.
    """
    deadline = time.monotonic() + _SECONDS
    with TopicLog(connection, topic) as log:
        while True:
            stable, ends = log.stable_ends(), log.high_watermarks()
            if all(stable[part].offset == end.offset for part, end in ends.items()):
                return {part: end.offset for part, end in ends.items()}
            if time.monotonic() > deadline:
                raise TransientError(f"Kafka {connection.id}: a transaction is open in topic {topic}; try again")
            time.sleep(0.05)


def _read(
    connection: KafkaConnection, topic: str, begins: Offsets, *, group: str, ends: Mapping[int, int] | None = None
) -> Iterator[ScratchRecord]:
    """Yield records until each partition is at its end, or at the one that is given.

    Raises:
        TransientError: they do not come.
    """
    left = set(begins)
    with _translated(connection, f"topic {topic}"), _consumer(connection, group) as consumer:
        consumer.assign([TopicPartition(topic, part, offset) for part, offset in begins.items()])
        deadline = time.monotonic() + _SECONDS
        while left:
            if time.monotonic() > deadline:
                raise TransientError(f"Kafka {connection.id}: topic {topic} was not read to its end in time; try again")
            message = consumer.poll(0.5)
            if message is None:
                continue
            part, offset, error = message.partition(), message.offset(), message.error()
            if error is not None and error.code() != _EOF:
                raise KafkaException(error)
            if error is not None:
                left.discard(part if part is not None else -1)
            elif ends is None or (offset or 0) < ends.get(part or 0, 0):
                deadline = time.monotonic() + _SECONDS
                yield ScratchRecord(key=message.key() or b"", value=message.value() or b"")


@contextmanager
def _consumer(connection: KafkaConnection, group: str) -> Iterator[Consumer]:
    settings: dict[str, Any] = {
        "group.id": group,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    consumer = Consumer({**client_properties(connection), **settings})
    try:
        yield consumer
    finally:
        consumer.close()


@contextmanager
def _translated(connection: KafkaConnection, what: str) -> Iterator[None]:
    """Raise Kafka's errors as ours."""
    try:
        yield
    except (KafkaException, TimeoutError) as error:
        cause = error.args[0] if isinstance(error, KafkaException) else None
        code, name = (cause.code(), cause.name()) if cause is not None else (None, "no answer")
        if code in (*_REFUSED, _GROUP_REFUSED):
            raise PermanentError(
                f"Kafka {connection.id}: {what} ({name}); grant the self-check Create, Read, Write and Describe on its "
                "topic, and Read on its group (docs/self-check.md)"
            ) from error
        raise TransientError(f"Kafka {connection.id}: {what} ({name}); try again") from error


def _milliseconds(span: timedelta) -> str:
    return str(int(span.total_seconds() * 1000))
