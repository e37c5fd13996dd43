"""Write texts that differ in their numbers alone, such as the key of each position in a log.

polars writes each number as a text of its own before it joins them, which takes four times as long.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.native.arrays import ArrowArray, Int32s, Int64s, UInt8s, read_only
from makewhole.native.compiled import compiled, inlined

_INLINE, _PREFIX = 12, 4  # of Arrow's views: the longest text that a view holds itself, and what it has of others
_MOST_BYTES = (1 << 31) - 1  # of one buffer that views lead to
_MOST_DIGITS = 20
_MINUS = ord("-")
_FOUR, _EIGHT = np.uint64(10**4), np.uint64(10**8)
_TEXTS = np.frombuffer("".join(f"{number:04}" for number in range(10**4)).encode(), dtype=np.uint8)
"""The four digits of each number below 10,000."""


def numbered_texts(literals: Sequence[str], numbers: Sequence[Int64s]) -> pl.Series:
    """Return the text of each row: its numbers, one of each column, between the literals, of which there is one more
    than columns."""
    encoded = [literal.encode() for literal in literals]
    together = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    edges = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    columns = read_only(np.stack(numbers))
    at_a_time = max(_MOST_BYTES // (len(together) + _MOST_DIGITS * len(numbers)), 1)
    parts = [
        _texts(together, edges, read_only(columns[:, start : start + at_a_time]))
        for start in range(0, max(columns.shape[1], 1), at_a_time)
    ]
    texts = pl.from_arrow(pa.chunked_array(parts))
    assert isinstance(texts, pl.Series)
    return texts


def _texts(literals: UInt8s, edges: Int32s, numbers: Int64s) -> ArrowArray:
    rows = numbers.shape[1]
    content = np.empty(max(rows * (len(literals) + _MOST_DIGITS * len(numbers)), 1), dtype=np.uint8)
    views = np.empty((rows, 4), dtype=np.int32)
    end = _write(literals, edges, numbers, content, views, views.view(np.uint8))
    # A copy, because most of the room was for digits that no number has.
    written = content[: max(end, 1)].tobytes()
    return pa.Array.from_buffers(pa.string_view(), rows, [None, pa.py_buffer(views.data), pa.py_buffer(written)])


@compiled
def _write(literals: UInt8s, edges: Int32s, numbers: Int64s, content: UInt8s, views: Int32s, view_bytes: UInt8s) -> int:
    """Write the texts behind each other, and their views; `view_bytes` is the memory of the views as (row, byte).
    Return where the last ends.

    An unsigned place is none from the end: so the compiler moves several bytes at once.
    """
    columns, end = numbers.shape[0], np.uint64(0)
    for row in range(numbers.shape[1]):
        start = end
        for column in range(columns + 1):
            begin = np.uint64(edges[column])
            size = np.uint64(edges[column + 1]) - begin
            for index in range(size):
                content[end + index] = literals[begin + index]
            end += size
            if column < columns:
                end = _number(numbers[column, row], content, end)
        length = int(end - start)
        views[row, 0] = length
        for number in range(1, 4):
            views[row, number] = 0
        if length > _INLINE:
            views[row, 3] = int(start)
            length = _PREFIX
        for index in range(length):
            view_bytes[row, np.uint64(_PREFIX + index)] = content[start + np.uint64(index)]
    return int(end)


@inlined
def _number(number: int, content: UInt8s, at: np.uint64) -> np.uint64:
    """Write a number of 64 bits; return where it ends."""
    rest = np.uint64(number)
    if number < 0:
        content[at] = _MINUS
        at += np.uint64(1)
        rest = np.uint64(0) - rest  # right for the least number, too, which has no opposite
    if rest < _EIGHT:
        return _up_to_eight(rest, content, at)
    high = rest // _EIGHT
    low = rest - high * _EIGHT
    if high < _EIGHT:
        at = _up_to_eight(high, content, at)
    else:
        highest = high // _EIGHT
        at = _up_to_eight(highest, content, at)
        at = _eight(high - highest * _EIGHT, content, at)
    return _eight(low, content, at)


@inlined
def _up_to_eight(number: np.uint64, content: UInt8s, at: np.uint64) -> np.uint64:
    """Write a number of eight digits or fewer."""
    high = number // _FOUR
    low = number - high * _FOUR
    if high == 0:
        return _up_to_four(low, content, at)
    at = _up_to_four(high, content, at)
    return _four(low, content, at)


@inlined
def _up_to_four(number: np.uint64, content: UInt8s, at: np.uint64) -> np.uint64:
    digits = np.uint64(1 + (number >= 10) + (number >= 100) + (number >= 1000))
    begin = np.uint64(4) * number + np.uint64(4) - digits
    for index in range(digits):
        content[at + index] = _TEXTS[begin + index]
    return at + digits


@inlined
def _eight(number: np.uint64, content: UInt8s, at: np.uint64) -> np.uint64:
    """Write the last eight digits of a longer number."""
    high = number // _FOUR
    return _four(number - high * _FOUR, content, _four(high, content, at))


@inlined
def _four(number: np.uint64, content: UInt8s, at: np.uint64) -> np.uint64:
    begin = np.uint64(4) * number
    for index in range(4):
        content[at + np.uint64(index)] = _TEXTS[begin + np.uint64(index)]
    return at + np.uint64(4)
