"""Check which copies outside a window count: by positions as numbers, and in the log that exists now."""

import polars as pl
import pytest

from makewhole.compute.frames import ELSEWHERE, HASH, IS_GONE
from makewhole_spark.reconcile.judge.copies_outside import first_of_absent
from makewhole_spark.reconcile.judge.pending import behind_limits
from makewhole_spark.reconcile.judge.read_copies import ranges_together
from tests.unit.compute.judge.bucket_input import copies, hashed, one

pytestmark = pytest.mark.unit


def test_the_first_of_late_records_is_the_one_of_the_lowest_offset() -> None:
    rows = [
        {"key": key, "place": place, "is_replay": is_replay}
        for key, place, is_replay in (
            ("a", "0:10", False),
            ("a", "0:9", False),
            ("b", "10:1", False),
            ("b", "2:5", False),
            ("c", "0:3", True),
            ("c", "0:40", False),
            ("d", "0:1", False),
        )
    ]
    others = hashed(rows, ELSEWHERE)
    target = copies([one("d", 0)], is_topic=True)

    absent = first_of_absent(others, target, others.clear())

    assert sorted(absent["place"].to_list()) == ["0:40", "0:9", "2:5"]
    assert len(absent.unique(HASH)) == 3


@pytest.mark.parametrize(
    ("offsets", "ranges"),
    [
        ([], []),
        ([7], [(7, 8)]),
        ([7, 8, 10_008], [(7, 10_009)]),
        ([7, 10_008, 30_000], [(7, 8), (10_008, 10_009), (30_000, 30_001)]),
    ],
)
def test_near_positions_are_read_together(offsets: list[int], ranges: list[tuple[int, int]]) -> None:
    assert ranges_together(offsets) == ranges


def test_no_reader_comes_to_a_copy_that_is_gone() -> None:
    source = copies([one("a", 5), one("b", 6), one("c", 7)], is_topic=True).with_columns(
        pl.Series(IS_GONE, [True, False, None])
    )

    assert behind_limits(source, {0: 1})["key"].to_list() == ["b", "c"]
    assert behind_limits(source.drop(IS_GONE), {0: 6})["key"].to_list() == ["b", "c"]
