"""Test offsets and topic identity against a real broker."""

from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Consumer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from makewhole.kafka import offsets
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError, TransientError
from makewhole.stack.kafka_server import KafkaServer
from tests.integration.conftest import MakeTopic
from tests.integration.kafka.records import produce
from tests.world.topics import producer

pytestmark = pytest.mark.integration

_NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)


def test_the_topic_id_is_the_one_that_kafkas_own_client_shows(
    admin: AdminClient, connection: KafkaConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    described = admin.describe_topics(TopicCollection([topic]))[topic].result()
    topic_id = str(described.topic_id).replace("+", "-").replace("/", "_")  # Kafka's tools print the URL-safe alphabet
    assert offsets.describe_topic(connection, topic) == offsets.TopicState(topic_id=topic_id, partitions=(0, 1, 2))


def test_a_topic_that_does_not_exist_is_named(connection: KafkaConnection) -> None:
    with pytest.raises(ConfigurationError, match="connection local_kafka: topic: topic 'nowhere' does not exist"):
        offsets.stable_offsets(connection, "nowhere")


def test_a_broker_that_does_not_answer_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("makewhole.kafka.wire.cluster.PATIENCE_SECONDS", 0.5)
    away = KafkaConnection(id="away", properties={"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(TransientError, match=r"Kafka at 127\.0\.0\.1:1 gave no"):
        offsets.describe_topic(away, "t")


def test_offsets_at_a_time_and_none_after_the_last(
    kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2, retention_ms="-1")
    client = producer(kafka.bootstrap)
    for hour in range(5):
        stamp = int((_NOON + timedelta(hours=hour)).timestamp() * 1000)
        client.produce(topic, partition=0, value=b"x", timestamp=stamp)
    client.flush()
    assert offsets.offsets_at(connection, topic, _NOON + timedelta(hours=2)) == {0: 2, 1: None}
    assert offsets.offsets_at(connection, topic, _NOON + timedelta(days=2)) == {0: None, 1: None}
    assert offsets.high_watermarks(connection, topic) == {0: 5, 1: 0}
    assert offsets.stable_offsets(connection, topic) == {0: 5, 1: 0}
    assert offsets.end_of_leader_epoch(connection, topic, 0, 0) == 5
    with offsets.TopicLog(connection, topic) as log:
        ends = log.ends_of_leader_epochs({0: 0, 1: 7})
    assert ends == {0: offsets.EpochEnd(0, 5), 1: None}


def test_committed_offsets_of_a_group(kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    produce(kafka.bootstrap, topic, 10)
    client = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": f"g-{topic}"})
    client.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    client.close()
    assert offsets.committed(connection, f"g-{topic}", topic) == {0: 7, 1: None}
    assert offsets.committed(connection, "unknown", topic) == {0: None, 1: None}
