"""Stores of files of each system: a folder, a real HDFS, a real S3 server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.file_stores.store import FileStore
from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.carrier import Carrier
from tests.integration.files.files_shop import FilesShop
from tests.world.environment import enter, service_environment
from tests.world.files_lake import FilesPlace
from tests.world.kept_sessions import kept_sessions
from tests.world.lake_systems import files_place
from tests.world.topics import delete_topics, make_topic


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> FilesPlace:
    """A place of the test's own, of the system that the test is run for; in a folder, if it does not say."""
    return files_place(getattr(request, "param", "folder"), request, tmp_path)


@pytest.fixture
def store(place: FilesPlace) -> FileStore:
    """An empty store of the test's own."""
    return place.store


@pytest.fixture
def shop(
    place: FilesPlace,
    carrier: Carrier,
    kafka: KafkaServer,
    journal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[FilesShop]:
    """A shop with a warehouse of files and an empty topic; of PostgreSQL it has the journal alone."""
    shop = FilesShop(carrier=carrier, bootstrap=kafka.bootstrap, dsn="", journal=journal, folder=tmp_path, place=place)
    enter(monkeypatch, {**service_environment(shop, tmp_path), "AIRFLOW_CONN_LAKE": place.described})
    make_topic(shop.admin, shop.topic)
    with kept_sessions():
        yield shop
    delete_topics(shop.admin, [shop.topic, *shop.more_topics])
