"""Test that every group with an offset in a topic is found, with its lag, and no other."""

import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

import makewhole.kafka.topic_readers as topic_readers_module
from makewhole.kafka.group_offsets import OffsetOutOfRange
from makewhole.kafka.topic_readers import ReadingGroup, topic_readers, with_records
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError
from tests.world.consumer import consumer
from tests.world.topics import commit_group, left_open, producer

pytestmark = pytest.mark.integration


def test_the_groups_of_a_topic_are_found_with_their_lag(
    connection: KafkaConnection, admin: AdminClient, make_topic: Callable[..., str]
) -> None:
    topic, other = make_topic(2), make_topic()
    bootstrap, run = str(connection.properties["bootstrap.servers"]), uuid.uuid4().hex[:8]
    client = producer(bootstrap)
    for number in range(10):
        client.produce(topic, value=b"{}", partition=number % 2)
    assert client.flush(30) == 0
    assert topic_readers(connection, topic) == ()
    commit_group(bootstrap, f"a-{run}", topic, 2)
    commit_group(bootstrap, f"elsewhere-{run}", other, 0)
    with consumer(bootstrap, f"b-{run}") as both:
        both.commit(offsets=[TopicPartition(topic, at, 5) for at in range(2)], asynchronous=False)

    assert topic_readers(connection, topic) == (
        ReadingGroup(group=f"a-{run}", lag=3, unread=1),
        ReadingGroup(group=f"b-{run}", lag=0, unread=0),
    )

    admin.delete_consumer_groups([f"a-{run}"])[f"a-{run}"].result(30)
    assert [reader.group for reader in topic_readers(connection, topic)] == [f"b-{run}"]


@pytest.mark.parametrize("at_once", [1, 2, 5, 6])
def test_every_group_is_asked_however_many_are_asked_at_once(
    connection: KafkaConnection, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    topic, other = make_topic(), make_topic()
    bootstrap, run = str(connection.properties["bootstrap.servers"]), uuid.uuid4().hex[:8]
    for number in range(5):
        commit_group(bootstrap, f"{number}-{run}", other if number == 3 else topic, 0)
    monkeypatch.setattr(topic_readers_module, "_ASKED_AT_ONCE", at_once)

    groups = [reader.group for reader in topic_readers(connection, topic)]

    assert groups == [f"{number}-{run}" for number in (0, 1, 2, 4)]


def test_what_no_reader_is_given_is_no_record_before_a_group(
    connection: KafkaConnection, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)
    bootstrap, run = str(connection.properties["bootstrap.servers"]), uuid.uuid4().hex[:8]
    client = producer(bootstrap, transactional_id=f"tx-{run}")
    client.init_transactions(30)
    for is_committed in (True, False, True):
        client.begin_transaction()
        for partition in range(2):
            client.produce(topic, value=b"{}", partition=partition)
        assert client.flush(30) == 0  # aborting drops what was not sent
        client.commit_transaction(30) if is_committed else client.abort_transaction(30)
    left_open(bootstrap, topic)
    # Of each partition: 0 record, 1 marker, 2 aborted, 3 marker, 4 record, 5 marker.
    with consumer(bootstrap, f"a-{run}") as both:
        both.commit(offsets=[TopicPartition(topic, at, 5) for at in range(2)], asynchronous=False)
    commit_group(bootstrap, f"b-{run}", topic, 1)

    groups = with_records(connection, topic, topic_readers(connection, topic))

    assert groups == (
        ReadingGroup(group=f"a-{run}", lag=2, unread=0, records=0),
        ReadingGroup(group=f"b-{run}", lag=5, unread=1, records=1),
    )


def test_an_offset_that_the_log_does_not_have_says_nothing_of_how_far_a_group_is(
    connection: KafkaConnection, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)
    bootstrap, run = str(connection.properties["bootstrap.servers"]), uuid.uuid4().hex[:8]
    client = producer(bootstrap)
    for number in range(10):
        client.produce(topic, value=b"{}", partition=number % 2)
    assert client.flush(30) == 0
    with consumer(bootstrap, f"a-{run}") as both:
        offsets = [TopicPartition(topic, 0, 99), TopicPartition(topic, 1, 3)]
        both.commit(offsets=offsets, asynchronous=False)

    (groups,) = with_records(connection, topic, topic_readers(connection, topic))

    out = {0: OffsetOutOfRange(committed=99, start=0, end=5)}
    assert groups == ReadingGroup(group=f"a-{run}", lag=2, unread=0, records=2, out_of_range=out)


def test_a_topic_that_is_not_there_has_no_readers_to_ask_for(connection: KafkaConnection) -> None:
    with pytest.raises(ConfigurationError, match="topic 'nowhere' does not exist"):
        topic_readers(connection, "nowhere")
