"""Look numbers up in short groups of fingerprints, one pass over the numbers."""

from makewhole.native.arrays import Bools, UInt8s, UInt16s, UInt32s, UInt64s
from makewhole.native.compiled import compiled

Fingerprints = tuple[UInt16s, UInt8s]
"""The lower and the higher bits of each fingerprint; without any higher bits, the lower ones are all of it."""


@compiled
def find_fingerprints(
    groups: UInt64s, wanted: Fingerprints, edges: UInt32s, fingerprints: Fingerprints, is_known: Bools
) -> None:
    """Set `is_known` where the group of a number has its fingerprint: group `i` is from `edges[i]` to `edges[i + 1]`.

    A group behind the last one has none. The edges ascend, and the last one is the number of fingerprints.
    """
    wanted_lower, wanted_higher = wanted
    lower, higher = fingerprints
    has_higher = len(higher) > 0
    for row in range(len(groups)):
        is_known[row] = False
        if groups[row] >= len(edges) - 1:
            continue
        for at in range(edges[groups[row]], edges[groups[row] + 1]):
            if lower[at] == wanted_lower[row] and (not has_higher or higher[at] == wanted_higher[row]):
                is_known[row] = True
                break
