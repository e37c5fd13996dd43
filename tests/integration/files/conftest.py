"""Stores of files of each system: a folder, a real HDFS, a real S3 server; each started once a session."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from makewhole.config.connections import from_airflow_fields
from makewhole.file_stores.open_store import file_store
from makewhole.file_stores.store import FileStore
from tests.integration.cluster.object_store import BUCKET, ObjectStore
from tests.world.hdfs_servers import HdfsServers

MakeStore = Callable[[str], FileStore]


@pytest.fixture(scope="session")
def hdfs(server_folder: Path) -> Iterator[HdfsServers]:
    """A NameNode and a DataNode."""
    with HdfsServers(server_folder / "hdfs") as servers:
        yield servers


@pytest.fixture(scope="session")
def s3(server_folder: Path) -> Iterator[ObjectStore]:
    """An S3 server with a bucket."""
    folder = server_folder / "s3"
    folder.mkdir()
    store = ObjectStore.start(folder, "lake-key", "lake-secret")
    yield store
    store.stop()


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    """An empty store of the test's own, of the system that the test is run for."""
    return _store(request.param, request, tmp_path)


def _store(system: str, request: pytest.FixtureRequest, folder: Path) -> FileStore:
    name = f"t-{uuid.uuid4().hex[:12]}"
    if system == "folder":
        connection = from_airflow_fields("lake", "fs", extra={"path": str(folder)})
        return file_store(connection, name)
    if system == "hdfs":
        port = request.getfixturevalue("hdfs").port
        return file_store(from_airflow_fields("lake", "hdfs", host="127.0.0.1", port=port), f"/lake/{name}")
    s3: ObjectStore = request.getfixturevalue("s3")
    extra = {"endpoint_url": f"http://{s3.endpoint}", "region_name": "us-east-1"}
    connection = from_airflow_fields("lake", "aws", login=s3.access_key, password=s3.secret_key, extra=extra)
    return file_store(connection, f"s3://{BUCKET}/{name}")
