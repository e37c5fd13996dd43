"""Variable-length fields of many records at once: numbers by position, byte strings as Arrow columns.

Byte strings go through Arrow's view layout (16 bytes per value: length, then the bytes themselves or where they are),
which can be built with numpy, and from there in one step to a plain binary column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_INLINE = 12
_LONGEST_VARINT = 10
_KEEP = (np.arange(_INLINE) < np.arange(_INLINE + 1)[:, None]).astype(np.uint8) * np.uint8(0xFF)


@dataclass(frozen=True, kw_only=True)
class Blobs:
    """Byte strings by start and length in one text; length -1 is null."""

    starts: Longs
    lengths: Longs

    @classmethod
    def joined(cls, parts: "Sequence[Blobs]") -> "Blobs":
        return cls(
            starts=np.concatenate([part.starts for part in parts]),
            lengths=np.concatenate([part.lengths for part in parts]),
        )

    def take(self, order: npt.NDArray[np.intp]) -> "Blobs":
        return Blobs(starts=self.starts[order], lengths=self.lengths[order])

    def column(self, text: pa.Buffer) -> "pa.Array[Any]":
        """As an Arrow binary column. `text` must run on for at least 12 bytes behind the last string."""
        size = len(self.starts)
        lengths = np.maximum(self.lengths, 0)
        views = np.zeros((size, 4), dtype=np.int32)
        views[:, 0] = lengths
        views[:, 1] = _at(text, self.starts, np.dtype("<i4"))
        views[:, 3] = self.starts
        short = np.flatnonzero(lengths <= _INLINE)
        if len(short):
            heads = _at(text, self.starts[short], np.dtype(f"V{_INLINE}")).view(np.uint8).reshape(-1, _INLINE)
            views[short, 1:] = (heads & _KEEP[lengths[short]]).view(np.int32)
        nulls = self.lengths < 0
        validity = pa.array(~nulls).buffers()[1] if nulls.any() else None
        return pa.Array.from_buffers(pa.binary_view(), size, [validity, pa.py_buffer(views.data), text]).cast(
            pa.binary()
        )

    def is_utf8(self, text: bytes) -> Bools:
        """Whether each string is valid UTF-8. Each different one is looked at once."""
        known: dict[bytes, bool] = {}
        verdicts = np.empty(len(self.starts), dtype=np.bool_)
        for index, (start, length) in enumerate(zip(self.starts.tolist(), self.lengths.tolist(), strict=True)):
            name = text[start : start + max(length, 0)]
            if name not in known:
                known[name] = _is_utf8(name)
            verdicts[index] = known[name]
        return verdicts

    def equal_to(self, text: bytes, wanted: bytes) -> Bools:
        """Whether each string is `wanted`."""
        fits: Bools = self.lengths == len(wanted)
        fits[fits] = [text[start : start + len(wanted)] == wanted for start in self.starts[fits].tolist()]
        return fits


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _at(text: pa.Buffer, starts: Longs, kind: "np.dtype[np.generic]") -> npt.NDArray[np.generic]:
    """The value of a fixed-size type at each (unaligned) byte position."""
    windows: npt.NDArray[np.generic] = np.ndarray(
        shape=(text.size - kind.itemsize + 1,), dtype=kind, buffer=memoryview(text), strides=(1,)
    )
    return windows[starts]


def varints_at(text: Bytes, cursor: Longs, ends: Longs, good: Bools) -> tuple[Longs, Longs, Bools]:
    """Zigzag numbers at the cursors: (values, cursors behind them, still good). Bad ones are 0 and do not move on."""
    good = good & (cursor < ends)
    cursor = np.where(good, cursor, 0)
    byte = text[cursor]
    value = (byte & 0x7F).astype(np.uint64)
    cursor = cursor + good
    more = np.flatnonzero((byte >= 0x80) & good)
    for length in range(1, _LONGEST_VARINT):
        if not len(more):
            break
        byte = text[cursor[more]]
        value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * length)
        cursor[more] += 1
        more = more[byte >= 0x80]
    good[more] = False
    good &= cursor <= ends
    value[~good] = 0
    return (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64), cursor, good


def blobs_at(text: Bytes, cursor: Longs, ends: Longs, good: Bools) -> tuple[Blobs, Longs, Bools]:
    """Length-prefixed byte strings at the cursors: (strings, cursors behind them, still good)."""
    lengths, starts, good = varints_at(text, cursor, ends, good)
    good = good & (lengths <= ends - starts)
    lengths = np.where(good, np.maximum(lengths, -1), -1)
    starts = np.where(good, starts, 0)
    return Blobs(starts=starts, lengths=lengths), starts + np.maximum(lengths, 0), good
