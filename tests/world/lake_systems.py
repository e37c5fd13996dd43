"""Name places for datasets on the systems that can hold them: a folder, HDFS, S3; the servers run already."""

import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.integration.cluster.object_store import BUCKET, REGION, ObjectStore
from tests.world.files_lake import FilesPlace
from tests.world.hdfs_servers import HdfsServers


def files_place(system: str, request: pytest.FixtureRequest, folder: Path) -> FilesPlace:
    """Return a new place for files on a system: `folder`, `hdfs` or `s3`, whose servers are fixtures of that name; or
    `hdfs service`, HDFS by the name of a service."""
    name = f"t-{uuid.uuid4().hex[:12]}"
    if system == "folder":
        return FilesPlace(path=f"/{name}", fields={"conn_type": "fs", "extra": {"path": str(folder)}})
    if system == "hdfs":
        port = request.getfixturevalue("hdfs").port
        return FilesPlace(path=f"/lake/{name}", fields={"conn_type": "hdfs", "host": "127.0.0.1", "port": port})
    if system == "hdfs service":
        service = request.getfixturevalue("hdfs").service
        return FilesPlace(path=f"/lake/{name}", fields={"conn_type": "hdfs", "host": "lakes", "extra": service})
    s3: ObjectStore = request.getfixturevalue("s3")
    extra = {"endpoint_url": f"http://{s3.endpoint}", "region_name": REGION}
    fields = {"conn_type": "aws", "login": s3.access_key, "password": s3.secret_key, "extra": extra}
    return FilesPlace(path=f"s3://{BUCKET}/{name}", fields=fields)


def warehouse_settings(system: str, request: pytest.FixtureRequest) -> Mapping[str, str]:
    """Return the settings of an Iceberg catalogue whose warehouse is in a new place on a system; `folder`: none. `hdfs
    service`: HDFS by the name of a service."""
    place = f"t-{uuid.uuid4().hex[:12]}"
    if system == "folder":
        return {}
    if system.startswith("hdfs"):
        hdfs: HdfsServers = request.getfixturevalue("hdfs")
        named = ("hdfs://lakes", hdfs.service) if system == "hdfs service" else (hdfs.url, {})
        return {"warehouse": f"{named[0]}/{place}", **named[1]}
    s3: ObjectStore = request.getfixturevalue("s3")
    return {
        "warehouse": f"s3://{BUCKET}/{place}",
        "s3.endpoint": f"http://{s3.endpoint}",
        "s3.access-key-id": s3.access_key,
        "s3.secret-access-key": s3.secret_key,
        "s3.region": REGION,
    }
