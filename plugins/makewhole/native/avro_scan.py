"""Find the wanted simple values in many Avro bodies of one schema, in one pass over their bytes.

The schema comes as a program of steps. A body that is not exactly what the program describes does not match: nothing is
guessed, and a bad body says nothing of the others.
Source: https://avro.apache.org/docs/1.12.0/specification/#binary-encoding
"""

from typing import Any, NamedTuple

import numpy as np

from makewhole.native.arrays import Bools, Int32s, Int64s, UInt8s
from makewhole.native.compiled import compiled, inlined

(
    END,
    BOOLEAN,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    BYTES,
    STRING,
    FIXED,
    ENUM,
    UNION,
    JUMP,
    BLOCKS,
    NEXT,
    ELEMENTS,
    NEXT_ELEMENT,
) = range(16)
"""Steps. `FIXED`: so many bytes. `ENUM`: an index below a number. `UNION`: an index, which chooses the next step in the
jumps from a place on. `BLOCKS`: the items of an array or map follow, up to `NEXT`; both name the step where it ends.
`ELEMENTS` and `NEXT_ELEMENT`: the same, of the array whose items have rows of their own."""
MOST_NESTED = 16
_MOST_INT = 2**31
_MOST_NUMBER_BYTES = 8
_LAST_SHIFT = 63


class Bodies(NamedTuple):
    """Bodies by start and length in a content."""

    content: UInt8s
    starts: Int32s
    lengths: Int32s


class AvroSteps(NamedTuple):
    """Steps: what each does, its two numbers, and the column that its value goes to (-1: none)."""

    steps: Int64s
    numbers: Int64s
    jumps_from: Int64s
    columns: Int64s
    jumps: Int64s


class ScannedBodies(NamedTuple):
    """By column and body: numbers (of a double or float its bits, of a boolean 0 or 1, of at most
    eight bytes the number that they are, the highest byte first, with a sign), and where the bytes of a value
    stand in the content; a length of -1 is null. `matches`: by body, whether it is what the program describes.
    `counts`: by body that matches, how many elements it has."""

    numbers: Int64s
    starts: Int32s
    lengths: Int32s
    matches: Bools
    counts: Int64s


class DividedBodies(NamedTuple):
    """The bodies that match, and how many elements each has. `scanned`: their columns by body, and those of elements by
    element, one body's behind the other's."""

    rows: Int64s
    counts: Int64s
    scanned: ScannedBodies


def scan(bodies: Bodies, program: AvroSteps, columns: int) -> ScannedBodies:
    """Scan the bodies by a program that has so many columns."""
    count = len(bodies.starts)
    return _scanned(bodies, program, (columns, count), np.zeros(count, dtype=np.int64))


def scan_elements(bodies: Bodies, program: AvroSteps, columns: int) -> DividedBodies:
    """Scan the bodies by a program that has elements: once to count these, and then for the columns."""
    counted = scan(bodies, program._replace(columns=np.full_like(program.columns, -1)), 0)
    rows = np.flatnonzero(counted.matches)
    counts = counted.counts[rows]
    own = Bodies(bodies.content, bodies.starts[rows], bodies.lengths[rows])
    room = (columns, max(len(rows), int(counts.sum())))
    return DividedBodies(rows, counts, _scanned(own, program, room, np.cumsum(counts) - counts))


def _scanned(bodies: Bodies, program: AvroSteps, room: tuple[int, int], first: Int64s) -> ScannedBodies:
    """Scan bodies into so many columns and rows. `first`: by body, the row of its first element."""
    scanned = ScannedBodies(
        numbers=np.zeros(room, dtype=np.int64),
        starts=np.zeros(room, dtype=np.int32),
        lengths=np.full(room, -1, dtype=np.int32),
        matches=np.zeros(len(first), dtype=np.bool_),
        counts=np.zeros(len(first), dtype=np.int64),
    )
    left, number = np.zeros(MOST_NESTED, dtype=np.int64), np.zeros(1, dtype=np.int64)
    _scan(tuple(bodies), tuple(program), tuple(scanned), first, left, number)
    return scanned


@compiled
def _scan(
    spans: tuple[Any, ...], code: tuple[Any, ...], room: tuple[Any, ...], first: Int64s, left: Int64s, number: Int64s
) -> None:
    bodies, program, scanned = Bodies(*spans), AvroSteps(*code), ScannedBodies(*room)
    for row in range(len(bodies.starts)):
        start, length = bodies.starts[row], bodies.lengths[row]
        if start >= 0 and 0 <= length <= len(bodies.content) - start:
            end = start + length
            past = _run(bodies.content, start, end, program, scanned, row, first[row], left, number)
            scanned.matches[row] = past == end


@inlined
def _run(
    content: UInt8s,
    at: int,
    end: int,
    program: AvroSteps,
    scanned: ScannedBodies,
    row: int,
    first: int,
    left: Int64s,
    number: Int64s,
) -> int:
    """Return where the body ends by the program; -1: it is not what that describes. `first`: the row of its first
    element; `left`: the items that are left of each array or map that is open; `number`: room for one."""
    step, depth, place, most = 0, -1, row, end - at
    while at >= 0:
        kind = program.steps[step]
        if kind == END:
            return at
        if kind <= ENUM:
            at = _simple(content, at, end, program, step, scanned, place, number)
            step += 1
        elif kind == UNION:
            at = _below(content, at, end, program.numbers[step], number)
            step = program.jumps[program.jumps_from[step] + number[0]] if at >= 0 else step
        elif kind == JUMP:
            step = program.numbers[step]
        else:
            item = program.jumps_from[step]
            at, step, depth = _next_item(content, at, end, program, step, depth, left, number)
            if kind >= ELEMENTS:
                at, place = _next_row(at, most, step == item, scanned, row, first)
    return -1


@inlined
def _next_row(at: int, most: int, is_item: bool, scanned: ScannedBodies, row: int, first: int) -> tuple[int, int]:
    """Return (place, the row of the next element), or behind their end that of the body. `most`: as many as a body has
    bytes; of elements without bytes there could be more than the memory holds."""
    if not is_item:
        return at, row
    element = scanned.counts[row]
    scanned.counts[row] = element + 1
    return (at if element < most else -1), first + element


@inlined
def _next_item(
    content: UInt8s, at: int, end: int, program: AvroSteps, step: int, depth: int, left: Int64s, number: Int64s
) -> tuple[int, int, int]:
    """Go on with the next item of an array or map, or behind its end: return (place, step, open arrays and maps)."""
    if program.steps[step] == BLOCKS or program.steps[step] == ELEMENTS:
        depth += 1
        left[depth] = 1
    left[depth] -= 1
    if left[depth] == 0:
        at = _block(content, at, end, number)
        left[depth] = number[0]
    if at >= 0 and left[depth] == 0:
        return at, int(program.numbers[step]), depth - 1
    return at, int(program.jumps_from[step]), depth


@inlined
def _block(content: UInt8s, at: int, end: int, number: Int64s) -> int:
    """Read the head of a block of items: their number, 0 at the end of all."""
    at = _long(content, at, end, number)
    if at >= 0 and number[0] < 0:
        count = -number[0]
        at = _long(content, at, end, number)
        if number[0] < 0:
            at = -1
        number[0] = count
    if at < 0 or number[0] < 0 or number[0] > end - at:
        return -1
    return at


@inlined
def _simple(
    content: UInt8s, at: int, end: int, program: AvroSteps, step: int, scanned: ScannedBodies, row: int, number: Int64s
) -> int:
    """Read a simple value, and record it in its column; return its end, -1 where it is none."""
    kind, start = program.steps[step], at
    if kind in (INT, LONG):
        at = _whole(content, at, end, kind == INT, number)
    elif kind == ENUM:
        at = _below(content, at, end, program.numbers[step], number)
    elif kind in (BYTES, STRING):
        start = _long(content, at, end, number)
        at = _text_end(content, start, end, kind == STRING, number)
    else:
        at = _fixed_end(content, at, end, kind, program.numbers[step], number)
    column = program.columns[step]
    if at >= 0 and column >= 0:
        if kind in (BYTES, FIXED):
            number[0] = _signed(content, start, at)
        scanned.numbers[column, row] = number[0]
        scanned.starts[column, row] = start
        scanned.lengths[column, row] = at - start
    return at


@inlined
def _whole(content: UInt8s, at: int, end: int, is_int: bool, number: Int64s) -> int:
    at = _long(content, at, end, number)
    if is_int and (number[0] < -_MOST_INT or number[0] >= _MOST_INT):
        return -1
    return at


@inlined
def _below(content: UInt8s, at: int, end: int, most: int, number: Int64s) -> int:
    """Read an index from 0 on, below `most`."""
    at = _long(content, at, end, number)
    if number[0] < 0 or number[0] >= most:
        return -1
    return at


@inlined
def _text_end(content: UInt8s, start: int, end: int, is_text: bool, number: Int64s) -> int:
    """Return the end of so many bytes, as were just read."""
    if start < 0 or number[0] < 0 or number[0] > end - start:
        return -1
    past = start + number[0]
    if is_text and not _is_utf8(content, start, past):
        return -1
    return int(past)


@inlined
def _fixed_end(content: UInt8s, at: int, end: int, kind: int, size: int, number: Int64s) -> int:
    """Read a boolean, or so many bytes: those of a floating-point number lowest first."""
    size = 1 if kind == BOOLEAN else size
    if end - at < size or (kind == BOOLEAN and content[at] > 1):
        return -1
    number[0] = 0
    if kind != FIXED:
        for index in range(size):
            number[0] |= np.int64(content[at + index]) << (8 * index)
    return at + size


@inlined
def _signed(content: UInt8s, start: int, end: int) -> int:
    """Return the number that at most eight bytes are, the highest first, with a sign; of more 0."""
    if start == end or end - start > _MOST_NUMBER_BYTES:
        return 0
    value = np.int64(0) - np.int64(content[start] >> 7)
    for index in range(start, end):
        value = (value << 8) | np.int64(content[index])
    return int(value)


@inlined
def _long(content: UInt8s, at: int, end: int, number: Int64s) -> int:
    """Read a zigzag number of at most 64 bits; return its end, -1 where there is none."""
    bits, shift = np.uint64(0), np.uint64(0)
    while at < end:
        byte = np.uint64(content[at])
        at += 1
        if shift == _LAST_SHIFT and byte > 1:
            return -1
        bits |= (byte & np.uint64(0x7F)) << shift
        if byte < 0x80:
            number[0] = np.int64(bits >> np.uint64(1)) ^ -np.int64(bits & np.uint64(1))
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
