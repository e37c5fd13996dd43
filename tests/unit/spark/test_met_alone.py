"""Check of which windows a row may be that comes before its record, and that none of them may be missing."""

from datetime import UTC, datetime, timedelta

import pytest

from makewhole.model.window import Window
from makewhole_spark.reconcile.gather.met_alone import lookback_windows

pytestmark = pytest.mark.unit

BORN = datetime(2013, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NOTHING = timedelta()


def window(number: int, *, is_whole: bool = False) -> Window:
    """Return the window of a day; `is_whole`: it begins at the beginning of time."""
    start = None if is_whole else BORN + number * DAY
    return Window(
        pipeline="shop",
        number=number,
        revision=1,
        start=start,
        end=BORN + (number + 1) * DAY,
        opened_at=BORN,
        ranges={},
    )


def lookback_numbers(numbers: list[int], number: int, before: timedelta, *, is_whole: bool = True) -> list[int]:
    earlier = [window(day, is_whole=is_whole and day == 1) for day in numbers]
    return [earlier_window.number for earlier_window in lookback_windows(earlier, window(number), before)]


def test_the_window_before_is_always_included() -> None:
    assert lookback_numbers([1, 2, 3], 4, NOTHING) == [3]
    assert lookback_numbers([1, 2, 3], 4, timedelta(hours=5)) == [3]


def test_a_row_may_be_as_old_as_its_record_may_be_late() -> None:
    assert lookback_numbers([1, 2, 3, 4], 5, 2 * DAY) == [3, 4]
    assert lookback_numbers([1, 2, 3, 4], 5, 2 * DAY + timedelta(seconds=1)) == [2, 3, 4]
    assert lookback_numbers([1, 2, 3, 4], 5, 400 * DAY) == [1, 2, 3, 4]


def test_windows_that_do_not_reach_back_so_far_do_not_say_all() -> None:
    assert lookback_numbers([1, 2], 3, 2 * DAY, is_whole=False) == [1, 2]
    assert lookback_numbers([1, 2], 3, 2 * DAY + timedelta(seconds=1), is_whole=False) == []
    assert lookback_numbers([], 1, NOTHING, is_whole=False) == []


def test_a_window_that_is_missing_may_have_met_anything() -> None:
    assert lookback_numbers([1, 2], 4, NOTHING) == []
    assert lookback_numbers([1, 3], 4, 3 * DAY) == []
    assert lookback_numbers([1, 3], 4, NOTHING) == [3]
