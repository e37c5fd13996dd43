"""Look numbers up in short groups of fingerprints, one pass over the numbers."""

from makewhole.native.arrays import Bools, UInt16s, UInt32s, UInt64s
from makewhole.native.compiled import compiled


@compiled
def find_fingerprints(groups: UInt64s, wanted: UInt16s, edges: UInt32s, fingerprints: UInt16s, found: Bools) -> None:
    """Set `found` where the group of a number has its fingerprint: group `i` is `fingerprints[edges[i]:edges[i + 1]]`.

    A group behind the last one has none. The edges ascend, and the last one is the number of fingerprints.
    """
    for row in range(len(groups)):
        if groups[row] >= len(edges) - 1:
            found[row] = False
            continue
        at, end = edges[groups[row]], edges[groups[row] + 1]
        while at < end and fingerprints[at] != wanted[row]:
            at += 1
        found[row] = at < end
