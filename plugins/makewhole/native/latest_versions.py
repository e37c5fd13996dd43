"""Choose the latest version of each key among its copies, in one pass over the copies in the order of their keys."""

from makewhole.native.arrays import Bools, Int64s, IntPs, UInt64s
from makewhole.native.compiled import compiled

Copies = tuple[UInt64s, Int64s, Int64s, Int64s, Bools]
"""By row: the half of the hash by which the copies are not in order, the number of the version, its partition, its
position there, and whether the key may have a latest version at all."""

NO_NUMBER = -(2**63)
"""Stands for the number of a copy that has no version."""


@compiled
def choose_latest(firsts: IntPs, rows: IntPs, copies: Copies, latest: IntPs, is_certain: Bools) -> None:
    """Write the row of the latest version of each group of rows, and whether it is certain: all copies are of one key
    and may have a latest one, and no other of them could be the latest. Versions and copies without one have no order.

    `firsts`: where each group begins in `rows`, and where the last one ends; none is empty. The latest version has the
    highest number, and of several with that number the last position, if all are in one partition.
    """
    others, versions, partitions, positions, may_be = copies
    for group in range(len(firsts) - 1):
        best = rows[firsts[group]]
        certain, is_tied = may_be[best], False
        for at in range(firsts[group] + 1, firsts[group + 1]):
            row = rows[at]
            certain = certain and may_be[row] and others[row] == others[best]
            certain = certain and (versions[row] == NO_NUMBER) == (versions[best] == NO_NUMBER)
            if versions[row] > versions[best]:
                best, is_tied = row, False
            elif versions[row] == versions[best]:
                is_tied = is_tied or partitions[row] != partitions[best] or positions[row] == positions[best]
                if positions[row] > positions[best]:
                    best = row
        latest[group] = best
        is_certain[group] = certain and not is_tied
