"""A shop of each test's own whose warehouse is a table in memory, of a kind that is installed beside makewhole."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.config.other_kinds import installed_kinds
from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.carrier import Carrier
from tests.integration.memory.memory_shop import MemoryShop
from tests.memory.server import MemoryServer
from tests.world.environment import enter, service_environment
from tests.world.installed import INSTALLED
from tests.world.kept_sessions import kept_sessions
from tests.world.topics import delete_topics, make_topic


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the kind installed."""
    monkeypatch.syspath_prepend(str(INSTALLED))
    installed_kinds.cache_clear()
    yield
    installed_kinds.cache_clear()


@pytest.fixture(scope="session")
def memory() -> Iterator[MemoryServer]:
    """A server of tables in memory."""
    with MemoryServer() as server:
        yield server


@pytest.fixture
def shop(
    installed: None,
    memory: MemoryServer,
    carrier: Carrier,
    kafka: KafkaServer,
    journal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MemoryShop]:
    """A shop with an empty warehouse and an empty topic; of PostgreSQL it has the journal alone."""
    shop = MemoryShop(
        carrier=carrier,
        bootstrap=kafka.bootstrap,
        dsn="",
        journal=journal,
        folder=tmp_path,
        server=memory,
        database=f"shop_{uuid.uuid4().hex}",
    )
    enter(monkeypatch, {**service_environment(shop, tmp_path), "AIRFLOW_CONN_DB": memory.described(shop.database)})
    shop.make_table()
    make_topic(shop.admin, shop.topic)
    with kept_sessions():
        yield shop
    delete_topics(shop.admin, [shop.topic, *shop.more_topics])
