"""Check which slices a census counts, and that the cost of a window does not grow with the number of windows."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from makewhole.model.window import KnownSlice, TimeSlice, Window
from makewhole_spark.snapshot.census import reaches_from, rows_in_slice, slices_due, slices_to_look_at

pytestmark = pytest.mark.unit

BORN = datetime(2013, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def known(number: int, *, rows: int | None = 100, counted_by: int | None = None) -> KnownSlice:
    """Return the slice of a day's window; the first begins at the beginning."""
    start = None if number == 1 else BORN + (number - 1) * DAY
    return KnownSlice(
        slice=TimeSlice(window=number, start=start, end=BORN + number * DAY),
        rows=rows,
        pg_snapshot="10:10:",
        counted_by=number if counted_by is None else counted_by,
        counted_at=BORN,
    )


def window(number: int) -> Window:
    start = None if number == 1 else BORN + (number - 1) * DAY
    return Window(
        pipeline="shop",
        number=number,
        revision=1,
        start=start,
        end=BORN + number * DAY,
        opened_at=BORN + number * DAY,
        ranges={},
    )


def due(slices: list[KnownSlice], number: int, late: timedelta = DAY) -> list[int]:
    return [chosen.slice.window for chosen in slices_due(slices, window(number), late)]


def test_the_first_window_has_no_slice_before_it() -> None:
    assert due([], 1) == []
    assert reaches_from(window(1), DAY) == BORN


def test_all_slices_of_a_short_history_are_counted() -> None:
    assert due([known(number) for number in range(1, 10)], 10) == list(range(1, 10))


def test_of_a_year_the_newest_are_counted_and_those_that_were_not_for_longest() -> None:
    year = [known(number, counted_by=min(number + 8, 364)) for number in range(1, 365)]
    assert due(year, 365) == [*range(1, 17), *range(357, 365)]
    assert due(year, 365, late=3 * DAY) == [*range(1, 17), *range(355, 365)]


def test_in_a_year_of_nights_every_slice_has_its_turn_and_no_night_counts_more_than_any() -> None:
    slices: dict[int, KnownSlice] = {}
    waited = dict.fromkeys(range(1, 366), 0)
    for number in range(1, 366):
        counted = due(list(slices.values()), number)
        assert len(counted) <= 1 + 7 + 16
        for day in slices:
            waited[day] = 0 if day in counted else waited[day] + 1
        slices |= {counted_day: known(counted_day, counted_by=number) for counted_day in counted}
        slices[number] = known(number)
    assert max(waited.values()) <= 365 / 16


def test_a_census_looks_at_few_slices_and_each_has_its_turn() -> None:
    assert slices_to_look_at(1, 1, 1) == []
    assert slices_to_look_at(1, 9, 10) == [*range(1, 10)]
    assert slices_to_look_at(5, 38, 40) == [*range(5, 40)]
    assert slices_to_look_at(1, 40, 41) == [*range(1, 33, 2), *range(33, 41)]
    for last in (300, 3_000):
        looked_at = [slices_to_look_at(3, number - 1, number) for number in range(last, last + last // 8)]
        assert max(len(ones) for ones in looked_at) <= 1 + 7 + 32
        assert {day for ones in looked_at for day in ones} >= {*range(3, last)}


def test_in_years_of_nights_that_look_at_few_slices_every_slice_has_its_turn() -> None:
    slices: dict[int, KnownSlice] = {}
    waited = dict.fromkeys(range(1, 1_000), 0)
    for number in range(1, 1_000):
        looked_at = slices_to_look_at(1, max(1, number - 1), number)
        counted = due([slices[looked_up] for looked_up in looked_at], number)
        assert len(counted) <= 1 + 7 + 16
        for day in slices:
            waited[day] = 0 if day in counted else waited[day] + 1
        slices |= {counted_day: known(counted_day, counted_by=number) for counted_day in counted}
        slices[number] = known(number)
    assert max(waited.values()) <= 1_000 / 8


def test_a_large_slice_waits_as_many_windows_as_its_rows_are_worth() -> None:
    def history(now: int) -> list[KnownSlice]:
        return [known(1, rows=50_000_000, counted_by=10), *(known(day, counted_by=now - 1) for day in range(2, now))]

    assert 1 not in due(history(59), 59)
    assert 1 in due(history(60), 60)
    # Where windows are large themselves more may be counted.
    assert 1 not in due(history(20), 20)
    assert 1 in due([*history(20)[:-1], known(19, rows=5_000_000 // 4)], 20)


def test_the_rows_of_one_census_are_bounded() -> None:
    large = [known(number, rows=400_000, counted_by=number) for number in range(1, 30)]
    assert due(large, 30) == [1, 2, 3, 4, 25, 26, 27, 28, 29]


def test_slices_that_were_not_counted_are_due() -> None:
    assert due([known(1, rows=None), known(2, rows=None), known(3)], 4) == [1, 2, 3]


def test_what_late_reaches_is_counted_whatever_its_size() -> None:
    large = [*(known(number, rows=10**9, counted_by=number) for number in range(1, 7)), known(7)]
    assert due(large, 8, late=3 * DAY) == [5, 6, 7]
    assert due(large, 8, late=timedelta(hours=1)) == [7]
    assert due(large[:-1], 8, late=timedelta(0)) == [3, 4, 5, 6]
    assert due(large, 8, late=timedelta(0)) == [7]


@pytest.mark.parametrize(
    ("times", "start", "rows"),
    [
        ([0, 9, 10, 19, 20], 10, 2),
        ([0, 9, 10, 19, 20, None], 10, 2),
        ([], 10, 0),
        ([], None, 0),
        ([-5, 0, 19, 20], None, 3),
        ([0, None], None, None),
    ],
)
def test_a_window_counts_the_rows_of_its_slice_while_it_reads_them(
    times: list[int | None], start: int | None, rows: int | None
) -> None:
    """A row without a time may be of the infinite past, which belongs to a slice without a start."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    begin = None if start is None else epoch + timedelta(microseconds=start)
    own = TimeSlice(window=3, start=begin, end=epoch + timedelta(microseconds=20))

    assert rows_in_slice(pl.Series("time_us", times, dtype=pl.Int64), own) == rows
