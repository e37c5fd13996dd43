"""Match many JSON objects with one layout, in one pass over their bytes, eight at a time where that is possible.

A leaf is a string without escapes, a number without exponent, `true`, `false` or `null`; an object with anything else
in a leaf's place does not match. A position of -1 means no match, and every step passes it on.
"""

from typing import Any, NamedTuple

import numpy as np

from makewhole.native.arrays import Bools, Int32s, Int64s, UInt8s
from makewhole.native.compiled import compiled, inlined

TEXT, NUMBER, SIGNED_ZERO, BOOLEAN, NULL = 1, 2, 4, 8, 16
"""Kinds of leaves, as bits. A zero with a sign, like `-0.0`, is no `NUMBER`."""
_QUOTE, _ESCAPE, _SPACE, _MINUS, _POINT, _ZERO, _FIRST_LETTER = b'"\\ -.0a'
_N, _T = b"nt"
_WORDS = np.frombuffer(b"nulltruefalse", dtype=np.uint8)
_NO_LEAF = (-1, 0, 0)
_WORD_BYTES = 8
_ONES, _HIGHEST = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


class ValueSpans(NamedTuple):
    """Values by start and length in a content; length -1 is null."""

    content: UInt8s
    starts: Int32s
    lengths: Int32s


class Pattern(NamedTuple):
    """A layout: `text[edges[i]:edges[i + 1]]` stands before leaf `i`, the last behind them all.

    Leaf `i` must be of one of its kinds (bits) and of at least so many bytes; a number of at most so many bytes and
    digits in its fraction. It is recorded in its column, where that is not -1.
    """

    text: UInt8s
    edges: Int64s
    is_text: Bools
    columns: Int64s
    kinds: Int64s
    least_bytes: Int64s
    number_bytes: Int64s
    fraction_digits: Int64s


class ScannedLeaves(NamedTuple):
    """The values that match, by their number, and their leaves, by column and index in `rows`; length -1 is null."""

    rows: Int64s
    starts: Int32s
    lengths: Int32s
    fraction_digits: UInt8s


def scan(values: ValueSpans, pattern: Pattern, scanned: ScannedLeaves) -> int:
    """Record the values that match the pattern, and return their number. `scanned` has room for all."""
    return _scan(tuple(values), tuple(pattern), tuple(scanned))


@compiled
def _scan(spans: tuple[Any, ...], layout: tuple[Any, ...], room: tuple[Any, ...]) -> int:
    values, pattern, scanned = ValueSpans(*spans), Pattern(*layout), ScannedLeaves(*room)
    count = 0
    for row in range(len(values.starts)):
        start, length = values.starts[row], values.lengths[row]
        if start < 0 or length < 0 or length > len(values.content) - start:
            continue
        if _matches(values.content, start, start + length, pattern, scanned, count):
            scanned.rows[count] = row
            count += 1
    return count


@inlined
def _matches(content: UInt8s, at: int, end: int, pattern: Pattern, scanned: ScannedLeaves, row: int) -> bool:
    """Return whether the value at `[at, end)` matches; its leaves are recorded in the row as far as it does."""
    leaves = len(pattern.is_text)
    for leaf in range(leaves):
        start = _skip_text(content, at, end, pattern, leaf)
        at, kind, digits = _leaf(content, start, end, pattern.is_text[leaf])
        if at < 0 or not _obeys_rule(pattern, leaf, kind, at - start, digits):
            return False
        column = pattern.columns[leaf]
        if column >= 0:
            scanned.starts[column, row] = start
            scanned.lengths[column, row] = -1 if kind == NULL else at - start
            scanned.fraction_digits[column, row] = digits
    return _skip_text(content, at, end, pattern, leaves) == end


@inlined
def _skip_text(content: UInt8s, at: int, end: int, pattern: Pattern, number: int) -> int:
    first, past = int(pattern.edges[number]), int(pattern.edges[number + 1])
    if at < 0 or end - at < past - first:
        return -1
    while past - first >= _WORD_BYTES:
        if _word(content, np.uint64(at)) != _word(pattern.text, np.uint64(first)):
            return -1
        at, first = at + _WORD_BYTES, first + _WORD_BYTES
    while first < past:
        if content[at] != pattern.text[first]:
            return -1
        at, first = at + 1, first + 1
    return at


@inlined
def _obeys_rule(pattern: Pattern, leaf: int, kind: int, length: int, digits: int) -> bool:
    if pattern.kinds[leaf] & kind == 0 or length < pattern.least_bytes[leaf]:
        return False
    return kind != NUMBER or (length <= pattern.number_bytes[leaf] and digits <= pattern.fraction_digits[leaf])


@inlined
def _leaf(content: UInt8s, at: int, end: int, is_text: bool) -> tuple[int, int, int]:
    """Return (end, kind, digits of its fraction) of the leaf that begins at `at`."""
    if at < 0 or at >= end:
        return _NO_LEAF
    if is_text:
        return _text_end(content, at, end), TEXT, 0
    first = content[at]
    if first < _FIRST_LETTER:
        return _number(content, at, end)
    if first == _N:
        return _skip_word(content, at, end, 0, 4), NULL, 0
    if first == _T:
        return _skip_word(content, at, end, 4, 8), BOOLEAN, 0
    return _skip_word(content, at, end, 8, 13), BOOLEAN, 0


@inlined
def _text_end(content: UInt8s, at: int, end: int) -> int:
    """Return the position of the quotation mark that ends a string of UTF-8 without escapes and control characters."""
    while at < end:
        if end - at >= _WORD_BYTES and _is_plain(_word(content, np.uint64(at))):
            at += _WORD_BYTES
            continue
        byte = content[at]
        if byte == _QUOTE:
            return at
        if byte < _SPACE or byte == _ESCAPE:
            return -1
        if byte < 0x80:
            at += 1
            continue
        at = _skip_wide(content, at, end)
        if at < 0:
            return -1
    return -1


@inlined
def _skip_wide(content: UInt8s, at: int, end: int) -> int:
    """Return the end of a character beyond ASCII (RFC 3629: no overlong form, no surrogate, none above U+10FFFF)."""
    lead = int(content[at])
    size = 2 + (lead >= 0xE0) + (lead >= 0xF0)
    if lead < 0xC2 or lead > 0xF4 or end - at < size:
        return -1
    second = content[at + 1]
    least = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
    most = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
    if second < least or second > most:
        return -1
    for index in range(at + 2, at + size):
        if content[index] & 0xC0 != 0x80:
            return -1
    return at + size


@inlined
def _skip_word(content: UInt8s, at: int, end: int, first: int, past: int) -> int:
    if end - at < past - first:
        return -1
    for index in range(past - first):
        if content[at + index] != _WORDS[first + index]:
            return -1
    return at + past - first


@inlined
def _number(content: UInt8s, at: int, end: int) -> tuple[int, int, int]:
    """Do as `_leaf` for a number: an optional sign, digits without a leading zero, optionally a point and digits."""
    is_negative = content[at] == _MINUS
    whole = at + is_negative
    past, point = whole, -1
    while past < end:
        byte = content[past]
        if byte == _POINT and point < 0:
            point = past
        elif (byte ^ _ZERO) >= 10:
            break
        past += 1
    digits = (past if point < 0 else point) - whole
    fraction_digits = 0 if point < 0 else past - point - 1
    if digits == 0 or (digits > 1 and content[whole] == _ZERO) or (point >= 0 and fraction_digits == 0):
        return _NO_LEAF
    if is_negative and _is_zero(content, whole, past):
        return past, SIGNED_ZERO, fraction_digits
    return past, NUMBER, fraction_digits


@inlined
def _is_zero(content: UInt8s, at: int, end: int) -> bool:
    """Return whether every digit of a number is 0."""
    while at < end and (content[at] == _ZERO or content[at] == _POINT):
        at += 1
    return at == end


@inlined
def _word(text: UInt8s, at: np.uint64) -> np.uint64:
    """Return eight bytes as a number. An unsigned place is none from the end: so the compiler reads all at once."""
    word = np.uint64(0)
    for index in range(_WORD_BYTES):
        word |= np.uint64(text[at + np.uint64(index)]) << np.uint64(8 * index)
    return word


@inlined
def _is_plain(word: np.uint64) -> bool:
    """Return whether eight bytes are ASCII and none of them is a quotation mark, an escape or a control character.

    A byte that is 0 borrows from its highest bit when 1 is taken from it, and a lower one than a space when 32 are. A
    borrow reaches on to the byte behind, which can then only be taken for one that is not plain.
    """
    quote, escape = word ^ (_ONES * np.uint64(_QUOTE)), word ^ (_ONES * np.uint64(_ESCAPE))
    marks = (word - _ONES * np.uint64(_SPACE)) | (quote - _ONES) | (escape - _ONES) | word
    return bool((marks & _HIGHEST) == np.uint64(0))
