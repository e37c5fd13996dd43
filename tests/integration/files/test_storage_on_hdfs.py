"""Snapshots and evidence can be kept on HDFS: the storage writes there, and reads what it wrote."""

import hdfs_native
import polars as pl
import pytest

from makewhole.file_system import open_to_read
from makewhole.lake.storage import Storage
from tests.world.hdfs_servers import HdfsServers

pytestmark = pytest.mark.integration


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
    found = list(client.list_status("/private", recursive=True))
    assert len([one for one in found if not one.isdir]) == 3
    assert {(one.isdir, oct(one.permission)) for one in found} == {(True, "0o700"), (False, "0o600")}
    assert {oct(one.permission & 0o044) for one in client.list_status("/public", recursive=True)} == {"0o44"}
