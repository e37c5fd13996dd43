from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.journal.windows import WindowBounds
from makewhole.model.errors import RefusedError
from makewhole.window.opening.interval import Request, find_covering_window
from tests.world.examples import examples

pytestmark = pytest.mark.unit


def at(hour: int) -> datetime:
    return datetime(2013, 1, 1, tzinfo=UTC) + timedelta(hours=hour)


def bounds(*edges: int | None) -> list[WindowBounds]:
    """Windows between these hours; None is the beginning of time."""
    return [
        WindowBounds(number=number, revision=1, start=None if start is None else at(start), end=at(end or 0))
        for number, (start, end) in enumerate(pairwise(edges), start=1)
    ]


def interval_request(start: int | None, end: int) -> Request:
    return Request(id="run", start=None if start is None else at(start), end=at(end))


EXISTING = bounds(None, 24, 48, 72)


@pytest.mark.parametrize(
    ("start", "end", "number"),
    [
        (24, 48, 2),
        (48, 72, 3),
        (0, 24, 1),
        (-500, 24, 1),
        (None, 24, 1),
        (30, 36, 2),
        (None, 48, 2),
        (None, 25, 2),
        (72, 96, None),
        (100, 124, None),
        (50, 73, None),
        (None, 96, None),
    ],
)
def test_an_interval_is_the_window_that_covers_it_or_a_new_one_at_the_end(
    start: int | None, end: int, number: int | None
) -> None:
    window = find_covering_window(EXISTING, interval_request(start, end))

    assert (window.number if window else None) == number


@pytest.mark.parametrize(("start", "end"), [(0, 48), (30, 60), (-1, 72), (23, 25)])
def test_an_interval_across_windows_is_refused_by_name(start: int, end: int) -> None:
    with pytest.raises(RefusedError) as refused:
        find_covering_window(EXISTING, interval_request(start, end))

    assert str(refused.value) == (
        f"the interval {at(start).isoformat()} to {at(end).isoformat()} lies across windows that exist already; ask "
        "for one of them (1: the beginning to 2013-01-02T00:00:00+00:00; 2: 2013-01-02T00:00:00+00:00 to "
        "2013-01-03T00:00:00+00:00; 3: 2013-01-03T00:00:00+00:00 to 2013-01-04T00:00:00+00:00), or for an end after "
        "2013-01-04T00:00:00+00:00"
    )


def test_the_first_window_is_always_new() -> None:
    assert find_covering_window([], interval_request(0, 24)) is None


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.none() | st.integers(-50, 50), st.integers(-50, 50)), max_size=12))
def test_windows_tile_whatever_is_asked_for(requests: list[tuple[int | None, int]]) -> None:
    """A new window starts where the last one ended: no hole and no overlap, in any order of requests."""
    there: list[WindowBounds] = []
    for start, end in requests:
        if start is not None and start >= end:
            continue
        request = interval_request(start, end)
        try:
            place = find_covering_window(there, request)
        except RefusedError:
            continue
        if place is None:
            begin = there[-1].end if there else request.start
            there.append(WindowBounds(number=len(there) + 1, revision=1, start=begin, end=request.end))
        else:
            assert place in there
            assert (place.start is None or place.start < request.end) and request.end <= place.end

    assert all(window.end == next_one.start for window, next_one in pairwise(there))
    assert all(window.start is None or window.start < window.end for window in there)
