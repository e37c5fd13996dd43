"""Choose which runs of the key index are merged next, so that few are left: some for each power of four of rows."""

from collections.abc import Sequence

FANOUT = 4
MOST_AT_ONCE = 64  # each of them is an open file


def runs_to_merge(rows: Sequence[int]) -> list[int]:
    """Return the places of the runs to merge, by their numbers of rows; none when there is nothing to do.

    Runs of one level are merged, of the lowest level that has `FANOUT` of them. Afterwards each level has fewer, so
    that the number of runs follows the logarithm of the rows, and a row is written again once for each level.
    """
    levels: dict[int, list[int]] = {}
    for place, number in enumerate(rows):
        levels.setdefault(level_of(number), []).append(place)
    return next((places[:MOST_AT_ONCE] for _, places in sorted(levels.items()) if len(places) >= FANOUT), [])


def level_of(rows: int) -> int:
    """Return the level of a run: the exponent of the power of four that its number of rows reaches."""
    return max(0, rows.bit_length() - 1) // 2
