"""Make and remove topics, and write to them with plain producers."""

import time
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from makewhole.kafka.open_transactions import OpenTransaction, open_transactions
from makewhole.model.connection import KafkaConnection

_SECONDS = 30
_TRIES = 100
_WITH_UNDERSCORE = ("log_level",)  # librdkafka's own


def kafka_connection(bootstrap: str, id: str = "brokers") -> KafkaConnection:  # noqa: A002 - the field's name
    """Return the connection to a Kafka without any security."""
    return KafkaConnection(id=id, properties={"bootstrap.servers": bootstrap})


def admin_client(bootstrap: str) -> AdminClient:
    """Return a client for what is done to topics rather than in them."""
    return AdminClient({"bootstrap.servers": bootstrap})


def make_topic(
    admin: AdminClient,
    name: str,
    partitions: int = 1,
    *,
    replicas: int = 1,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Make a topic whose records stay, whatever their age; `settings` as Kafka names them."""
    config = {"retention.ms": "-1"} | {key: str(value) for key, value in (settings or {}).items()}
    admin.create_topics([NewTopic(name, partitions, replicas, config=config)])[name].result(_SECONDS)


def add_partitions(admin: AdminClient, topic: str, count: int) -> None:
    """Give a topic more partitions, `count` in all; return when the brokers report them."""
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(_SECONDS)
    for _ in range(_TRIES):
        if len(admin.list_topics(topic, timeout=_SECONDS).topics[topic].partitions) == count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{topic} does not get {count} partitions")


def make_topic_again(admin: AdminClient, name: str) -> None:
    """Delete a topic and make it again. The brokers forget a deleted topic a moment after they said so."""
    admin.delete_topics([name])[name].result(_SECONDS)
    for _ in range(_TRIES):
        try:
            return make_topic(admin, name)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    raise AssertionError(f"{name} does not go away")


def delete_topics(admin: AdminClient, names: Iterable[str]) -> None:
    """Delete topics; one that is gone already is left alone."""
    if wanted := list(names):
        for deleted in admin.delete_topics(wanted).values():
            deleted.exception(_SECONDS)


def change_topic(admin: AdminClient, topic: str, settings: Mapping[str, object]) -> None:
    """Set settings of a topic, as Kafka names them."""
    entries = [
        ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(_SECONDS)


def delete_records(admin: AdminClient, topic: str, before: Mapping[int, int]) -> None:
    """Have Kafka forget what lies before these offsets (by partition), as its retention does."""
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
    for deleted in admin.delete_records(wanted).values():
        deleted.result(_SECONDS)


def dotted(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings as Kafka names them, from Python names with `_` for `.`."""
    return {name if name in _WITH_UNDERSCORE else name.replace("_", "."): value for name, value in settings.items()}


def producer(bootstrap: str, **settings: object) -> Producer:
    """Return a plain producer; settings as librdkafka names them, with `_` for `.`."""
    return Producer({"bootstrap.servers": bootstrap, **dotted(settings)})


def commit_group(bootstrap: str, group: str, topic: str, offset: int, partition: int = 0) -> None:
    """Commit an offset as a consumer of this group does; a broker may not know yet of a topic that was just made."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
            break
        except KafkaException as error:
            is_unknown = error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            if not is_unknown or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    consumer.close()


def left_open(bootstrap: str, topic: str, expected: int = 0) -> tuple[OpenTransaction, ...]:
    """Return the topic's open transactions, as soon as there are no more than expected, or after a while all there are.

    The coordinator of a transaction answers when it has written the end down; the markers follow.
    """
    deadline = time.monotonic() + _SECONDS
    while len(transactions := open_transactions(kafka_connection(bootstrap), topic)) > expected:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return transactions
