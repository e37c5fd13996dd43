"""Topics of a test's own, and a switch for what a broker lets a transactional producer do."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from makewhole.kafka.offsets import describe_topic
from makewhole.model.connection import KafkaConnection
from makewhole.stack.kafka_server import KafkaServer

MakeTopic = Callable[..., str]
Unverified = Callable[[], AbstractContextManager[None]]


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
        config = {key.replace("_", "."): value for key, value in settings.items()}
        for future in admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values():
            future.result()
        describe_topic(connection, name)
        made.append(name)
        return name

    yield make
    if made:
        for future in admin.delete_topics(made).values():
            future.exception()


@pytest.fixture
def unverified(admin: AdminClient) -> Unverified:
    """Inside it, brokers take transactional batches of transactions that no coordinator knows, as before KIP-890."""

    def alter(operation: AlterConfigOpType) -> None:
        entry = ConfigEntry("transaction.partition.verification.enable", "false", incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        for future in admin.incremental_alter_configs([resource]).values():
            future.result()

    @contextmanager
    def switch() -> Iterator[None]:
        alter(AlterConfigOpType.SET)
        try:
            yield
        finally:
            alter(AlterConfigOpType.DELETE)

    return switch
