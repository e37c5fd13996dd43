"""Stores of files of each system: a folder, a real HDFS, a real S3 server."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.file_stores.store import FileStore
from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.carrier import Carrier
from tests.integration.cluster.object_store import BUCKET, ObjectStore
from tests.integration.files.files_shop import FilesShop
from tests.world.environment import enter, service_environment
from tests.world.files_lake import FilesPlace
from tests.world.kept_sessions import kept_sessions
from tests.world.topics import delete_topics, make_topic


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> FilesPlace:
    """A place of the test's own, of the system that the test is run for; in a folder, if it does not say."""
    return _place(getattr(request, "param", "folder"), request, tmp_path)


@pytest.fixture
def store(place: FilesPlace) -> FileStore:
    """An empty store of the test's own."""
    return place.store


def _place(system: str, request: pytest.FixtureRequest, folder: Path) -> FilesPlace:
    name = f"t-{uuid.uuid4().hex[:12]}"
    if system == "folder":
        return FilesPlace(path=f"/{name}", fields={"conn_type": "fs", "extra": {"path": str(folder)}})
    if system == "hdfs":
        port = request.getfixturevalue("hdfs").port
        return FilesPlace(path=f"/lake/{name}", fields={"conn_type": "hdfs", "host": "127.0.0.1", "port": port})
    s3: ObjectStore = request.getfixturevalue("s3")
    extra = {"endpoint_url": f"http://{s3.endpoint}", "region_name": "us-east-1"}
    fields = {"conn_type": "aws", "login": s3.access_key, "password": s3.secret_key, "extra": extra}
    return FilesPlace(path=f"s3://{BUCKET}/{name}", fields=fields)


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
