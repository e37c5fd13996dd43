"""Run the example beside the session's broker, in a database of its own."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from examples.flights.settings import GROUP, TOPIC, Systems
from examples.flights.system import System
from makewhole.stack.kafka_server import KafkaServer


@pytest.fixture
def systems(kafka: KafkaServer, database: str) -> Iterator[Systems]:
    """An empty database, and neither topic nor group."""
    forget(kafka.bootstrap)
    yield Systems(bootstrap=kafka.bootstrap, dsn=database)
    forget(kafka.bootstrap)


@pytest.fixture
def system(systems: Systems, tmp_path: Path) -> Iterator[System]:
    """The example's driver; its loader is stopped at the end."""
    driver = System(systems, tmp_path / "state", say=lambda _: None)
    yield driver
    driver.stop()


def forget(bootstrap: str) -> None:
    """Remove what the example keeps in Kafka."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with suppress(KafkaException):
        admin.delete_topics([TOPIC])[TOPIC].result(10)
    with suppress(KafkaException):
        admin.delete_consumer_groups([GROUP])[GROUP].result(10)
