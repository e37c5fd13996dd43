"""Make topics of a test's own, and begin with the files that take longest."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from makewhole.kafka.offsets import describe_topic
from makewhole.model.connection import KafkaConnection
from makewhole.stack.kafka_server import KafkaServer
from tests.world import topics

MakeTopic = Callable[..., str]

_LONGEST = (
    "spark/test_late_strangers",
    "compensation/execution/test_kills",
    "spark/test_windows",
    "spark/test_erased",
    "spark/test_silence",
    "stack/test_stack_with_airflow",
    "spark/test_faults_of_logs",
    "spark/test_baseline",
)
_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first: with a long one at the end, all processes but one have nothing to do."""
    order = {_HERE / f"{name}.py": place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))


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
