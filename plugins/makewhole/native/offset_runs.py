"""Mark the positions of records in a log, and look others up among runs of them: each in one pass."""

import numpy as np

from makewhole.native.arrays import Bools, Int64s, read_only
from makewhole.native.compiled import compiled

_UNKNOWN = -1


def numbers_by_partition(partitions: Int64s) -> Int64s:
    """Return by the number of a partition its place among these, which ascend; below 0: it is not among them."""
    numbers = np.full(int(partitions[-1]) + 1 if len(partitions) else 0, _UNKNOWN, dtype=np.int64)
    numbers[partitions] = np.arange(len(partitions))
    return numbers


def marked(partitions: Int64s, offsets: Int64s, by_partition: Int64s, least: int, width: int) -> Bools:
    """Return a mark for each of `width` places of each partition, and one before them all: whether a position is there.
    The first place of a partition is that of the offset `least`."""
    marks = np.zeros(width * int(by_partition.max(initial=_UNKNOWN) + 1) + 1, dtype=np.bool_)
    _mark(read_only(partitions), read_only(offsets), read_only(by_partition), least, width, marks)
    return marks


def among_runs(codes: tuple[Int64s, Int64s], by_partition: Int64s, bits: int, runs: tuple[Int64s, Int64s]) -> Bools:
    """Return which of the positions (partitions, offsets) are in the runs, from their first to their last codes: the
    place of the partition, and the offset in so many bits behind it."""
    partitions, offsets = map(read_only, codes)
    first, last = map(read_only, runs)
    mask = np.zeros(len(partitions), dtype=np.bool_)
    _among(partitions, offsets, read_only(by_partition), bits, first, last, mask)
    return mask


@compiled
def _mark(partitions: Int64s, offsets: Int64s, by_partition: Int64s, least: int, width: int, marks: Bools) -> None:
    for row in range(len(partitions)):
        at = by_partition[partitions[row]] * width + (offsets[row] - least) + 1
        if 0 <= at < len(marks):
            marks[at] = True


@compiled
def _among(
    partitions: Int64s, offsets: Int64s, by_partition: Int64s, bits: int, first: Int64s, last: Int64s, mask: Bools
) -> None:
    run = 0
    for row in range(len(partitions)):
        partition, offset = partitions[row], offsets[row]
        if partition < 0 or partition >= len(by_partition) or offset < 0 or (offset >> bits) > 0:
            continue
        place = by_partition[partition]
        if place < 0 or len(first) == 0:
            continue
        code = (place << bits) | offset
        if not first[run] <= code <= last[run]:  # nearly always it is where the one before was
            low, high = 0, len(first)
            while low < high:
                middle = (low + high) >> 1
                if first[middle] <= code:
                    low = middle + 1
                else:
                    high = middle
            run = max(low - 1, 0)
        mask[row] = first[run] <= code <= last[run]
