"""Write chunks of records exactly once: each chunk is one transaction that holds the records and the marker offset.

The marker is the committed offset of a consumer group that no consumer ever joins: its value is the number of chunks
done.
`init_transactions` first fences and aborts whoever used the same transactional id before; only then is the marker true.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType, TopicMetadata

from makewhole.kafka.partitioner import librdkafka_name
from makewhole.kafka.replay_records import SentRecords, TopicRules
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import PermanentError, TransientError
from makewhole.model.points import Partitioner
from makewhole.model.positions import RecordPositions

MARKER_TOPIC = "makewhole-markers"
BATCHING: Mapping[str, Any] = {"linger.ms": 5}
"""How the producer batches records; a commit does not wait for the linger."""

_KEEPS_BROKERS: Mapping[str, Any] = {"metadata.recovery.strategy": "none"}
"""When every connection breaks at once, librdkafka 2.16 starts again from the bootstrap servers and forgets its
brokers, but goes on asking the forgotten coordinator of the group: commits of offsets wait for ever, and so does
closing."""

_BATCH_BYTES = 1_000_000
_BATCH_FRAME_BYTES = 1024  # of the batch around its records, generously
_NO_LIMIT_MS = 2**63 - 1
_TIMEOUT_SECONDS = 30.0
_TRANSACTION_TIMEOUT_MS = 60_000
_NO_OFFSET = -1001
_PRODUCER_PROPERTIES = ("compression.type", "compression.codec")
_ERRORS_ONLY = 3
_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
_NO_COORDINATOR_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._WAIT_COORD,
)
_COORDINATOR_PAUSE_SECONDS = 0.2
_PERMANENT = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError._AUTHENTICATION,
)


def replay_identity(plan_id: str, target: str) -> str:
    """Return the transactional id of a plan at a topic, also the group whose committed offset is its marker."""
    return f"replay-{plan_id}-{target}"


def publish_identity(pipeline: str, point: str, topic: str) -> str:
    """Return the transactional id, also the group of the marker, by which a point of a pipeline is published."""
    return f"publish-{pipeline}-{point}-{topic}"


class FencedError(TransientError):
    """Another producer has taken over the same transactional id."""


class ReplayWriter:
    """Transactional producer of one plan for one topic. `identity` is both transactional id and marker group;
    `partitioner` is for records without a partition."""

    def __init__(
        self,
        connection: KafkaConnection,
        topic: str,
        identity: str,
        partitioner: Partitioner = Partitioner.MURMUR2,
    ) -> None:
        self.connection, self.topic, self._identity = connection, topic, identity
        self._partitioner = partitioner
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._rules: TopicRules | None = None

    @property
    def marker(self) -> str:
        """Where the receipts are found, as text for people."""
        return f"{MARKER_TOPIC}/0 of group {self._identity}"

    def open(self) -> int | None:
        """Fence every earlier producer of this plan, then return how many chunks are done; None: there is no marker.

        May be called again after any error: the producer is made again, never reused. Where `rules` was not asked
        before, it is asked here.
        """
        self.close()
        with self._translated_errors("open"):
            ensure_marker_topic(self.connection)
            self._producer = Producer(self._producer_properties(self._rules or self.rules()))
            self._producer.init_transactions(_TIMEOUT_SECONDS)
            self._consumer = Consumer(
                client_properties(self.connection)
                | {"group.id": self._identity, "isolation.level": "read_committed", **_KEEPS_BROKERS}
            )
            marker = _committed_marker(self._consumer)
        if marker.error is not None:
            raise TransientError(
                f"Kafka {self.connection.id}: the marker of {self._identity} cannot be read; try again"
            )
        return None if marker.offset == _NO_OFFSET else int(marker.offset)

    def rules(self) -> TopicRules:
        """Return what the topic accepts now."""
        with self._translated_errors("describe"):
            self._rules = topic_rules(self.connection, self.topic)
        return self._rules

    def rules_with_partitions(self) -> TopicRules:
        """Return the rules with the partitions that the topic has now, by the open producer: the count decides where a
        key belongs, and may change at any moment. A limit that changes is the broker's to apply."""
        if self._producer is None or self._rules is None:
            return self.rules()
        with self._translated_errors("describe"):
            metadata = self._producer.list_topics(self.topic, timeout=_TIMEOUT_SECONDS).topics[self.topic]
        self._rules = replace(self._rules, partitions=_partitions(self.connection, metadata))
        return self._rules

    def write(
        self,
        chunk: int,
        records: SentRecords,
        handed_over: Callable[[], None] = lambda: None,
        delivered: Callable[[RecordPositions], None] = lambda _: None,
    ) -> None:
        """Write records and marker in one transaction. After any error call `open` again: it shows whether it happened.

        `handed_over` is called when the producer has all records; most of what is left is to wait for the brokers.
        `delivered` is called with the positions of all records when the brokers have them and nothing is committed yet;
        where it raises, nothing is.

        Raises:
            FencedError: another runner took this plan's transactional id.
            TransientError: the outcome is not known, or the transaction failed.
        """
        if self._producer is None or self._consumer is None:
            raise TransientError(f"{self._identity}: write before open")
        with self._translated_errors("write"):
            self._producer.begin_transaction()
            deliveries = _Deliveries()
            with _client_failures(self._producer):
                self._produce(self._producer, records, deliveries)
                handed_over()
                left = self._producer.flush(_TIMEOUT_SECONDS)
            delivered(deliveries.positions(left))
            self._producer.send_offsets_to_transaction(
                [TopicPartition(MARKER_TOPIC, 0, chunk + 1)],
                self._consumer.consumer_group_metadata(),
                _TIMEOUT_SECONDS,
            )
            self._producer.commit_transaction(_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Close producer and consumer; an open transaction is left to the next `open` to abort."""
        producer, consumer, self._producer, self._consumer = self._producer, self._consumer, None, None
        if producer is not None:
            producer.purge()
        if consumer is not None:
            consumer.close()

    def _produce(self, producer: Producer, records: SentRecords, deliveries: "_Deliveries") -> None:
        """Hand the records to the producer.

        Arguments go by position: by name each call takes a sixth longer, and this is most of what a replay does.
        """
        topic, produce = self.topic, producer.produce
        for seq, (value, key, headers, partition, timestamp) in zip(records.seqs, records.messages(), strict=True):
            noted = partial(deliveries.note, seq)
            while True:
                try:
                    produce(topic, value, key, partition, noted, noted, timestamp, headers)
                    break
                except BufferError:
                    producer.poll(0.1)

    def _producer_properties(self, rules: TopicRules) -> dict[str, Any]:
        return dict(self.connection.properties) | {
            "log_level": _ERRORS_ONLY,
            "transactional.id": self._identity,
            "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
            "enable.idempotence": True,
            "acks": "all",
            "partitioner": librdkafka_name(self._partitioner),
            **BATCHING,
            "retry.backoff.ms": 5,  # twice as fast as the default between short transactions
            "message.max.bytes": 1_000_000_000,  # the topic decides, see TopicRules
            # A record that is larger goes alone; a batch that the topic does not take would be refused as a whole.
            "batch.size": max(1, min(_BATCH_BYTES, rules.max_message_bytes - _BATCH_FRAME_BYTES)),
            **_KEEPS_BROKERS,
        }

    def _missing_right(self, code: int) -> str:
        """Return what has to be granted on what."""
        rights = {
            KafkaError.TOPIC_AUTHORIZATION_FAILED: (
                f"Write on topic {self.topic} and Read on topic {MARKER_TOPIC}, which has to exist"
            ),
            KafkaError.GROUP_AUTHORIZATION_FAILED: f"Read on group {self._identity}",
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: f"Write on transactional id {self._identity}",
        }
        right = rights.get(code)
        return "correct the credentials or the rights" if right is None else f"grant {right} (docs/rights.md)"

    @contextmanager
    def _translated_errors(self, what: str) -> Iterator[None]:
        """Raise Kafka's errors as ours."""
        try:
            yield
        except TimeoutError as error:  # of a future of the AdminClient
            raise TransientError(
                f"Kafka {self.connection.id}, {self._identity}: {what} was not answered in {_TIMEOUT_SECONDS:.0f} s; "
                "try again"
            ) from error
        except KafkaException as error:
            kafka_error: KafkaError = error.args[0]
            text = f"Kafka {self.connection.id}, {self._identity}: {what} failed ({kafka_error.name()})"
            if kafka_error.code() in _FENCED:
                raise FencedError(f"{text}: another runner came after this one") from error
            if kafka_error.code() in _PERMANENT:
                raise PermanentError(
                    f"{text}: {self._missing_right(kafka_error.code())}, then run the plan again"
                ) from error
            if kafka_error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                raise PermanentError(
                    f"{text}: max.message.bytes of {self.topic} is lower now than when the producer was made; raise "
                    "it, or run this again: a plan leaves out what its topic does not take"
                ) from error
            raise TransientError(f"{text}: try again; what happened is read from the marker") from error


@contextmanager
def _client_failures(producer: Producer) -> Iterator[None]:
    """Raise what makes the producer unusable where the client fails to say it.

    Raises:
        KafkaException: the producer cannot go on, such as one that was fenced.
        TransientError: the client failed.
    """
    try:
        yield
    except SystemError as error:
        # The client loses a fatal error that comes together with delivery reports. Aborting asks for it again; nothing
        # is committed either way.
        producer.abort_transaction(_TIMEOUT_SECONDS)
        raise TransientError("the Kafka client failed while it sent records; try again") from error


class _Deliveries:
    """The delivery reports of a transaction."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._partitions: list[int] = []
        self._offsets: list[int] = []
        self._failed: KafkaError | None = None

    def note(self, seq: int, error: KafkaError | None, message: Message) -> None:
        """Take the report of the record of an action."""
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None or offset < 0:
            self._failed = self._failed or error or KafkaError(KafkaError._FAIL)
            return
        self._seqs.append(seq)
        self._partitions.append(partition)
        self._offsets.append(offset)

    def positions(self, left: int) -> RecordPositions:
        """Return where the records stand; `left`: number of records without a report.

        Raises:
            KafkaException: not every record was delivered.
        """
        if self._failed is not None or left:
            raise KafkaException(self._failed or KafkaError(KafkaError._TIMED_OUT))
        return RecordPositions(seqs=self._seqs, partitions=self._partitions, offsets=self._offsets)


def ensure_marker_topic(connection: KafkaConnection) -> None:
    """Create the topic whose group offsets are the markers, unless it exists: one partition, never a record."""
    admin = _admin(connection)
    metadata = admin.list_topics(timeout=_TIMEOUT_SECONDS)
    if MARKER_TOPIC in metadata.topics:
        return
    replicas = min(3, len(metadata.brokers))
    future = admin.create_topics([NewTopic(MARKER_TOPIC, num_partitions=1, replication_factor=replicas)])[MARKER_TOPIC]
    try:
        future.result(timeout=_TIMEOUT_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _committed_marker(consumer: Consumer) -> TopicPartition:
    """Return the committed marker. A group may have no coordinator yet when it is first asked for: that is retried."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            return consumer.committed([TopicPartition(MARKER_TOPIC, 0)], timeout=_TIMEOUT_SECONDS)[0]
        except KafkaException as error:
            if error.args[0].code() not in _NO_COORDINATOR_YET or time.monotonic() > deadline:
                raise
            time.sleep(_COORDINATOR_PAUSE_SECONDS)


def _partitions(connection: KafkaConnection, metadata: TopicMetadata) -> frozenset[int]:
    if metadata.error is not None or not metadata.partitions:
        raise PermanentError(f"Kafka {connection.id} has no topic {metadata.topic}; nothing was replayed to it")
    return frozenset(metadata.partitions)


def topic_rules(connection: KafkaConnection, topic: str) -> TopicRules:
    """Return the topic's partitions and limits, from metadata and its configuration.

    Raises:
        PermanentError: the topic is not there.
    """
    admin = _admin(connection)
    metadata = admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
    partitions = _partitions(connection, metadata)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs: Mapping[str, str] = {
        name: entry.value
        for name, entry in admin.describe_configs([resource])[resource].result(_TIMEOUT_SECONDS).items()
    }
    retention_ms = int(configs["retention.ms"]) if "delete" in configs["cleanup.policy"] else -1
    return TopicRules(
        partitions=partitions,
        max_message_bytes=int(configs["max.message.bytes"]),
        max_ahead_ms=_timestamp_limit(configs, "message.timestamp.after.max.ms"),
        max_behind_ms=_timestamp_limit(configs, "message.timestamp.before.max.ms"),
        is_create_time=configs["message.timestamp.type"] == "CreateTime",
        retention_ms=None if retention_ms < 0 else retention_ms,
    )


def _timestamp_limit(configs: Mapping[str, str], name: str) -> int:
    """Return how far a timestamp may be from now: before Kafka 3.6 one setting says it for both directions, and up to
    3.9 where the newer one is not set (KIP-937)."""
    limit = int(configs.get(name, _NO_LIMIT_MS))
    return limit if limit != _NO_LIMIT_MS else int(configs.get("message.timestamp.difference.max.ms", _NO_LIMIT_MS))


def now_ms() -> int:
    """Return this machine's time, in milliseconds since 1970."""
    return int(time.time() * 1000)


def _admin(connection: KafkaConnection) -> AdminClient:
    return AdminClient(client_properties(connection))


def client_properties(connection: KafkaConnection) -> dict[str, Any]:
    """Return the connection's properties, without what only a producer understands."""
    return {name: value for name, value in connection.properties.items() if name not in _PRODUCER_PROPERTIES}
