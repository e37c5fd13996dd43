"""Test windows over datasets of files whose folder is gone: that is said, and no row is missing for it."""

import shutil
from pathlib import Path

import pytest

from makewhole.model.errors import ConfigurationError, PermanentError
from makewhole.model.window import WindowState
from tests.integration.files.files_shop import FilesShop
from tests.integration.files.test_files_repair import ALL
from tests.world.combinations import with_every_change
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(8))
LATER = orders(range(100, 104), 1)


def read_once(shop: FilesShop) -> None:
    """Certify the first window, of two files. The records of a second one are sent."""
    shop.describe_files()
    shop.send(MADE)
    shop.load("a.parquet", MADE[:5])
    shop.load("b.parquet", MADE[5:])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.send(LATER)


def remove(shop: FilesShop) -> None:
    """Remove the folder with all that is in it."""
    for file in shop.place.store.list():
        shop.place.store.remove(file.path)
    shutil.rmtree(Path(shop.place.store.root), ignore_errors=True)


@pytest.mark.parametrize("place", with_every_change(["folder", "s3", "hdfs"], first=2), indirect=True)
def test_a_folder_that_is_gone_is_named_with_the_number_of_its_files(shop: FilesShop) -> None:
    read_once(shop)
    kept = {file.path: shop.place.content(file.path) for file in shop.place.store.list()}
    remove(shop)

    with pytest.raises(ConfigurationError) as refused:
        shop.open(1)

    assert str(refused.value) == (
        f"pipeline file: points.warehouse.path: {shop.place.path} has no file, and nothing says what its columns are. "
        "The last window had seen 2 files there. Bring its files back, or what the folder lies on; where it was moved, "
        "correct the path; where it was emptied on purpose, load a first file"
    )
    for path, content in kept.items():
        shop.place.store.publish(path, content)
    shop.load("c.parquet", LATER)
    context, closed = shop.whole_way(1)
    assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def test_a_folder_that_goes_while_its_window_is_judged_leaves_no_row_missing(shop: FilesShop) -> None:
    read_once(shop)
    shop.load("c.parquet", LATER[1:])
    context = shop.open(1)
    shop.snapshot(context)
    remove(shop)

    with pytest.raises(PermanentError, match="has no file, and nothing says what its columns are"):
        shop.reconcile(context)


def test_a_plan_writes_nothing_into_a_folder_that_is_gone(shop: FilesShop) -> None:
    shop.describe_files(compensation=ALL)
    shop.send(MADE)
    shop.load("a.parquet", MADE[1:])
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    remove(shop)

    with pytest.raises(PermanentError, match="no file"):
        shop.run(context, plan)
    assert [file for file in shop.place.store.list() if not file.path.startswith("_makewhole/")] == []
