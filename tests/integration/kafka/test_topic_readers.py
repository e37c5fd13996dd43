"""Test that every group with an offset in a topic is found, with its lag, and no other."""

import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from makewhole.kafka.topic_readers import ReadingGroup, topic_readers
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError
from tests.world.consumer import consumer
from tests.world.topics import commit_group, producer

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


def test_a_topic_that_is_not_there_has_no_readers_to_ask_for(connection: KafkaConnection) -> None:
    with pytest.raises(ConfigurationError, match="topic 'nowhere' does not exist"):
        topic_readers(connection, "nowhere")
