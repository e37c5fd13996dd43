"""Test numbers, times and sizes as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.model.text import counted, duration, listed, moment, share, size

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1500, "1 s 500 ms"),
        (42_900, "42 s"),
        (3_600_000, "1 h"),
        (7_500_000, "2 h 5 min"),
        (604_800_000, "7 d"),
        (-1500, "-1 s 500 ms"),
    ],
)
def test_durations(milliseconds: int, words: str) -> None:
    assert duration(milliseconds) == words


def test_moments_that_are_no_dates_are_shown_as_they_are() -> None:
    assert moment(0) == "1970-01-01 00:00:00"
    assert moment(-1) == moment(None) == "none"
    assert moment(2**63 - 1) == f"{2**63 - 1} ms"
    assert moment(-5) == "-5 ms"


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_share_never_rounds_something_to_nothing_nor_a_part_to_the_whole(part: int, rest: int) -> None:
    words = share(part, part + rest)
    assert (words == "0%") == (part == 0)
    assert (words == "100%") == (part > 0 and rest == 0)


def test_sizes_counts_and_lists() -> None:
    assert [size(value) for value in (999, 1000, 346_400_000)] == ["999 B", "1.0 kB", "346.4 MB"]
    assert [counted(value, "batch", "batches") for value in (1, 2000)] == ["1 batch", "2,000 batches"]
    assert listed(list(range(10)), 2) == "0, 1 and 8 more"
