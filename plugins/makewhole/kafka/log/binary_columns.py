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

Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PADDING_BYTES = 64
"""How far a text goes on behind its last record: numbers are read on without asking where the record ends."""
_INLINE = 12
_SHORT = 64
_LONGEST_VARINT = 10
_KEEP = (np.arange(_INLINE) < np.arange(_INLINE + 1)[:, None]).astype(np.uint8) * np.uint8(0xFF)


def _numbers() -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int8]]:
    """By two bytes (little-endian): the zigzag number that they begin with and its length in bytes, 0 for over two."""
    both = np.arange(1 << 16)
    first, second = both & 0xFF, both >> 8
    lengths = np.where(first < 0x80, 1, np.where(second < 0x80, 2, 0))
    raw = np.where(first < 0x80, first, first & 0x7F | second << 7)
    values = np.where(lengths == 0, 0, raw >> 1 ^ -(raw & 1))
    return values.astype(np.int16), lengths.astype(np.int8)


_VALUES, _LENGTHS = _numbers()


class Text:
    """Bytes to read numbers and strings from, by position; `PADDING_BYTES` longer than what is in them."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.buffer = pa.py_buffer(content)
        self._bytes = np.frombuffer(content, dtype=np.uint8)
        self._pairs = _at_any(content, np.dtype("<u2"))

    def varints(self, cursor: Longs) -> tuple[Longs, Longs, Longs]:
        """Zigzag numbers at the cursors: (values, cursors behind them, which are no numbers). Those are 0."""
        pairs = self._pairs[cursor]
        values, lengths = _VALUES.take(pairs).astype(np.int64), _LENGTHS.take(pairs)
        behind = cursor + lengths
        longer = np.flatnonzero(lengths == 0)
        if not len(longer):
            return values, behind, longer
        values[longer], behind[longer], is_number = self._long_varints(cursor[longer])
        return values, behind, longer[~is_number]

    def _long_varints(self, cursor: Longs) -> tuple[Longs, Longs, Bools]:
        value, cursor, more = np.zeros(len(cursor), dtype=np.uint64), cursor.copy(), np.arange(len(cursor))
        for index in range(_LONGEST_VARINT):
            byte = self._bytes[cursor[more]]
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * index)
            cursor[more] += 1
            more = more[byte >= 0x80]
        is_number = np.ones(len(cursor), dtype=np.bool_)
        is_number[more] = False
        value[more] = 0
        return (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64), cursor, is_number

    def blobs(self, cursor: Longs, ends: Longs, good: Bools) -> "tuple[Blobs, Longs]":
        """Length-prefixed byte strings at the cursors: (strings, cursors behind them).

        One that leaves its record is null, and marked in `good`.
        """
        lengths, starts, broken = self.varints(cursor)
        good[broken] = False
        too_long = np.flatnonzero(lengths > ends - starts)
        good[too_long] = False
        lengths[too_long] = 0
        np.maximum(lengths, -1, out=lengths)
        return Blobs(starts=starts, lengths=lengths), starts + np.maximum(lengths, 0)


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

    def column(self, text: Text) -> "pa.Array[Any]":
        """As an Arrow binary column."""
        size = len(self.starts)
        if size and 0 < self.lengths[0] <= _SHORT and (self.lengths == self.lengths[0]).all():
            return self._of_one_length(text, int(self.lengths[0]))
        nulls = self.lengths < 0
        has_nulls = bool(nulls.any())
        lengths = np.maximum(self.lengths, 0) if has_nulls else self.lengths
        # The first four bytes of a long string belong into its view, too: left out, as the copying does not look there.
        views = np.zeros((size, 4), dtype=np.int32)
        views[:, 0] = lengths
        views[:, 3] = self.starts
        short = np.flatnonzero(lengths <= _INLINE)
        if len(short):
            heads = _at_any(text.content, np.dtype(f"V{_INLINE}"))[self.starts[short]]
            views[short, 1:] = (heads.view(np.uint8).reshape(-1, _INLINE) & _KEEP[lengths[short]]).view(np.int32)
        validity = pa.array(~nulls).buffers()[1] if has_nulls else None
        return pa.Array.from_buffers(pa.binary_view(), size, [validity, pa.py_buffer(views.data), text.buffer]).cast(
            pa.binary()
        )

    def _of_one_length(self, text: Text, length: int) -> "pa.Array[Any]":
        """What keys often are; taking them by position is less than half the work."""
        content = _at_any(text.content, np.dtype(f"V{length}"))[self.starts].view(np.uint8)
        ends = np.arange(len(self.starts) + 1, dtype=np.int32) * np.int32(length)
        return pa.Array.from_buffers(
            pa.binary(), len(self.starts), [None, pa.py_buffer(ends.data), pa.py_buffer(content.data)]
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


def _at_any(content: bytes, kind: "np.dtype[Any]") -> npt.NDArray[Any]:
    """The value of a fixed-size type at every byte position, aligned or not."""
    return np.ndarray((len(content) - kind.itemsize + 1,), dtype=kind, buffer=content, strides=(1,))
