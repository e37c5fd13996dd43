"""Read moments of the usual ISO 8601 forms in one pass over their bytes: `2026-01-31T12:00:00.5+05:30`, `… …Z`, without
an offset.

A text of any other form is left, and so is what is no moment: nothing is guessed.
"""

from typing import Any, NamedTuple

import numpy as np

from makewhole.native.arrays import Bools, Int32s, Int64s, UInt8s, read_only
from makewhole.native.compiled import compiled, inlined

_FORM = np.frombuffer(b"0000-00-00T00:00:00", dtype=np.uint8)
_MINUS, _PLUS, _POINT, _COLON, _ZERO, _SPACE, _T, _Z = b"-+.:0 TZ"
_DIGITS = 6
_DAYS_OF_MONTHS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)
_DAYS_BEFORE_MONTHS = np.concatenate([[0], np.cumsum(_DAYS_OF_MONTHS)[:-1]])
_DAYS_BEFORE_1970 = 719_162
_DAY_SECONDS, _MICROSECONDS = 86_400, 1_000_000
_LONGEST_OFFSET_HOURS = 15
_YEAR_2000 = 946_684_800_000_000


class ReadMoments(NamedTuple):
    """By text: microseconds since 1970 in UTC, rounded, and whether they could be read."""

    microseconds: Int64s
    is_read: Bools


def read_moments(content: UInt8s, starts: Int32s, lengths: Int32s, digits: int) -> ReadMoments:
    """Read texts by start and length in a content; a length of -1, null, is not read. `digits`: of a second, that
    count; what is finer is rounded as `makewhole.compute.moments` does."""
    read = ReadMoments(np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts), dtype=np.bool_))
    _read_all(content, read_only(starts), read_only(lengths), tuple(read), 10 ** (_DIGITS - digits))
    return read


@compiled
def _read_all(content: UInt8s, starts: Int32s, lengths: Int32s, room: tuple[Any, ...], unit: int) -> None:
    microseconds, is_read = room
    for row in range(len(starts)):
        start, length = int(starts[row]), int(lengths[row])
        if start >= 0 and len(_FORM) <= length <= len(content) - start and _has_form(content, start):
            is_read[row], moment = _moment(content, start, start + length)
            microseconds[row] = moment if unit == 1 else _rounded(moment, unit)


@inlined
def _rounded(microseconds: int, unit: int) -> int:
    since = microseconds - _YEAR_2000
    rounded = (abs(since) + unit // 2) // unit * unit
    return _YEAR_2000 + (rounded if since >= 0 else -rounded)


@inlined
def _has_form(content: UInt8s, at: int) -> bool:
    """Return whether digits and signs stand in their places, up to the seconds."""
    for index in range(len(_FORM)):
        byte, sign = content[at + index], _FORM[index]
        is_right = (byte ^ _ZERO) < 10 if sign == _ZERO else byte == sign or (sign == _T and byte == _SPACE)
        if not is_right:
            return False
    return True


@inlined
def _moment(content: UInt8s, at: int, end: int) -> tuple[bool, int]:
    year = _two(content, at) * 100 + _two(content, at + 2)
    month, day = _two(content, at + 5), _two(content, at + 8)
    hour, minute, second = _two(content, at + 11), _two(content, at + 14), _two(content, at + 17)
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if year == 0 or month == 0 or month > 12 or day == 0 or hour > 23 or minute > 59 or second > 59:
        return False, 0
    if day > _DAYS_OF_MONTHS[month] + (is_leap and month == 2):
        return False, 0
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400
    days += _DAYS_BEFORE_MONTHS[month] + (is_leap and month > 2) + day - 1 - _DAYS_BEFORE_1970
    at, fraction = _fraction(content, at + len(_FORM), end)
    is_offset, offset = _offset(content, at, end)
    seconds = days * _DAY_SECONDS + hour * 3_600 + minute * 60 + second - offset
    return at >= 0 and is_offset, seconds * _MICROSECONDS + fraction


@inlined
def _two(content: UInt8s, at: int) -> int:
    return (int(content[at]) - _ZERO) * 10 + int(content[at + 1]) - _ZERO


@inlined
def _fraction(content: UInt8s, at: int, end: int) -> tuple[int, int]:
    """Return (end, microseconds) of the fraction at `at`, if there is one; an end of -1: it is none, or finer."""
    if at == end or content[at] != _POINT:
        return at, 0
    first, fraction = at + 1, 0
    at = first
    while at < end and (content[at] ^ _ZERO) < 10:
        if at - first == _DIGITS:
            return -1, 0
        fraction = fraction * 10 + int(content[at]) - _ZERO
        at += 1
    if at == first:
        return -1, 0
    for _ in range(_DIGITS - (at - first)):
        fraction *= 10
    return at, fraction


@inlined
def _offset(content: UInt8s, at: int, end: int) -> tuple[bool, int]:
    """Return whether an offset from UTC ends the text, or none, and its seconds."""
    if at == end or (at + 1 == end and at >= 0 and content[at] == _Z):
        return True, 0
    if at < 0 or end - at != len("+00:00"):
        return False, 0
    sign = content[at]
    for index in (1, 2, 4, 5):
        if (content[at + index] ^ _ZERO) >= 10:
            return False, 0
    hours, minutes = _two(content, at + 1), _two(content, at + 4)
    if (sign != _PLUS and sign != _MINUS) or content[at + 3] != _COLON or hours > _LONGEST_OFFSET_HOURS or minutes > 59:
        return False, 0
    seconds = hours * 3_600 + minutes * 60
    return True, -seconds if sign == _MINUS else seconds
