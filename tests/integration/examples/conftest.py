"""A broker and a database for the example, which is imported from the checkout, as `python -m` does."""

import itertools
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from examples.flights.settings import GROUP, TOPIC, Systems
from examples.flights.system import System

from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.postgres_server import PostgresServer

_numbers = itertools.count()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaServer, PostgresServer]]:
    """Both started once for the module."""
    folder = tmp_path_factory.mktemp("servers")
    with KafkaServer(folder / "kafka") as kafka, PostgresServer(folder / "postgres", is_durable=False) as postgres:
        yield kafka, postgres


@pytest.fixture
def systems(servers: tuple[KafkaServer, PostgresServer]) -> Iterator[Systems]:
    """A database of its own and no topic, however the test before left them."""
    kafka, postgres = servers
    yield Systems(bootstrap=kafka.bootstrap, dsn=postgres.create_database(f"flights_{next(_numbers)}"))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    with suppress(KafkaException):
        admin.delete_topics([TOPIC])[TOPIC].result(10)
    with suppress(KafkaException):
        admin.delete_consumer_groups([GROUP])[GROUP].result(10)


@pytest.fixture
def system(systems: Systems, tmp_path: Path) -> Iterator[System]:
    """The example's driver; its loader is stopped at the end."""
    driver = System(systems, tmp_path / "state", say=lambda _: None)
    yield driver
    driver.stop()
