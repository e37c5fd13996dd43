"""Pair the rows of two sides by a sorted number, in one pass over both."""

from makewhole.native.arrays import Bools, IntPs, UInt64s
from makewhole.native.compiled import compiled

Side = tuple[UInt64s, IntPs, UInt64s, UInt64s, Bools]
"""The numbers of a side ascending, the row of each, and by row: another number, a value, whether it may be paired."""


@compiled
def leave_out_equal_pairs(source: Side, target: Side, source_left: Bools, target_left: Bools) -> None:
    """Set `source_left` and `target_left` to false for the rows of each pair: a number that is there once on each side,
    with the same other number and value, where both rows may be paired."""
    numbers, others = source[0], target[0]
    at, place = 0, 0
    while at < len(numbers) and place < len(others):
        number = numbers[at]
        if number != others[place]:
            if number < others[place]:
                at += 1
            else:
                place += 1
            continue
        first, first_place = at, place
        while at < len(numbers) and numbers[at] == number:
            at += 1
        while place < len(others) and others[place] == number:
            place += 1
        if at - first > 1 or place - first_place > 1:
            continue
        row, other = source[1][first], target[1][first_place]
        is_equal = source[2][row] == target[2][other] and source[3][row] == target[3][other]
        if is_equal and source[4][row] and target[4][other]:
            source_left[row] = False
            target_left[other] = False
