"""Hold many byte strings by their place in one content, and make Arrow columns of them.

A column is either a copy, or of Arrow's views into the content (16 bytes per string: its length, then all its bytes, or
its first four and its place).
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from makewhole.native.arrays import ArrowArray, Bools, Int32s, UInt8s
from makewhole.native.compiled import compiled, inlined

_INLINE, _PREFIX, _NUMBERS = 12, 4, 4


class Content:
    """A read-only buffer that many byte strings are part of."""

    def __init__(self, content: bytes | pa.Buffer) -> None:
        self.buffer = pa.py_buffer(content)
        self.bytes: UInt8s = np.frombuffer(memoryview(content), dtype=np.uint8)
        self.bytes.flags.writeable = False


@dataclass(frozen=True, kw_only=True)
class Blobs:
    """Byte strings by start and length, all within one content; length -1 is null."""

    starts: Int32s
    lengths: Int32s

    def column(self, content: Content) -> ArrowArray:
        """Return a copy as an Arrow binary column. Arrow copies string by string; a loop of ours goes byte by byte."""
        copy: ArrowArray = self.views(content).cast(pa.binary())
        return copy

    def views(self, content: Content, kind: pa.DataType | None = None) -> ArrowArray:
        """Return an Arrow column of views into the content, which lives as long as the column.

        Its type is `binary_view`, or `string_view` where all are known to be UTF-8.
        """
        views = np.empty((len(self.starts), _NUMBERS), dtype=np.int32)
        _view(content.bytes, self.starts, self.lengths, views, views.view(np.uint8))
        buffers = [self._validity(), pa.py_buffer(views.data), content.buffer]
        return pa.Array.from_buffers(kind or pa.binary_view(), len(self.starts), buffers)

    def are_ascii(self, content: Content) -> bool:
        """Return whether every byte of all of them is ASCII."""
        return _is_ascii(content.bytes, self.starts, self.lengths)

    def _validity(self) -> pa.Buffer | None:
        is_valid = self.lengths >= 0
        return None if is_valid.all() else pa.array(is_valid).buffers()[1]


def are_utf8(column: ArrowArray) -> Bools:
    """Return for each string of a binary column whether it is valid UTF-8."""
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return np.array([_is_utf8(text) for text in column.to_pylist()], dtype=np.bool_)
    return np.ones(len(column), dtype=np.bool_)


def _is_utf8(text: bytes | None) -> bool:
    try:
        (text or b"").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@compiled
def _is_ascii(content: UInt8s, starts: Int32s, lengths: Int32s) -> bool:
    for row in range(len(starts)):
        bits = 0
        for at in range(starts[row], starts[row] + lengths[row]):
            bits |= content[at]
        if bits >= 0x80:
            return False
    return True


@compiled
def _view(content: UInt8s, starts: Int32s, lengths: Int32s, views: Int32s, view_bytes: UInt8s) -> None:
    """Fill in the views; `view_bytes` are the same memory as (row, byte)."""
    for row in range(len(starts)):
        start, length = starts[row], max(lengths[row], 0)
        for number in range(_NUMBERS):
            views[row, number] = 0
        views[row, 0] = length
        if length > _INLINE:
            views[row, 3] = start
            length = _PREFIX
        if length >= _PREFIX:
            _write_ends(content, start, length, view_bytes, row)
            continue
        for index in range(length):
            view_bytes[row, _PREFIX + index] = content[start + index]


@inlined
def _write_ends(content: UInt8s, start: int, length: int, view_bytes: UInt8s, row: int) -> None:
    """Write a text of 4 to 12 bytes: its first four, its last four and those in the middle, twice where they meet.

    An unsigned place is none from the end: so the compiler moves four bytes at once.
    """
    last = length - _PREFIX
    for begin in (0, min(_PREFIX, last), last):
        at, place = np.uint64(start + begin), np.uint64(_PREFIX + begin)
        for index in range(_PREFIX):
            view_bytes[row, place + np.uint64(index)] = content[at + np.uint64(index)]
