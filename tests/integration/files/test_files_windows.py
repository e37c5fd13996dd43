"""Test whole windows over a dataset of Parquet files: what is found, and in which file it lies."""

import pytest

from makewhole.model.window import WindowState
from tests.integration.files.files_shop import FilesShop
from tests.world.files_lake import POSITIONED, positioned
from tests.world.orders import Order, orders
from tests.world.shop import STORE_HOP
from tests.world.windows import Found

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

EVERY = pytest.mark.parametrize("place", ["folder", "hdfs", "s3"], indirect=True)
MADE = orders(range(12))
FOUND: Found = {
    "O2": ("missing", "lost_after_topic"),
    "O3": ("missing", "lost_after_topic"),
    "O4": ("duplicate", "written_before_committed"),
    "O6": ("mismatched", "value_differs"),
    "O90": ("unexpected", "not_in_source"),
}


def other(order: Order) -> Order:
    """Return an order with another amount."""
    return {**order, "amount": "99.99"}


def trade_badly(shop: FilesShop) -> None:
    """Send orders of which the loader lost O2 and O3, wrote O4 twice and O6 wrongly; O90 it took from elsewhere."""
    shop.send(MADE)
    shop.load("a.parquet", [*MADE[:2], *MADE[4:6], other(MADE[6]), *MADE[7:]])
    shop.load("b.parquet", [MADE[4], *orders([90])])


def places(shop: FilesShop, context: object, key: str) -> list[str]:
    """Return where the rows of a finding lie."""
    return [copy["place"] for copy in shop.evidence(context, STORE_HOP, key)["target"]]  # type: ignore[arg-type]


@EVERY
def test_a_window_finds_what_is_missing_there_twice_wrong_and_from_elsewhere(shop: FilesShop) -> None:
    shop.describe_files()
    trade_badly(shop)

    context = shop.judge_and_ask_the_gate()
    counts = shop.counts(context, STORE_HOP)

    assert shop.found(context, STORE_HOP) == FOUND
    assert (counts.source_keys, counts.matched) == (12, 8)
    assert places(shop, context, "O4") == ["a.parquet:2", "b.parquet:0"]


@EVERY
def test_a_correct_dataset_is_certified(shop: FilesShop) -> None:
    shop.describe_files()
    shop.send(MADE)
    shop.load("dt=2025-03-01/a.parquet", MADE[:5])
    shop.load("dt=2025-03-01/b.parquet", MADE[5:])
    shop.load("_temporary/0/b.parquet", MADE[:7])
    shop.load("dt=2025-03-01/.c.parquet.inprogress", MADE)

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {}
    assert closed.state is WindowState.CERTIFIED


def test_rows_are_known_by_their_positions_without_a_key(shop: FilesShop) -> None:
    """Offset 3 is a hole, 5 is there twice, and 40 is of no record."""
    shop.describe_files(has_key=False, topic_key="position", more={"position": "{partition: p, offset: o}"})
    shop.send(MADE)
    rows = positioned(MADE)
    shop.place.add("orders+0+0000000000+0000000007.parquet", [*rows[:3], *rows[4:8]], POSITIONED)
    shop.place.add("orders+0+0000000008+0000000011.parquet", [*rows[8:], rows[5]], POSITIONED)
    shop.place.add("orders+0+0000000040+0000000040.parquet", positioned([MADE[0]], 40), POSITIONED)

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {
        '["0","3"]': ("missing", "lost_after_topic"),
        '["0","5"]': ("duplicate", "written_before_committed"),
        '["0","40"]': ("unexpected", "not_in_source"),
    }
    assert places(shop, context, '["0","5"]') == [
        "orders+0+0000000000+0000000007.parquet:4",
        "orders+0+0000000008+0000000011.parquet:4",
    ]


def test_a_key_in_a_file_that_no_marker_commits_is_in_doubt_and_another_one_is_missing(shop: FilesShop) -> None:
    """O2 is in a file whose job has not ended, and O3 is nowhere; once the job has ended, O2 is there."""
    shop.describe_files(more={"committed": "_SUCCESS"})
    shop.send(MADE)
    shop.load("job=1/a.parquet", [*MADE[:2], *MADE[4:]])
    shop.place.store.publish("job=1/_SUCCESS", b"")
    shop.load("job=2/a.parquet", [MADE[2]])

    context = shop.judged()

    assert shop.found(context, STORE_HOP)["O2"] == ("pending", "in_doubt")
    [doubt] = shop.evidence(context, STORE_HOP, "O2")["in_doubt"]
    assert (doubt["gid"], doubt["file"]) == ("job=2/a.parquet", True)
    shop.place.store.publish("job=2/_SUCCESS", b"")
    again = shop.judged()
    assert shop.found(again, STORE_HOP) == {"O3": ("missing", "lost_after_topic")}


def test_rows_that_come_late_are_found_by_the_next_window(shop: FilesShop) -> None:
    """Of a slice that was read before only rows of files are read that came since, or were written again."""
    shop.describe_files()
    shop.send(MADE)
    shop.load("a.parquet", MADE)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    later = orders(range(100, 104), 1)
    shop.send(later)
    shop.load("b.parquet", [*later, MADE[5], *orders([91])])

    second = shop.judged(1)

    assert shop.found(second, STORE_HOP) == {
        "O5": ("duplicate", "written_before_committed"),
        "O91": ("unexpected", "not_in_source"),
    }


def test_rows_that_come_between_reading_and_judging_are_not_missing(shop: FilesShop) -> None:
    """Without a time a dataset is read by the keys of its topic: O9 comes in a new file, O10 in one written again."""
    shop.describe_files(has_time=False)
    shop.send(MADE)
    shop.load("a.parquet", MADE[:8])
    shop.load("b.parquet", [MADE[8]])
    context = shop.open()
    shop.snapshot(context)
    shop.load("b.parquet", [MADE[8], MADE[10]])
    shop.load("c.parquet", [MADE[9]])

    shop.reconcile(context)

    assert shop.found(context, STORE_HOP) == {"O11": ("missing", "lost_after_topic")}
    assert shop.counts(context, STORE_HOP).matched == 11
