"""Make topics of a test's own."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient

from makewhole.kafka.offsets import describe_topic
from makewhole.model.connection import KafkaConnection
from makewhole.stack.kafka_server import KafkaServer
from tests.world import topics

MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def connection(kafka: KafkaServer) -> KafkaConnection:
    return KafkaConnection(id="local_kafka", properties={"bootstrap.servers": kafka.bootstrap})


@pytest.fixture(scope="session")
def admin(kafka: KafkaServer) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap})


@pytest.fixture
def make_topic(admin: AdminClient, connection: KafkaConnection) -> Iterator[MakeTopic]:
    """Make a topic of the test's own, with settings."""
    made: list[str] = []

    def make(partitions: int = 1, **settings: str) -> str:
        name = f"t-{uuid.uuid4().hex[:12]}"
        topics.make_topic(admin, name, partitions, settings=topics.dotted(settings))
        describe_topic(connection, name)
        made.append(name)
        return name

    yield make
    topics.delete_topics(admin, made)
