"""Make topics of a test's own, and evaluate plainly what the gate asks of few rows."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient

from makewhole.kafka.offsets import describe_topic
from makewhole.model.connection import KafkaConnection
from makewhole.stack.kafka_server import KafkaServer
from tests.conftest import is_on_spark
from tests.world import topics
from tests.world.combinations import left_to_test_all
from tests.world.plain_gate import evaluate_plainly

MakeTopic = Callable[..., str]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave combinations of parameters to `make test-all`, before tests are chosen by their marks."""
    for item in left_to_test_all(item for item in items if item.get_closest_marker("integration")):
        item.add_marker(pytest.mark.extended)


@pytest.fixture(autouse=True)
def gate_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate what the gate asks of few rows in plain Python, but for tests that carry their windows on Spark."""
    if not is_on_spark(request):
        evaluate_plainly(monkeypatch)


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
