"""Hold the levels of the key index to the logarithm: few runs, and few writings of a row."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compute.indexed_keys.levels import FANOUT, level_of, runs_to_merge

pytestmark = pytest.mark.unit


@given(st.lists(st.one_of(st.integers(0, 50), st.integers(0, 10**9)), max_size=40))
def test_runs_are_merged_until_each_level_has_few(rows: list[int]) -> None:
    merges = 0
    while places := runs_to_merge(rows):
        assert len(places) >= FANOUT
        merged = sum(rows[place] for place in places)
        rows = [number for place, number in enumerate(rows) if place not in places] + [merged]
        merges += 1
    levels = [level_of(number) for number in rows]
    assert all(levels.count(level) < FANOUT for level in levels)
    assert merges < 40


@pytest.mark.parametrize("sizes", [(250_000, 250_000), (1, 1_000_000)], ids=["alike", "unlike"])
def test_after_four_hundred_windows_there_are_some_runs_and_a_row_was_written_some_times(
    sizes: tuple[int, int],
) -> None:
    draw, rows, written, total = random.Random(1), list[int](), 0, 0
    for _ in range(400):
        rows.append(draw.randint(*sizes))
        total += rows[-1]
        while places := runs_to_merge(rows):
            merged = sum(rows[place] for place in places)
            rows = [number for place, number in enumerate(rows) if place not in places] + [merged]
            written += merged
    assert len(rows) <= 3 * math.log(total, 4) / 2
    assert written / total <= math.log(400, 4) + 1


def test_a_window_without_rows_is_merged_like_any_other() -> None:
    assert runs_to_merge([0, 0, 0]) == []
    assert runs_to_merge([0, 70, 1, 2, 0]) == [0, 2, 3, 4]
    assert runs_to_merge([5] * 100) == list(range(64))
    assert [level_of(rows) for rows in (0, 1, 3, 4, 15, 16, 2**40)] == [0, 0, 0, 1, 1, 2, 20]
