"""Snapshots and evidence can be kept on HDFS: the storage writes there, and reads what it wrote."""

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
