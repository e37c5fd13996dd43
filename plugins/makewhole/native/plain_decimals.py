"""Look whether texts are plain decimal numbers, and how many digits their fractions have, in one pass over their
bytes."""

from typing import NamedTuple

import numpy as np

from makewhole.native.arrays import Int32s, Int64s, UInt8s
from makewhole.native.compiled import compiled, inlined

MOST_DIGITS = 31
"""Most digits before the point of a number that counts as plain."""
_NOT_PLAIN = -1
_MINUS, _POINT, _ZERO, _NINE = ord("-"), ord("."), ord("0"), ord("9")


class FractionSizes(NamedTuple):
    """The fewest and the most digits of fractions; of no text more than any, and none."""

    least: int
    most: int


def fraction_sizes(content: UInt8s, starts: Int32s, lengths: Int32s) -> FractionSizes | None:
    """Return the sizes of the fractions of texts by start and length, a length of -1 being null; None: one is no number
    without exponent, leading zeros and sign of zero."""
    sizes = np.array([np.iinfo(np.int64).max, 0], dtype=np.int64)
    _measure(content, starts, lengths, sizes)
    return None if sizes[0] == _NOT_PLAIN else FractionSizes(int(sizes[0]), int(sizes[1]))


@compiled
def _measure(content: UInt8s, starts: Int32s, lengths: Int32s, sizes: Int64s) -> None:
    for row in range(len(starts)):
        start, length = int(starts[row]), int(lengths[row])
        if length < 0:
            continue
        size = _NOT_PLAIN
        if start >= 0 and start + length <= len(content):
            size = _fraction_size(content, start, start + length)
        if size == _NOT_PLAIN:
            sizes[0] = _NOT_PLAIN
            return
        sizes[0], sizes[1] = min(sizes[0], size), max(sizes[1], size)


@inlined
def _fraction_size(content: UInt8s, at: int, end: int) -> int:
    """Return the number of digits behind the point of a text, 0 without a point; `_NOT_PLAIN`: it is no plain
    number."""
    is_below = at < end and content[at] == _MINUS
    at += is_below
    whole = at
    while at < end and _ZERO <= content[at] <= _NINE:
        at += 1
    digits = at - whole
    is_zero = digits > 0 and content[whole] == _ZERO
    if digits == 0 or digits > MOST_DIGITS or (is_zero and digits > 1):
        return _NOT_PLAIN
    if at == end:
        return _NOT_PLAIN if is_zero and is_below else 0
    if content[at] != _POINT:
        return _NOT_PLAIN
    fraction = at + 1
    at = fraction
    while at < end and _ZERO <= content[at] <= _NINE:
        is_zero = is_zero and content[at] == _ZERO
        at += 1
    return at - fraction if at == end and at > fraction and not (is_zero and is_below) else _NOT_PLAIN
