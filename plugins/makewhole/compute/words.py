"""Bytes of many strings side by side, eight at a time.

A word is eight bytes as one unsigned number, the first of them lowest; row `i` of an array of words is the i-th word of
every string. A question about single bytes is answered by flags: a word with the highest bit of a byte set where it
holds, trustworthy up to the lowest flag (H. S. Warren, Hacker's Delight, 6-1).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = bytes | memoryview

WORD_BYTES = 8
_ONES = 0x0101010101010101
_HIGH = np.uint64(0x80 * _ONES)
_KEEP = np.array([(1 << 8 * count) - 1 for count in range(WORD_BYTES + 1)], dtype=np.uint64)


def at_any(content: Bytes, kind: "np.dtype[Any]") -> npt.NDArray[Any]:
    """The value of a fixed-size type at every byte position, aligned or not."""
    return np.ndarray((max(len(content) - kind.itemsize + 1, 0),), dtype=kind, buffer=content, strides=(1,))


def words_at(content: Bytes, starts: Longs, count: int) -> Words:
    """`count` words from each start on. They must lie within the content."""
    kind = np.dtype(f"V{WORD_BYTES * count}")
    return at_any(content, kind)[starts].view("<u8").reshape(-1, count).T


def word_of(text: bytes) -> np.uint64:
    """Up to eight bytes as a word, zero behind them."""
    return np.uint64(int.from_bytes(text, "little"))


def repeated(byte: int) -> np.uint64:
    """A word of eight times the same byte."""
    return np.uint64(byte * _ONES)


def equal(words: Words, byte: int) -> Words:
    """Flags: this very byte."""
    differing = words ^ repeated(byte)
    return (differing - repeated(1)) & ~differing & _HIGH


def below(words: Words, byte: int) -> Words:
    """Flags: a byte less than this one, which is at most 128."""
    return (words - repeated(byte)) & ~words & _HIGH


def beyond_ascii(words: Words) -> Words:
    """Flags: a byte of 128 or more. These are exact."""
    return words & _HIGH


def are_digits(words: Words) -> Bools:
    """Whether all bytes are digits."""
    high = repeated(0xF0)
    zeros = repeated(ord("0"))
    are: Bools = (words & high == zeros) & (words + repeated(6) & high == zeros)
    return are


def lowest(flags: Words) -> npt.NDArray[np.uint8]:
    """Which byte is flagged first; 8 for none."""
    which: npt.NDArray[np.uint8] = np.bitwise_count((flags & -flags) - np.uint64(1)) >> 3
    return which


def within(words: Words, lengths: npt.NDArray[np.integer[Any]], filling: int = 0) -> Words:
    """One row of words as it is up to so many bytes (0 to 8), and filled with a byte behind."""
    kept = _KEEP.take(lengths)
    return words & kept | ~kept & repeated(filling) if filling else words & kept


def begin_with(words: Words, text: bytes) -> Bools:
    """Which strings begin with a text; there are words enough for it."""
    whole, rest = divmod(len(text), WORD_BYTES)
    begin: Bools = np.ones(words.shape[1], dtype=np.bool_)
    for row in range(whole):
        begin &= words[row] == word_of(text[row * WORD_BYTES : (row + 1) * WORD_BYTES])
    if rest:
        begin &= words[whole] & _KEEP[rest] == word_of(text[-rest:])
    return begin


def first_of(words: Words, byte: int) -> Longs:
    """Where a byte stands first in each string; all bytes of the words for nowhere."""
    found = lowest(equal(words[0], byte))
    for row in range(1, len(words)):
        is_open = found == row * WORD_BYTES
        if not is_open.any():
            break
        found += lowest(equal(words[row], byte)) * is_open
    return found.astype(np.int64)
