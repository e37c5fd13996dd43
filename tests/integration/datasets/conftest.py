"""A lake of each test's own, its tables, and a shop whose warehouse is one of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.config.connections import from_environment
from makewhole.kinds import tables_of
from makewhole.stack.kafka_server import KafkaServer
from makewhole.tables.tables import Tables
from makewhole_spark.carrier import Carrier
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.world.environment import enter, service_environment
from tests.world.iceberg_lake import Lake
from tests.world.kept_sessions import kept_sessions
from tests.world.topics import delete_topics, make_topic


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A catalogue of a test's own."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return Lake(folder=folder)


@pytest.fixture
def tables(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """The tables of the lake, as everything else reaches them."""
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", lake.described)
    return tables_of(from_environment("lake"))


@pytest.fixture
def shop(
    lake: Lake, carrier: Carrier, kafka: KafkaServer, journal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[IcebergShop]:
    """A shop with an empty warehouse and an empty topic; of PostgreSQL it has the journal alone."""
    shop = IcebergShop(carrier=carrier, bootstrap=kafka.bootstrap, dsn="", journal=journal, folder=tmp_path, lake=lake)
    enter(monkeypatch, {**service_environment(shop, tmp_path), "AIRFLOW_CONN_LAKE": lake.described})
    lake.make_table(TABLE)
    make_topic(shop.admin, shop.topic)
    with kept_sessions():
        yield shop
    delete_topics(shop.admin, [shop.topic, *shop.more_topics])
