"""Sort numbers that are spread evenly, as hashes are, in linear time: several times faster than a sort that knows
nothing of its numbers."""

import numpy as np

from makewhole.native.arrays import Int64s, IntPs, UInt64s, read_only
from makewhole.native.compiled import compiled

_ROWS_OF_A_GROUP = 3
_MOST_ROWS_OF_A_GROUP = 64
_BITS = 64


def sort_hashes(numbers: UInt64s) -> tuple[UInt64s, IntPs]:
    """Return the numbers ascending, and the row of each; equal numbers in the order of their rows.

    Each number goes to the group that its highest bits say, and each group, of a few, is sorted by itself. Numbers that
    fill a group, as a key with many copies does, are sorted by numpy.
    """
    bits = min(_BITS - 1, max(1, (len(numbers) // _ROWS_OF_A_GROUP).bit_length()))
    ends = np.zeros((1 << bits) + 1, dtype=np.int64)
    ascending, rows = np.empty_like(numbers), np.empty(len(numbers), dtype=np.intp)
    if _group(read_only(numbers), _BITS - bits, ends, ascending, rows) > _MOST_ROWS_OF_A_GROUP:
        rows = np.argsort(numbers, kind="stable")
        return numbers[rows], rows
    return ascending, rows


@compiled
def _group(numbers: UInt64s, shift: int, ends: Int64s, ascending: UInt64s, rows: IntPs) -> int:
    """Sort the numbers, unless a group of them is too large; return the size of the largest group.

    `ends` has a zero for each group and one more.
    """
    by = np.uint64(shift)
    for row in range(len(numbers)):
        ends[np.int64(numbers[row] >> by) + 1] += 1
    largest = 0
    for group in range(1, len(ends)):
        largest = max(largest, ends[group])
        ends[group] += ends[group - 1]
    if largest > _MOST_ROWS_OF_A_GROUP:
        return largest
    for row in range(len(numbers)):
        bits = np.int64(numbers[row] >> by)
        place = ends[bits]
        ends[bits] = place + 1
        ascending[place], rows[place] = numbers[row], row
    for at in range(1, len(ascending)):
        number, held, place = ascending[at], rows[at], at
        while place > 0 and ascending[place - 1] > number:
            ascending[place], rows[place] = ascending[place - 1], rows[place - 1]
            place -= 1
        ascending[place], rows[place] = number, held
    return largest
