"""Byte strings by where they stand in one content, many at a time, and the Arrow columns that are made of them.

Columns go through Arrow's view layout (16 bytes per string: its length, then the bytes themselves or its first four and
where it is), which can be built with numpy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from makewhole.compute.words import Bools, Bytes, Longs, at_any

_Array = Any  # pyarrow.Array: its type stubs know nothing of binary columns and views
PADDING_BYTES = 128
"""How far a content goes on behind its last string: it is read on without asking where a string ends."""
_INLINE, _PREFIX = 12, 4
_SHORT = 64
_KEEP = (np.arange(_INLINE) < np.arange(_INLINE + 1)[:, None]).astype(np.uint8) * np.uint8(0xFF)


class Content:
    """Bytes that strings stand in."""

    def __init__(self, content: bytes | pa.Buffer) -> None:
        self.buffer = pa.py_buffer(content)
        self.bytes: Bytes = content if isinstance(content, bytes) else memoryview(content)


@dataclass(frozen=True, kw_only=True)
class Blobs:
    """Byte strings by start and length in one content; length -1 is null."""

    starts: Longs
    lengths: Longs

    @classmethod
    def joined(cls, parts: "Sequence[Blobs]") -> "Blobs":
        return cls(
            starts=np.concatenate([part.starts for part in parts]),
            lengths=np.concatenate([part.lengths for part in parts]),
        )

    def take(self, rows: npt.NDArray[Any]) -> "Blobs":
        """Those rows, by position or by flag."""
        return Blobs(starts=self.starts[rows], lengths=self.lengths[rows])

    def column(self, text: Content) -> _Array:
        """As an Arrow binary column, copied."""
        if len(self.starts) and 0 < self.lengths[0] <= _SHORT and (self.lengths == self.lengths[0]).all():
            return self._of_one_length(text, int(self.lengths[0]))
        return self.views(text).cast(pa.binary())

    def views(self, text: Content) -> _Array:
        """As an Arrow column of views into the content, which is kept as long as the column is."""
        size = len(self.starts)
        nulls = self.lengths < 0
        has_nulls = bool(nulls.any())
        lengths = np.maximum(self.lengths, 0) if has_nulls else self.lengths
        views = np.zeros((size, 4), dtype=np.int32)
        views[:, 0] = lengths
        views[:, 3] = self.starts
        short = np.flatnonzero(lengths <= _INLINE)
        if len(short) < size:
            views[:, 1] = at_any(text.bytes, np.dtype("<i4"))[self.starts]
        if len(short):
            heads = at_any(text.bytes, np.dtype(f"V{_INLINE}"))[self.starts[short]]
            views[short, 1:] = (heads.view(np.uint8).reshape(-1, _INLINE) & _KEEP[lengths[short]]).view(np.int32)
        validity = pa.array(~nulls).buffers()[1] if has_nulls else None
        return pa.Array.from_buffers(pa.binary_view(), size, [validity, pa.py_buffer(views.data), text.buffer])

    def is_utf8(self, text: Content) -> Bools:
        """Whether each string is valid UTF-8. Each different one is looked at once."""
        known: dict[bytes, bool] = {}
        verdicts = np.empty(len(self.starts), dtype=np.bool_)
        for index, (start, length) in enumerate(zip(self.starts.tolist(), self.lengths.tolist(), strict=True)):
            name = bytes(text.bytes[start : start + max(length, 0)])
            if name not in known:
                known[name] = _is_utf8(name)
            verdicts[index] = known[name]
        return verdicts

    def equal_to(self, text: Content, wanted: bytes) -> Bools:
        """Whether each string is `wanted`."""
        fits: Bools = self.lengths == len(wanted)
        fits[fits] = [text.bytes[start : start + len(wanted)] == wanted for start in self.starts[fits].tolist()]
        return fits

    def _of_one_length(self, text: Content, length: int) -> _Array:
        """What keys often are; taking them by position is less than half the work."""
        content = at_any(text.bytes, np.dtype(f"V{length}"))[self.starts].view(np.uint8)
        ends = np.arange(len(self.starts) + 1, dtype=np.int32) * np.int32(length)
        return pa.Array.from_buffers(
            pa.binary(), len(self.starts), [None, pa.py_buffer(ends.data), pa.py_buffer(content.data)]
        )


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
