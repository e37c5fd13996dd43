"""Test that a dataset of files is only taken for unchanged where its files show it."""

import os
import time
from pathlib import Path

import pytest

from makewhole.window.context import WindowContext
from tests.integration.files.files_shop import FilesShop
from tests.integration.spark.test_unchanged_windows import reused, why_read
from tests.world.files_lake import FilesPlace
from tests.world.orders import at_day, orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(12))
BOTH = {"orders": 1, "warehouse": 1}
SETTLED_SECONDS = 2.2
GONE = {"warehouse": "files of it are gone, or were written again"}


@pytest.fixture
def judged(shop: FilesShop) -> WindowContext:
    """A window over two files that were written some time before."""
    shop.describe_files()
    shop.send(MADE)
    shop.load("a.parquet", MADE[:6])
    shop.load("b.parquet", MADE[6:])
    time.sleep(SETTLED_SECONDS)
    return shop.judge_and_ask_the_gate()


def full(place: FilesPlace, name: str) -> Path:
    return Path(place.store.root, name)


def swapped(content: bytes) -> bytes:
    """Return another file of the same size: the amounts of two orders are exchanged."""
    first, two = b"O7", b"O8"
    return content.replace(first, b"O\x00").replace(two, first).replace(b"O\x00", two)


@pytest.mark.usefixtures("judged")
def test_files_that_were_left_alone_are_not_read_again_nor_beside_files_of_other_times(shop: FilesShop) -> None:
    assert reused(shop, shop.judge_and_ask_the_gate()) == BOTH
    shop.load("later.parquet", [at_day(3, MADE[0])])
    time.sleep(SETTLED_SECONDS)
    second = shop.judge_and_ask_the_gate()
    assert (reused(shop, second), why_read(shop, second)) == (BOTH, {})


@pytest.mark.usefixtures("judged")
def test_a_file_that_came_since_with_a_row_of_the_window_is_read(shop: FilesShop) -> None:
    shop.load("late.parquet", MADE[3:4])
    time.sleep(SETTLED_SECONDS)
    second = shop.judge_and_ask_the_gate()
    assert why_read(shop, second) == {"warehouse": "files that came since have rows of it"}
    assert shop.found(second, STORE_HOP) == {"O3": ("duplicate", "written_before_committed")}


@pytest.mark.usefixtures("judged")
def test_a_file_that_is_gone_or_written_again_is_noticed(shop: FilesShop, place: FilesPlace) -> None:
    shop.load("b.parquet", MADE[6:])
    time.sleep(SETTLED_SECONDS)
    assert why_read(shop, shop.judge_and_ask_the_gate()) == GONE
    assert reused(shop, shop.judge_and_ask_the_gate()) == {"orders": 1, "warehouse": 2}
    full(place, "a.parquet").unlink()
    third = shop.judge_and_ask_the_gate()
    assert (why_read(shop, third), len(shop.found(third, STORE_HOP))) == (GONE, 6)


@pytest.mark.usefixtures("judged")
def test_another_content_of_the_same_size_and_time_is_noticed(shop: FilesShop, place: FilesPlace) -> None:
    """As tools leave it that copy a file with its time."""
    file = full(place, "b.parquet")
    known, content = file.stat(), file.read_bytes()
    other = swapped(content)
    assert len(other) == len(content)
    file.write_bytes(other)
    os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns))
    time.sleep(SETTLED_SECONDS)
    assert why_read(shop, shop.judge_and_ask_the_gate()) == GONE


def test_files_that_were_written_right_before_show_nothing(shop: FilesShop) -> None:
    shop.describe_files()
    shop.send(MADE)
    shop.load("a.parquet", MADE)
    shop.judge_and_ask_the_gate()
    second = shop.judge_and_ask_the_gate()
    assert why_read(shop, second) == {"warehouse": "nothing of it shows whether its rows are the same"}
    assert shop.found(second, STORE_HOP) == {}
