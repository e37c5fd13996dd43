"""Render fields of a binary COPY as PostgreSQL renders their values as text, in one pass over the rows.

Formats: the `…_send` functions of PostgreSQL's data types, all in network order. A field of another length than its
type has makes its column malformed; no text is guessed. Numbers are of 64 bits: nothing here adds up to more.
"""

from typing import Any, NamedTuple

import numpy as np

from makewhole.native.arrays import Bools, Int32s, Int64s, UInt8s
from makewhole.native.compiled import compiled, inlined

INTEGER, NUMERIC, ROUNDED, TRIMMED, FINITE, UUID, BOOLEAN, MOMENT, PLACE = range(9)
"""The source of a rendered field: an integer, with so many zeros as fraction; a numeric as it is, rounded to so many
digits, without zeros at its end, and the same but null where it is no number; a UUID; a boolean; a moment as
microseconds since 1970; a ctid."""
NUMBER, TIME = range(2)
"""The reading of a field: an integer, or a moment in microseconds since 1970 (null where it has no end)."""

_NUMERIC_HEADER, _POSITIVE, _NEGATIVE, _NAN, _INFINITE, _MINUS_INFINITE = 8, 0, 0x4000, 0xC000, 0xD000, 0xF000
_UNIX_SECONDS, _MICROSECONDS = 946_684_800, 1_000_000  # PostgreSQL counts from 2000
_UNIX_MICROSECONDS = _UNIX_SECONDS * _MICROSECONDS
_MOST, _LEAST = 2**63 - 1, -(2**63)
_ZERO, _NINE, _MINUS, _POINT, _COMMA, _OPENED, _CLOSED, _LETTER_A = 48, 57, 45, 46, 44, 40, 41, 97
_BAD = (-1, -1)
_NULL = (0, -1)
_ROOMS = (20, 0, 0, 0, 0, 36, 5, 21, 18)
_NUMERIC_ROOM = 12  # beside its digits: a sign, a carry, a point; or `-Infinity`
_TRUE = (116, 114, 117, 101)
_FALSE = (102, 97, 108, 115, 101)
_INFINITY = (73, 110, 102, 105, 110, 105, 116, 121)
_ENDLESS = (33, 105, 110, 102, 105, 110, 105, 116, 121)
_ENDLESS_PAST = (33, 45, 105, 110, 102, 105, 110, 105, 116, 121)
_NOT_A_NUMBER = (78, 97, 78)


class Rule(NamedTuple):
    """The reading of a column: `kind` is from INTEGER on; `scale`, a number of digits, is for INTEGER and ROUNDED."""

    kind: int
    scale: int = 0


class Fields(NamedTuple):
    """A column of a binary COPY: the bytes of all, and the places of its fields; length -1 is null."""

    content: UInt8s
    starts: Int32s
    lengths: Int32s


class _Field(NamedTuple):
    """One value that is not null."""

    content: UInt8s
    start: int
    length: int


class _Numeric(NamedTuple):
    """Groups of four decimal digits, the first of which is worth 10000 to the power of `weight`."""

    content: UInt8s
    start: int
    groups: int
    weight: int


def render(rule: Rule, fields: Fields) -> tuple[UInt8s, Int32s, Int32s]:
    """Return the texts of a column: their bytes, starts and lengths (-1 is null).

    Raises:
        ValueError: a field is no value of this type.
    """
    text = np.empty(room_for(rule, fields), dtype=np.uint8)
    begins, sizes = np.empty((2, len(fields.starts)), dtype=np.int32)
    if not _render((rule.kind, rule.scale), tuple(fields), text, begins, sizes):
        raise ValueError("a field is no value of its column's type")
    return text, begins, sizes


def room_for(rule: Rule, fields: Fields) -> int:
    """Return a number of bytes that the texts of a column have room in."""
    return _room((rule.kind, rule.scale), tuple(fields))


def read_numbers(kind: int, fields: Fields) -> tuple[Int64s, Bools]:
    """Return a column as numbers, and which of them are not null.

    Raises:
        ValueError: a field is no value of this type.
    """
    numbers, is_valid = np.empty(len(fields.starts), dtype=np.int64), np.empty(len(fields.starts), dtype=np.bool_)
    if not _read(kind, tuple(fields), numbers, is_valid):
        raise ValueError("a field is no value of its column's type")
    return numbers, is_valid


@compiled
def _room(of_rule: tuple[int, int], of_fields: tuple[Any, ...]) -> int:
    rule, fields = Rule(*of_rule), Fields(*of_fields)
    room = 0
    for row in range(len(fields.starts)):
        if fields.lengths[row] >= 0:
            room += _room_of(rule, _field(fields, row))
    return room


@inlined
def _field(fields: Fields, row: int) -> _Field:
    return _Field(fields.content, int(fields.starts[row]), int(fields.lengths[row]))


@inlined
def _room_of(rule: Rule, field: _Field) -> int:
    if rule.kind < NUMERIC or rule.kind > FINITE:
        return _ROOMS[rule.kind] + (rule.scale + 1 if rule.kind == INTEGER else 0)
    if field.length < _NUMERIC_HEADER:
        return _NUMERIC_ROOM
    weight = _signed16(_two(field.content, field.start + 2))
    fraction = rule.scale if rule.kind == ROUNDED else _two(field.content, field.start + 6)
    return _NUMERIC_ROOM + 4 * max(weight + 1, 1) + fraction


@compiled
def _render(of_rule: tuple[int, int], of_fields: tuple[Any, ...], text: UInt8s, begins: Int32s, sizes: Int32s) -> bool:
    """Fill in the texts; return whether every field is a value of its type."""
    rule, fields = Rule(*of_rule), Fields(*of_fields)
    at = 0
    for row in range(len(fields.starts)):
        begin, end = _NULL
        if fields.lengths[row] >= 0:
            field = _field(fields, row)
            if _room_of(rule, field) > len(text) - at:
                return False
            begin, end = _text(rule, field, text, at)
            if begin < 0:
                return False
        begins[row], sizes[row] = begin, end - begin
        at = max(at, end)
    return True


@inlined
def _text(rule: Rule, field: _Field, text: UInt8s, at: int) -> tuple[int, int]:
    """Write one text from `at` on; return its begin and end, `_NULL` for none, `_BAD` where the field is no value."""
    if rule.kind == INTEGER:
        return _integer(rule, field, text, at)
    if rule.kind <= FINITE:
        return _numeric(rule, field, text, at)
    if rule.kind == UUID:
        return _uuid(field, text, at)
    if rule.kind == BOOLEAN:
        return _boolean(field, text, at)
    if rule.kind == MOMENT:
        return _moment(field, text, at)
    return _place(field, text, at)


@inlined
def _integer(rule: Rule, field: _Field, text: UInt8s, at: int) -> tuple[int, int]:
    if field.length not in (2, 4, 8):
        return _BAD
    end = _signed(text, at, _whole(field))
    if rule.scale > 0:
        text[end] = _POINT
        for digit in range(rule.scale):
            text[end + 1 + digit] = _ZERO
        end += 1 + rule.scale
    return at, end


@inlined
def _numeric(rule: Rule, field: _Field, text: UInt8s, at: int) -> tuple[int, int]:
    if field.length < _NUMERIC_HEADER:
        return _BAD
    groups, sign = _two(field.content, field.start), _two(field.content, field.start + 4)
    if field.length != _NUMERIC_HEADER + 2 * groups:
        return _BAD
    if sign in (_NAN, _INFINITE, _MINUS_INFINITE):
        return _NULL if rule.kind == FINITE else _not_finite(sign, text, at)
    if sign not in (_POSITIVE, _NEGATIVE):
        return _BAD
    weight = _signed16(_two(field.content, field.start + 2))
    number = _Numeric(field.content, field.start + _NUMERIC_HEADER, groups, weight)
    begin, end = _digits(rule, number, _two(field.content, field.start + 6), text, at + 2)
    if sign == _NEGATIVE and not _is_zero(text, begin, end):
        begin -= 1
        text[begin] = _MINUS
    return begin, end


@inlined
def _digits(rule: Rule, number: _Numeric, scale: int, text: UInt8s, begin: int) -> tuple[int, int]:
    """Write a number without its sign; before `begin` there is room for a digit that is carried."""
    fraction = rule.scale if rule.kind == ROUNDED else scale
    power = max(4 * number.weight + 3, 0)
    while power > 0 and _digit(number, power) == 0:
        power -= 1
    end = begin
    while power >= -fraction:
        if power == -1:
            text[end] = _POINT
            end += 1
        text[end] = _ZERO + _digit(number, power)
        end += 1
        power -= 1
    if scale > fraction and _digit(number, -fraction - 1) >= 5:
        begin = _rounded_up(text, begin, end)
    if rule.kind >= TRIMMED and fraction > 0:
        end = _trimmed(text, end)
    return begin, end


@inlined
def _digit(number: _Numeric, power: int) -> int:
    """Return the decimal digit that is worth 10 to this power."""
    index = number.weight - (power >> 2)
    if index < 0 or index >= number.groups:
        return 0
    group = _two(number.content, number.start + 2 * index)
    place = power & 3
    if place == 3:
        group //= 1000
    elif place == 2:
        group //= 100
    elif place == 1:
        group //= 10
    return group % 10


@inlined
def _rounded_up(text: UInt8s, begin: int, end: int) -> int:
    """Add one to the last digit of a number; return its begin, one earlier where there is a digit more."""
    at = end - 1
    while at >= begin:
        if text[at] == _NINE:
            text[at] = _ZERO
        elif text[at] != _POINT:
            text[at] += 1
            return begin
        at -= 1
    text[begin - 1] = _ZERO + 1
    return begin - 1


@inlined
def _trimmed(text: UInt8s, end: int) -> int:
    """Return the end of a number with a fraction, without the zeros there."""
    while text[end - 1] == _ZERO:
        end -= 1
    return end - 1 if text[end - 1] == _POINT else end


@inlined
def _is_zero(text: UInt8s, begin: int, end: int) -> bool:
    at = begin
    while at < end and (text[at] == _ZERO or text[at] == _POINT):
        at += 1
    return at == end


@inlined
def _not_finite(sign: int, text: UInt8s, at: int) -> tuple[int, int]:
    begin = at
    if sign == _NAN:
        return begin, _write(text, at, _NOT_A_NUMBER)
    if sign == _MINUS_INFINITE:
        text[at] = _MINUS
        at += 1
    return begin, _write(text, at, _INFINITY)


@inlined
def _uuid(field: _Field, text: UInt8s, at: int) -> tuple[int, int]:
    if field.length != 16:
        return _BAD
    end = at
    for index in range(16):
        if index in (4, 6, 8, 10):
            text[end] = _MINUS
            end += 1
        byte = int(np.int64(field.content[field.start + index]))
        for half in (byte >> 4, byte & 15):
            text[end] = half + (_ZERO if half < 10 else _LETTER_A - 10)
            end += 1
    return at, end


@inlined
def _boolean(field: _Field, text: UInt8s, at: int) -> tuple[int, int]:
    if field.length != 1 or field.content[field.start] > 1:
        return _BAD
    return at, _write(text, at, _TRUE) if field.content[field.start] == 1 else _write(text, at, _FALSE)


@inlined
def _moment(field: _Field, text: UInt8s, at: int) -> tuple[int, int]:
    """Render microseconds since 1970, for which 64 bits are too few in the last years that PostgreSQL knows."""
    if field.length != 8:
        return _BAD
    since_2000 = _whole(field)
    if since_2000 == _MOST:
        return at, _write(text, at, _ENDLESS)
    if since_2000 == _LEAST:
        return at, _write(text, at, _ENDLESS_PAST)
    if since_2000 <= _MOST - _UNIX_MICROSECONDS:
        return at, _signed(text, at, since_2000 + _UNIX_MICROSECONDS)
    end = _signed(text, at, since_2000 // _MICROSECONDS + _UNIX_SECONDS)
    rest = since_2000 % _MICROSECONDS
    for index in range(6):
        text[end + 5 - index] = _ZERO + rest % 10
        rest //= 10
    return at, end + 6


@inlined
def _place(field: _Field, text: UInt8s, at: int) -> tuple[int, int]:
    if field.length != 6:
        return _BAD
    content, start = field.content, field.start
    text[at] = _OPENED
    end = _signed(text, at + 1, (_two(content, start) << 16) | _two(content, start + 2))
    text[end] = _COMMA
    end = _signed(text, end + 1, _two(content, start + 4))
    text[end] = _CLOSED
    return at, end + 1


@inlined
def _write(text: UInt8s, at: int, word: tuple[int, ...]) -> int:
    for letter in word:
        text[at] = letter
        at += 1
    return at


@inlined
def _signed(text: UInt8s, at: int, number: int) -> int:
    """Write a number from `at` on; return its end."""
    if number < 0:
        text[at] = _MINUS
        at += 1
        if number == _LEAST:  # 64 bits do not hold its amount
            at = _unsigned(text, at, _MOST // 10)
            text[at] = _ZERO + 8
            return at + 1
        number = -number
    return _unsigned(text, at, number)


@inlined
def _unsigned(text: UInt8s, at: int, number: int) -> int:
    end, rest = at + 1, number // 10
    while rest:
        end, rest = end + 1, rest // 10
    for index in range(end - at):
        text[end - 1 - index] = _ZERO + number % 10
        number //= 10
    return end


@inlined
def _whole(field: _Field) -> int:
    """Return the integer of 2, 4 or 8 bytes that a field is."""
    number = int(np.int8(field.content[field.start]))
    for index in range(1, field.length):
        number = (number << 8) | int(np.int64(field.content[field.start + index]))
    return number


@inlined
def _two(content: UInt8s, at: int) -> int:
    return int((np.int64(content[at]) << 8) | np.int64(content[at + 1]))


@inlined
def _signed16(number: int) -> int:
    return number - 0x10000 if number >= 0x8000 else number


@compiled
def _read(kind: int, of_fields: tuple[Any, ...], numbers: Int64s, is_valid: Bools) -> bool:
    """Fill in the numbers; return whether every field is a value of its type."""
    fields = Fields(*of_fields)
    for row in range(len(fields.starts)):
        field = _field(fields, row)
        numbers[row], is_valid[row] = 0, field.length >= 0
        if field.length < 0:
            continue
        if field.length != 8 and (kind == TIME or field.length not in (2, 4)):
            return False
        number = _whole(field)
        if kind == TIME:
            # Years that 64 bits do not hold are no window's: the last one ends before the year 10000.
            is_valid[row] = number != _LEAST and number <= _MOST - _UNIX_MICROSECONDS
            number = number + _UNIX_MICROSECONDS if is_valid[row] else 0
        numbers[row] = number
    return True
