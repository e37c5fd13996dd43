"""Snapshots and evidence can be kept on HDFS: the storage writes there, and reads what it wrote."""

import os
import subprocess
import sys

import hdfs_native
import polars as pl
import pytest

from makewhole.file_system import open_to_read
from makewhole.lake.storage import Storage
from tests.world.hdfs_servers import HdfsServers

pytestmark = pytest.mark.integration

_READ_OFTEN = """
import sys
from makewhole.config.connections import hdfs
from makewhole.file_system import fsspec_file_system, hdfs_client
from makewhole.lake.storage import Storage

for number in range(8):
    assert Storage(root=sys.argv[1]).read_bytes("kept/one") == b"x"
    assert hdfs_client(hdfs("lake")).read(sys.argv[2]).read() == b"x"
    system, path = fsspec_file_system(sys.argv[1])
    assert system.cat_file(f"{path}/kept/one") == b"x"
"""


@pytest.mark.parametrize("user", ["", "lake@"], ids=["by its address", "with the properties of a connection"])
def test_a_storage_on_hdfs_reads_what_it_wrote(hdfs: HdfsServers, monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", hdfs.connection)
    storage = Storage(root=hdfs.url.replace("://", f"://{user}") + f"/storage{len(user)}")
    frame = pl.DataFrame({"key": ["a", "b"], "number": [1, 2]})
    path = storage.write_parquet("window=1/orders", frame)
    read = storage.read_parquet([path])
    assert read is not None
    assert read.equals(frame)
    with open_to_read(storage.uri(path)) as file:
        assert file.read(4) == b"PAR1"
    assert storage.connection_id == (user.rstrip("@") or None)


def test_what_is_written_to_hdfs_is_for_its_owner_alone(hdfs: HdfsServers) -> None:
    storage = Storage(root=f"{hdfs.url}/private/storage")
    storage.write_parquet("window=1/orders", pl.DataFrame({"key": ["a"]}))
    storage.write_once("certificates/000001.json", b"{}")
    path = storage.write_parquet("window=1/orders", pl.DataFrame({"key": ["a", "b"]}))
    with storage.parquet_instead(path) as instead:
        instead.append(pl.DataFrame({"key": ["b"]}))
    storage.put_in_place(instead.path, path)
    read = storage.read_parquet([path])
    assert read is not None
    assert read["key"].to_list() == ["b"]
    Storage(root=f"{hdfs.url}/public", is_shared=True).write_bytes("records/one", b"x")
    client = hdfs_native.Client(hdfs.url)
    statuses = list(client.list_status("/private", recursive=True))
    assert len([status for status in statuses if not status.isdir]) == 3
    assert {(status.isdir, oct(status.permission)) for status in statuses} == {(True, "0o700"), (False, "0o600")}
    assert {oct(status.permission & 0o044) for status in client.list_status("/public", recursive=True)} == {"0o44"}


def test_reads_share_no_connection_of_a_client_that_ends(hdfs: HdfsServers) -> None:
    """The client says that a connection to a DataNode ended with the client that made it: between two answers of a read
    that is no warning, but the end of the read."""
    root = f"{hdfs.url}/storage_of_many"
    Storage(root=root).write_bytes("kept/one", b"x")
    done = subprocess.run(
        [sys.executable, "-c", _READ_OFTEN, root, "/storage_of_many/kept/one"],
        env={**os.environ, "AIRFLOW_CONN_LAKE": hdfs.connection, "RUST_LOG": "warn"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
