"""Leaf values of many JSON objects: strings without escapes, numbers, `true`, `false` and `null`, by their bytes.

All of one leaf are read at once, from where each begins. What is not simple is not `good`, and is left to slower ways:
nothing here guesses.
"""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import pyarrow as pa

from makewhole.compute.byte_strings import Blobs, Content
from makewhole.compute.words import (
    WORD_BYTES,
    Bools,
    Longs,
    Words,
    are_digits,
    below,
    beyond_ascii,
    equal,
    first_of,
    lowest,
    repeated,
    within,
    word_of,
    words_at,
)

_Array = Any  # pyarrow.Array: its type stubs know nothing of views
_QUOTE, _ESCAPE, _SPACE = b'"\\ '
_BEYOND_ASCII = 0x80
_BYTE = np.uint64(0xFF)
_NULL, _TRUE, _FALSE = word_of(b"null"), word_of(b"true"), word_of(b"false")
_FEWEST_WORDS, _MOST_WORDS, _MOST_WORDS_OF_SCALARS = 2, 8, 4
MOST_BYTES_AT_ONCE = _MOST_WORDS * WORD_BYTES
"""How far is read from where a leaf begins."""
_INLINE = 12


@dataclass(frozen=True, kw_only=True)
class Leaves:
    """One leaf value of each object: where it stands, and its first words, with whatever follows it."""

    starts: Longs
    lengths: Longs
    words: Words

    def take(self, rows: Any) -> Self:
        """Those rows, by position or by flag."""
        return type(self)(**{one.name: getattr(self, one.name)[..., rows] for one in fields(self)})

    def texts(self, content: Content, is_there: Bools | None = None) -> _Array:
        """As an Arrow column of views into the content: known to be UTF-8. Null where not `is_there`."""
        size, lengths = len(self.starts), self.lengths
        first = within(self.words[0], np.minimum(lengths, WORD_BYTES))
        views = np.empty((size, 2), dtype=np.uint64)
        views[:, 0] = lengths.astype(np.uint64) | first << np.uint64(32)
        second = within(self.words[1], np.clip(lengths - WORD_BYTES, 0, _INLINE - WORD_BYTES))
        views[:, 1] = first >> np.uint64(32) | second << np.uint64(32)
        if len(long := np.flatnonzero(lengths > _INLINE)):
            views[long, 1] = self.starts[long].astype(np.uint64) << np.uint64(32)
        validity = None if is_there is None else pa.array(is_there).buffers()[1]
        data = [content.buffer] if len(long) else []
        return pa.Array.from_buffers(pa.string_view(), size, [validity, pa.py_buffer(views.data), *data])


def texts_at(content: Content, starts: Longs, limits: Longs, likely_bytes: int) -> tuple[Leaves, Bools]:
    """The strings whose first bytes stand at `starts`, in objects that end at `limits`.

    Good are those that end before, are UTF-8, and hold no escape and no control character.
    """
    words = words_at(content.bytes, starts, _words_for(likely_bytes, _MOST_WORDS))
    lengths, good = first_of(words, _QUOTE), np.ones(len(starts), dtype=np.bool_)
    strange = below(words, _SPACE) | equal(words, _ESCAPE) | beyond_ascii(words)
    is_doubtful = lengths == WORD_BYTES * len(words)
    if strange.any():
        is_doubtful |= np.logical_or.reduce(
            [within(flags, _in_word(lengths, row)) for row, flags in enumerate(strange)]
        )
    if len(doubtful := np.flatnonzero(is_doubtful)):
        lengths[doubtful], good[doubtful] = _looked_at_closely(content, starts[doubtful], limits[doubtful])
    return Leaves(starts=starts, lengths=lengths, words=words), good


def _words_for(likely_bytes: int, most: int) -> int:
    return min(max(likely_bytes // WORD_BYTES + 1, _FEWEST_WORDS), most)


def _in_word(lengths: Longs, row: int) -> Longs:
    """How many bytes of so many are in this word."""
    return np.clip(lengths - row * WORD_BYTES, 0, WORD_BYTES)


def _looked_at_closely(content: Content, starts: Longs, limits: Longs) -> tuple[Longs, Bools]:
    """(length, whether good) of strings that are long, or may hold what they must not."""
    rests = Blobs(starts=starts, lengths=np.maximum(limits - starts, 0)).column(content)
    edges = np.frombuffer(rests.buffers()[1], dtype=np.int32).astype(np.int64)
    body = np.frombuffer(rests.buffers()[2] or b"", dtype=np.uint8)
    quotes = np.append(np.flatnonzero(body == _QUOTE), len(body))
    ends = quotes[np.searchsorted(quotes, edges[:-1])]
    good = (ends < edges[1:]) & _none_of((body < _SPACE) | (body == _ESCAPE), edges[:-1], ends)
    is_wide = body >= _BEYOND_ASCII
    if is_wide.any() and not _is_utf8(rests):
        good &= _none_of(is_wide, edges[:-1], ends)
    return np.maximum(ends - edges[:-1], 0), good


def _none_of(found: Bools, starts: Longs, ends: Longs) -> Bools:
    """Which spans have no byte that was found."""
    at = np.flatnonzero(found)
    none: Bools = np.searchsorted(at, starts) == np.searchsorted(at, ends)
    return none


def _is_utf8(column: _Array) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class Scalars(Leaves):
    """Numbers, `true`, `false` and `null`. Of a number: how many digits its fraction has, and whether it is `-0`."""

    is_null: Bools
    is_boolean: Bools
    fraction_digits: Longs
    is_negative_zero: Bools

    @property
    def is_number(self) -> Bools:
        return ~(self.is_null | self.is_boolean)


def scalars_at(content: Content, starts: Longs, following: int, likely_bytes: int) -> tuple[Scalars, Bools]:
    """What stands at `starts`, up to the byte that follows it.

    Good are the three words, and JSON numbers without an exponent, in less than 32 bytes.
    """
    words = words_at(content.bytes, starts, _words_for(likely_bytes, _MOST_WORDS_OF_SCALARS))
    lengths = first_of(words, following)
    first = within(words[0], np.minimum(lengths, WORD_BYTES))
    is_null = (first == _NULL) & (lengths == 4)
    is_boolean = ((first == _TRUE) & (lengths == 4)) | ((first == _FALSE) & (lengths == 5))
    good = is_null | is_boolean
    fractions, is_negative_zero = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts), dtype=np.bool_)
    if not good.all():
        is_number, fractions, is_negative_zero = _numbers(words, lengths)
        good |= is_number & (lengths < WORD_BYTES * len(words))
    return Scalars(
        starts=starts,
        lengths=lengths,
        words=words,
        is_null=is_null,
        is_boolean=is_boolean,
        fraction_digits=fractions,
        is_negative_zero=is_negative_zero,
    ), good


def _numbers(words: Words, lengths: Longs) -> tuple[Bools, Longs, Bools]:
    """(which are JSON numbers without an exponent, digits of the fraction, which are `-0`).

    The sign and the first point are made digits; then all must be digits.
    """
    size = len(lengths)
    is_negative = words[0] & _BYTE == ord("-")
    point, has_point = lengths.copy(), np.zeros(size, dtype=np.bool_)
    is_digits, is_zero = np.ones(size, dtype=np.bool_), np.ones(size, dtype=np.bool_)
    for row in range(min(int(lengths.max(initial=0)) // WORD_BYTES + 1, len(words))):
        word = within(words[row], _in_word(lengths, row), ord("0"))
        if row == 0:
            word ^= is_negative * np.uint64(ord("-") ^ ord("0"))
        points = equal(word, ord("."))
        is_here = (points != 0) & ~has_point
        if is_here.any():
            word ^= ((points & -points) >> np.uint64(7)) * is_here * np.uint64(ord(".") ^ ord("0"))
            point[is_here] = lowest(points[is_here]).astype(np.int64) + row * WORD_BYTES
            has_point |= is_here
        is_digits &= are_digits(word)
        is_zero &= word == repeated(ord("0"))
    whole, fraction = point - is_negative, lengths - point - has_point
    leads_with_zero = words[0] >> is_negative * np.uint64(8) & _BYTE == ord("0")
    is_number = is_digits & (whole > 0) & (~leads_with_zero | (whole == 1)) & (~has_point | (fraction > 0))
    return is_number, fraction, is_negative & is_zero
