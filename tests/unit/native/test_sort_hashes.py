"""Numbers are sorted as numpy sorts them, however they are spread."""

import numpy as np
import pytest

from makewhole.native.arrays import UInt64s
from makewhole.native.sort_hashes import sort_hashes

pytestmark = pytest.mark.unit
_RANDOM = np.random.default_rng(7)


def hashes(number: int) -> UInt64s:
    return _RANDOM.integers(0, 2**64, number, dtype=np.uint64)


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(hashes(0), id="none"),
        pytest.param(hashes(1), id="one"),
        pytest.param(hashes(5), id="a few"),
        pytest.param(hashes(100_000), id="many"),
        pytest.param(hashes(10_000) // np.uint64(16) * np.uint64(16) + np.uint64(5), id="those of a bucket"),
        pytest.param(np.repeat(hashes(10_000), 3), id="each several times"),
        pytest.param(np.append(hashes(10_000), np.full(1_000, 2**63, dtype=np.uint64)), id="one very often"),
        pytest.param(np.arange(10_000, dtype=np.uint64)[::-1], id="all of them small, descending"),
        pytest.param(np.array([2**64 - 1, 0, 2**63, 2**64 - 1, 0], dtype=np.uint64), id="the least and the greatest"),
    ],
)
def test_numbers_are_sorted_and_equal_ones_stay_in_their_order(numbers: UInt64s) -> None:
    before = numbers.copy()

    ascending, rows = sort_hashes(numbers)

    order = np.argsort(before, kind="stable")
    assert np.array_equal(rows, order)
    assert np.array_equal(ascending, before[order])
    assert np.array_equal(numbers, before)
