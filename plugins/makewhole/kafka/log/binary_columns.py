"""Variable-length fields of many records at once, by position: numbers and byte strings."""

import numpy as np
import numpy.typing as npt

from makewhole.compute.byte_strings import PADDING_BYTES, Blobs, Content
from makewhole.compute.words import Bools, Longs, at_any

__all__ = ["PADDING_BYTES", "Blobs", "Text"]

_LONGEST_VARINT = 10


def _numbers() -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int8]]:
    """By two bytes (little-endian): the zigzag number that they begin with and its length in bytes, 0 for over two."""
    both = np.arange(1 << 16)
    first, second = both & 0xFF, both >> 8
    lengths = np.where(first < 0x80, 1, np.where(second < 0x80, 2, 0))
    raw = np.where(first < 0x80, first, first & 0x7F | second << 7)
    values = np.where(lengths == 0, 0, raw >> 1 ^ -(raw & 1))
    return values.astype(np.int16), lengths.astype(np.int8)


_VALUES, _LENGTHS = _numbers()


class Text(Content):
    """Bytes to read numbers and strings from, by position; `PADDING_BYTES` longer than what is in them."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._bytes = np.frombuffer(content, dtype=np.uint8)
        self._pairs = at_any(content, np.dtype("<u2"))

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

    def blobs(self, cursor: Longs, ends: Longs, good: Bools) -> tuple[Blobs, Longs]:
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
