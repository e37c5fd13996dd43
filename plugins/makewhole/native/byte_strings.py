"""Byte strings by where they stand in one content, many at a time, and the Arrow columns that are made of them.

A column is either a copy, or one of Arrow's views (16 bytes per string: its length, then the bytes themselves or its
first four and where it is), which stay in the content.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from makewhole.native.arrays import ArrowArray, Bools, Bytes, Longs, Numbers
from makewhole.native.compiled import compiled

_INLINE, _PREFIX, _NUMBERS = 12, 4, 4


class Content:
    """Bytes that strings stand in."""

    def __init__(self, content: bytes | pa.Buffer) -> None:
        self.buffer = pa.py_buffer(content)
        self.bytes: Bytes = np.frombuffer(memoryview(content), dtype=np.uint8)
        self.bytes.flags.writeable = False


@dataclass(frozen=True, kw_only=True)
class Blobs:
    """Byte strings by start and length in one content, all within it; length -1 is null."""

    starts: Numbers
    lengths: Numbers

    def column(self, content: Content) -> ArrowArray:
        """As an Arrow binary column, copied."""
        edges = np.zeros(len(self.starts) + 1, dtype=np.int64)
        np.cumsum(np.maximum(self.lengths, 0), out=edges[1:])
        copy = np.empty(edges[-1], dtype=np.uint8)
        _copy(content.bytes, self.starts, edges, copy)
        buffers = [self._validity(), pa.py_buffer(edges.astype(np.int32).data), pa.py_buffer(copy.data)]
        return pa.Array.from_buffers(pa.binary(), len(self.starts), buffers)

    def views(self, content: Content, kind: pa.DataType | None = None) -> ArrowArray:
        """As an Arrow column of views into the content, which is kept as long as the column is.

        Of `binary_view`, or of `string_view` where all are known to be UTF-8.
        """
        views = np.empty((len(self.starts), _NUMBERS), dtype=np.int32)
        _view(content.bytes, self.starts, self.lengths, views, views.view(np.uint8))
        buffers = [self._validity(), pa.py_buffer(views.data), content.buffer]
        return pa.Array.from_buffers(kind or pa.binary_view(), len(self.starts), buffers)

    def _validity(self) -> pa.Buffer | None:
        is_there = self.lengths >= 0
        return None if is_there.all() else pa.array(is_there).buffers()[1]


def are_utf8(column: ArrowArray) -> Bools:
    """Whether each string of a binary column is valid UTF-8."""
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
def _copy(content: Bytes, starts: Numbers, edges: Longs, copy: Bytes) -> None:
    """Put string `i` at `copy[edges[i]:edges[i + 1]]`."""
    for row in range(len(starts)):
        start, first = starts[row], edges[row]
        for index in range(edges[row + 1] - first):
            copy[first + index] = content[start + index]


@compiled
def _view(content: Bytes, starts: Numbers, lengths: Numbers, views: Numbers, view_bytes: Bytes) -> None:
    """Fill in the views; `view_bytes` are theirs: (row, byte)."""
    for row in range(len(starts)):
        start, length = starts[row], max(lengths[row], 0)
        for number in range(_NUMBERS):
            views[row, number] = 0
        views[row, 0] = length
        shown = length
        if length > _INLINE:
            views[row, 3] = start
            shown = _PREFIX
        for index in range(shown):
            view_bytes[row, _PREFIX + index] = content[start + index]
