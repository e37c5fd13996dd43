"""Test datasets on HDFS of which a block cannot be read, though its file is there: the message names both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.model.errors import TransientError
from tests.integration.files.files_shop import FilesShop
from tests.world.hdfs_servers import HdfsServers
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(300)]

MADE = orders(range(12))
ON_HDFS = pytest.mark.parametrize("place", ["hdfs"], indirect=True)


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[HdfsServers]:
    """A NameNode and a DataNode of the test's own, which it may damage."""
    with HdfsServers(tmp_path / "hdfs") as servers:
        yield servers


def write(shop: FilesShop) -> None:
    """Send orders, and write their rows but for O2."""
    shop.describe_files()
    shop.send(MADE)
    shop.load("a.parquet", [*MADE[:2], *MADE[3:6]])
    shop.load("b.parquet", MADE[6:])


@ON_HDFS
def test_a_block_whose_file_is_gone_is_named_and_tried_again(shop: FilesShop, hdfs: HdfsServers) -> None:
    """Takes long: the servers are started."""
    write(shop)
    content = shop.place.content("b.parquet")
    hdfs.lose_block(content)
    expected = (
        f"^{shop.place.store.root}/b.parquet is there, and cannot be read: no DataNode gives block 1 of 1, "
        rf"bytes 0 to {len(content) - 1}, of HDFS\. It is tried again for as long as `retry_for`\. `hdfs fsck"
    )

    for _ in range(2):  # the first time the DataNode is asked, the second time it has reported the loss
        with pytest.raises(TransientError, match=expected):
            shop.judged()
    shop.place.store.remove("b.parquet")
    lost = dict.fromkeys(["O2", *(f"O{number}" for number in range(6, 12))], ("missing", "lost_after_topic"))
    assert shop.found(shop.judged(), STORE_HOP) == lost


@ON_HDFS
def test_a_block_that_a_dead_datanode_had_is_named(shop: FilesShop, hdfs: HdfsServers) -> None:
    """Takes long: the servers are started."""
    write(shop)
    context = shop.open()
    hdfs.stop_data_node()

    with pytest.raises(TransientError, match=r"parquet is there, and cannot be read: no DataNode gives block 1 of 1"):
        shop.snapshot(context)
