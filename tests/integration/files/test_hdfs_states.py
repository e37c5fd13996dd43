"""Test datasets on an HDFS that takes no writes for a while, and with a file that a dead writer left open."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.window import WindowState
from tests.integration.files.files_shop import FilesShop
from tests.integration.files.test_files_repair import ALL
from tests.world.files_lake import FilesPlace, parquet_bytes, rows_of
from tests.world.hdfs_servers import HdfsServers
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(300)]

MADE = orders(range(12))
ON_HDFS = pytest.mark.parametrize("place", ["hdfs"], indirect=True)


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[HdfsServers]:
    """A NameNode and a DataNode of the test's own, whose state it may change."""
    with HdfsServers(tmp_path / "hdfs") as servers:
        yield servers


@ON_HDFS
def test_in_safe_mode_a_window_is_judged_and_its_plan_and_the_undo_go_on_when_it_is_over(
    shop: FilesShop, hdfs: HdfsServers
) -> None:
    """Takes long: the servers are started, and each change of the mode is a process of Hadoop's."""
    shop.describe_files(compensation=ALL)
    shop.send(MADE)
    shop.load("a.parquet", [*MADE[:2], *MADE[3:]])
    shop.load("b.parquet", [MADE[5]])
    before, names = shop.place.rows(), shop.place.names()
    hdfs.set_safe_mode(is_on=True)

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {
        "O2": ("missing", "lost_after_topic"),
        "O5": ("duplicate", "written_before_committed"),
    }
    plan = shop.planned(context)
    shop.approve(plan)
    with pytest.raises(TransientError, match=rf"^{shop.place.store.root} does not answer: .*[Ss]afe ?mode") as raised:
        shop.run(context, plan)
    assert "FSNamesystem" not in str(raised.value)
    assert shop.place.names() == names
    hdfs.set_safe_mode(is_on=False)
    shop.run(context, plan)
    assert shop.refused(plan) == {}
    assert shop.place.rows() == sorted(rows_of(MADE), key=str)
    assert shop.close(context).state is WindowState.CERTIFIED
    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert (shop.refused(undo), shop.place.rows()) == ({}, before)


def size_of(place: FilesPlace, path: str) -> int:
    """Return the size of a file as it is listed."""
    file = place.store.find(path)
    assert file is not None
    return file.size_bytes


@ON_HDFS
def test_what_a_file_that_a_dead_writer_left_open_may_hold_is_not_known_until_it_is_written_again(
    shop: FilesShop, hdfs: HdfsServers
) -> None:
    """Takes long: the servers are started."""
    shop.describe_files()
    shop.send(MADE)
    shop.load("a.parquet", [*MADE[:4], MADE[3], *MADE[5:8]])
    whole = parquet_bytes(rows_of(MADE[8:]))
    path = f"{shop.place.path}/b.parquet"
    held = dict.fromkeys(["O4", "O8", "O9", "O10", "O11"], ("pending", "in_doubt"))
    twice = {"O3": ("duplicate", "written_before_committed")}
    hdfs.leave_open(path, whole[:100])
    assert size_of(shop.place, "b.parquet") == 0

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {**twice, **held}
    assert closed.state is WindowState.NOT_KNOWN
    assert "is no whole Parquet file: b.parquet (0 bytes, written " in (closed.reason or "")
    hdfs.leave_open(path, whole[:-1])
    assert 0 < size_of(shop.place, "b.parquet") < len(whole)
    assert shop.found(shop.judged(), STORE_HOP) == {**twice, **held}
    hdfs.recover(path)
    assert shop.found(shop.judged(), STORE_HOP) == {**twice, **held}
    hdfs.leave_open(path, whole[:100])
    shop.load("b.parquet", MADE[8:])
    assert shop.found(shop.judged(), STORE_HOP) == {**twice, "O4": ("missing", "lost_after_topic")}


def test_an_hdfs_that_refuses_access_is_distinguished_from_one_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes long: the servers are started."""
    with HdfsServers(tmp_path / "guarded", {"dfs.permissions.enabled": "true"}) as guarded:
        place = FilesPlace(path="/lake", fields=json.loads(guarded.connection))
        assert place.store.publish("a", b"one")
        guarded.client().set_permission("/lake", 0o700)
        monkeypatch.setenv("HADOOP_USER_NAME", "anna")
        for ask in (place.names, lambda: place.store.find("a"), lambda: place.store.publish("b", b"two")):
            with pytest.raises(RefusedError, match=r"^hdfs://.*/lake: access is refused; grant it to the user"):
                ask()
