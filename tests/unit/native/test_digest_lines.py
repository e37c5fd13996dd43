"""Hold the sum of the hashes of a digest's lines to the hashes of the lines as texts, by another library."""

import numpy as np
import polars as pl
import polars_hash as plh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.native import digest_lines
from makewhole.native.digest_lines import sum_of_matched_lines
from tests.unit.native.bounds_checks import bounds_checked
from tests.world.examples import examples

pytestmark = pytest.mark.unit

# Of every number of digits, from 1 to 20.
NUMBERS = (
    st.integers(0, 2**64 - 1)
    | st.integers(0, 19).map(lambda power: 10**power)
    | st.integers(0, 64).map(lambda bits: 2**bits - 1)
)

KEYS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=30)


def by_texts(keys: list[tuple[int, int, int]]) -> int:
    lines = [f"{high:016x}{low:016x}|matched|{value}" for high, low, value in keys]
    frame = pl.DataFrame({"line": lines}, schema={"line": pl.String})
    hashes: list[int] = frame.select(plh.col("line").nchash.xxh3_128()).to_series().to_list()
    return sum(hashes) % 2**128


def by_numbers(keys: list[tuple[int, int, int]]) -> int:
    columns = np.array(keys, dtype=np.uint64).reshape(-1, 3)
    return sum_of_matched_lines(columns[:, 0], columns[:, 1], columns[:, 2])


@settings(max_examples=examples(300), deadline=None)
@given(KEYS)
def test_the_sum_is_that_of_the_lines_as_texts(keys: list[tuple[int, int, int]]) -> None:
    assert by_numbers(keys) == by_texts(keys)


def test_a_sum_beyond_128_bits_begins_again() -> None:
    keys = [(number, number * 7919, 2**64 - 1 - number) for number in range(5_000)]

    assert by_numbers(keys) == by_texts(keys)


def test_no_byte_outside_the_line_is_read() -> None:
    keys = [(2**64 - 1, 0, value) for value in (0, 9, 10, 10**19, 2**64 - 1)]

    with bounds_checked(digest_lines):
        assert by_numbers(keys) == by_texts(keys)
