"""Find the wanted simple values in many Protobuf messages of one type, in one pass over their bytes.

Types come as tables of fields. A message with anything unusual does not match, and is decoded by others: a group, a
field twice that is wanted once, a text that is no UTF-8, a length that its message does not have.
Source: https://protobuf.dev/programming-guides/encoding/
"""

from typing import Any, NamedTuple

import numpy as np

from makewhole.native.arrays import Bools, Int32s, Int64s, UInt8s, UInt64s
from makewhole.native.compiled import compiled, inlined

VARINT, FIXED64, SIZED, _, _, FIXED32 = range(6)
"""Wire types."""
UNKNOWN, NUMBER, INT32, UINT32, UINT64, SINT32, SINT64, BOOLEAN, BITS64, BITS32, SIGNED32, TEXT, BYTES, MESSAGE = range(
    14
)
"""Kinds of fields. `NUMBER`: 64 bits with a sign; `SIGNED32`: of four bytes."""
MOST_NESTED = 64
MOST_ONCE = 62
_MOST_TAG_BYTES, _MOST_NUMBER = 5, 1 << 29
_LAST_SHIFT = 63
_INT = 32


class Messages(NamedTuple):
    """Messages by start and length in a content."""

    content: UInt8s
    starts: Int32s
    lengths: Int32s


class Types(NamedTuple):
    """Tables: of a type, where the fields of its numbers begin, and how many there are; of each field what it is, its
    wire type, whether it may be packed, the type of a message, its column, and the bit of what may be there once (-1).

    `implied`: columns that have a value where a message of a type is there, from `implied_from` to that of the next.
    `are_elements`: of each field, whether its values have rows of their own; `of_element`: the bits of what may be
    there once in each of these.
    """

    first: Int64s
    most: Int64s
    kinds: Int64s
    wires: Int64s
    is_packable: Bools
    inner: Int64s
    columns: Int64s
    once: Int64s
    implied: Int64s
    implied_from: Int64s
    are_elements: Bools
    of_element: Int64s

    def without_columns(self) -> "Types":
        """Return the same types with nothing wanted of them."""
        return self._replace(columns=np.full_like(self.columns, -1), implied_from=np.zeros_like(self.implied_from))


class ScannedMessages(NamedTuple):
    """By column and message: numbers (of floating-point ones their bits), and where the bytes of a value stand; a
    length of -1 is null. `matches`: by message, whether it was read. `counts`: by message that was read, how many
    elements it has."""

    numbers: Int64s
    starts: Int32s
    lengths: Int32s
    matches: Bools
    counts: Int64s


class DividedMessages(NamedTuple):
    """The messages that were read, and how many elements each has. `scanned`: their columns by message, and those of
    elements by element, one message's behind the other's."""

    rows: Int64s
    counts: Int64s
    scanned: ScannedMessages


def scan(messages: Messages, types: Types, columns: int) -> ScannedMessages:
    """Scan messages of the first type, which has so many columns."""
    count = len(messages.starts)
    return _scanned(messages, types, (columns, count), np.zeros(count, dtype=np.int64))


def scan_elements(messages: Messages, types: Types, columns: int) -> DividedMessages:
    """Scan messages whose type has elements: once to count these, and then for the columns."""
    counted = scan(messages, types.without_columns(), 0)
    rows = np.flatnonzero(counted.matches)
    counts = counted.counts[rows]
    own = Messages(messages.content, messages.starts[rows], messages.lengths[rows])
    room = (columns, max(len(rows), int(counts.sum())))
    return DividedMessages(rows, counts, _scanned(own, types, room, np.cumsum(counts) - counts))


def _scanned(messages: Messages, types: Types, room: tuple[int, int], first: Int64s) -> ScannedMessages:
    """Scan messages into so many columns and rows. `first`: by message, the row of its first element."""
    scanned = ScannedMessages(
        numbers=np.zeros(room, dtype=np.int64),
        starts=np.zeros(room, dtype=np.int32),
        lengths=np.full(room, -1, dtype=np.int32),
        matches=np.zeros(len(first), dtype=np.bool_),
        counts=np.zeros(len(first), dtype=np.int64),
    )
    stack, number = np.zeros((MOST_NESTED + 1, 3), dtype=np.int64), np.zeros(1, dtype=np.uint64)
    _scan(tuple(messages), tuple(types), tuple(scanned), first, stack, number)
    return scanned


@compiled
def _scan(
    spans: tuple[Any, ...],
    tables: tuple[Any, ...],
    room: tuple[Any, ...],
    first: Int64s,
    stack: Int64s,
    number: UInt64s,
) -> None:
    messages, types, scanned = Messages(*spans), Types(*tables), ScannedMessages(*room)
    for row in range(len(messages.starts)):
        start, length = messages.starts[row], messages.lengths[row]
        if start >= 0 and 0 <= length <= len(messages.content) - start:
            end = start + length
            scanned.matches[row] = _read(messages.content, start, end, types, scanned, row, first[row], stack, number)


@inlined
def _read(
    content: UInt8s,
    at: int,
    end: int,
    types: Types,
    scanned: ScannedMessages,
    row: int,
    first: int,
    stack: Int64s,
    number: UInt64s,
) -> bool:
    """Read a message; return whether it was read. `first`: the row of its first element; `stack`: the ends, types
    and rows of the messages around, and at its end the bits of what was there; `number`: room for one."""
    kind, depth, place = 0, 0, row
    stack[MOST_NESTED, 0] = 0
    _imply(types, kind, scanned, row, at)
    while at >= 0:
        while at == end and depth > 0:
            depth -= 1
            end, kind, place = int(stack[depth, 0]), int(stack[depth, 1]), int(stack[depth, 2])
        if at == end:
            return True
        at, field, wire = _tag(content, at, end, types, kind, number)
        start = at
        at = _value_end(content, at, end, wire, number)
        if at < 0 or field < 0:
            continue
        start = at - int(number[0]) if wire == SIZED else start
        if not _is_first(types, field, stack):
            return False
        own = _row_of(types, field, scanned, row, first, place, stack)
        if types.kinds[field] == MESSAGE:
            if depth == MOST_NESTED:
                return False
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = end, kind, place
            at, end, kind, place, depth = start, at, int(types.inner[field]), own, depth + 1
            _imply(types, kind, scanned, place, at)
        elif not _record(content, start, at, wire, types, field, scanned, own, number):
            return False
    return False


@inlined
def _row_of(types: Types, field: int, scanned: ScannedMessages, row: int, first: int, place: int, stack: Int64s) -> int:
    """Return the row that the values in a field go to: that of what is around it, or of the next element, in which
    nothing was there yet."""
    if not types.are_elements[field]:
        return place
    element = scanned.counts[row]
    scanned.counts[row] = element + 1
    stack[MOST_NESTED, 0] &= ~types.of_element[0]
    return int(first + element)


@inlined
def _tag(content: UInt8s, at: int, end: int, types: Types, kind: int, number: UInt64s) -> tuple[int, int, int]:
    """Read what stands before a value: return (place, field in the tables or -1, wire type); a place of -1: nothing."""
    start = at
    at = _varint(content, at, end, number)
    field_number, wire = int(number[0] >> np.uint64(3)), int(number[0] & np.uint64(7))
    if at < 0 or at - start > _MOST_TAG_BYTES or field_number <= 0 or field_number >= _MOST_NUMBER:
        return -1, -1, wire
    return at, _field(types, kind, field_number, wire), wire


@inlined
def _is_first(types: Types, field: int, stack: Int64s) -> bool:
    """Return whether this is no second one of what may be there once."""
    if types.once[field] < 0:
        return True
    bit = np.int64(1) << types.once[field]
    is_first = stack[MOST_NESTED, 0] & bit == 0
    stack[MOST_NESTED, 0] |= bit
    return bool(is_first)


@inlined
def _imply(types: Types, kind: int, scanned: ScannedMessages, row: int, at: int) -> None:
    """Give the columns of a message that have no presence their defaults."""
    for index in range(types.implied_from[kind], types.implied_from[kind + 1]):
        column = types.implied[index]
        scanned.numbers[column, row] = 0
        scanned.starts[column, row] = at
        scanned.lengths[column, row] = 0


@inlined
def _field(types: Types, kind: int, number: int, wire: int) -> int:
    """Return the place of a field in the tables; -1: it is unknown, or has another wire type."""
    if number > types.most[kind]:
        return -1
    field = types.first[kind] + number - 1
    if types.kinds[field] == UNKNOWN:
        return -1
    if wire != types.wires[field] and not (wire == SIZED and types.is_packable[field]):
        return -1
    return int(field)


@inlined
def _value_end(content: UInt8s, at: int, end: int, wire: int, number: UInt64s) -> int:
    """Return where a value ends; -1: it is none. `number` is a varint, or the size of what has one."""
    if at < 0 or wire == VARINT:
        return _varint(content, at, end, number) if at >= 0 else -1
    if wire == SIZED:
        at = _varint(content, at, end, number)
        if at < 0 or number[0] > np.uint64(end - at):
            return -1
        return at + int(number[0])
    size = 8 if wire == FIXED64 else 4 if wire == FIXED32 else -1
    if size < 0 or end - at < size:
        return -1
    bits = np.uint64(0)
    for index in range(size):
        bits |= np.uint64(content[at + index]) << np.uint64(8 * index)
    number[0] = bits
    return at + size


@inlined
def _record(
    content: UInt8s,
    start: int,
    end: int,
    wire: int,
    types: Types,
    field: int,
    scanned: ScannedMessages,
    row: int,
    number: UInt64s,
) -> bool:
    """Record a simple value in its column; return whether it is usual."""
    what, column = types.kinds[field], types.columns[field]
    if wire == SIZED and what != TEXT and what != BYTES:
        return _is_packed(content, start, end, types.wires[field], number)
    if what == TEXT and not _is_utf8(content, start, end):
        return False
    if what == UINT64 and number[0] >> np.uint64(_LAST_SHIFT) != 0:
        return False
    if column >= 0:
        scanned.numbers[column, row] = _as_number(what, number[0])
        scanned.starts[column, row] = start
        scanned.lengths[column, row] = end - start
    return True


@inlined
def _as_number(what: int, bits: np.uint64) -> np.int64:
    low = np.int64(bits & np.uint64(0xFFFFFFFF))
    if what in (INT32, SIGNED32):
        return (low ^ np.int64(1 << 31)) - np.int64(1 << 31)
    if what in (UINT32, BITS32):
        return low
    if what == SINT32:
        return (low >> 1) ^ -(low & 1)
    if what == SINT64:
        return np.int64(bits >> np.uint64(1)) ^ -np.int64(bits & np.uint64(1))
    if what == BOOLEAN:
        return np.int64(bits != 0)
    return np.int64(bits)


@inlined
def _is_packed(content: UInt8s, at: int, end: int, wire: int, number: UInt64s) -> bool:
    """Return whether bytes are values of a wire type, one behind the other."""
    while at < end:
        at = _value_end(content, at, end, wire, number)
        if at < 0:
            return False
    return True


@inlined
def _varint(content: UInt8s, at: int, end: int, number: UInt64s) -> int:
    """Read a number of at most 64 bits; return its end, -1 where there is none."""
    bits, shift = np.uint64(0), np.uint64(0)
    while at < end:
        byte = np.uint64(content[at])
        at += 1
        if shift == _LAST_SHIFT and byte > 1:
            return -1
        bits |= (byte & np.uint64(0x7F)) << shift
        if byte < 0x80:
            number[0] = bits
            return at
        shift += np.uint64(7)
    return -1


@inlined
def _is_utf8(content: UInt8s, at: int, end: int) -> bool:
    """Return whether bytes are UTF-8 (RFC 3629): no overlong form, no surrogate, nothing above U+10FFFF."""
    while at < end:
        lead = int(content[at])
        if lead < 0x80:
            at += 1
            continue
        more = 1 + (lead >= 0xE0) + (lead >= 0xF0)
        if lead < 0xC2 or lead > 0xF4 or end - at <= more:
            return False
        point = lead & (0x3F >> more)
        for index in range(at + 1, at + 1 + more):
            if content[index] & 0xC0 != 0x80:
                return False
            point = (point << 6) | (int(content[index]) & 0x3F)
        if (more == 2 and (point < 0x800 or 0xD800 <= point < 0xE000)) or (
            more == 3 and (point < 0x10000 or point > 0x10FFFF)
        ):
            return False
        at += 1 + more
    return True
