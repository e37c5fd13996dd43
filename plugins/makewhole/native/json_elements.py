"""Find the elements of an array in many JSON objects, in one pass over their bytes.

The pass goes over every byte, so that nothing is found in what is no JSON. Left is what is not usual: a name at the top
or on the way to the array with an escape, or one of these names twice, a number of many digits, a value that is nested
very deep, and names that are watched for.
"""

from typing import Any, NamedTuple

import numpy as np

from makewhole.native.arrays import Int32s, Int64s, UInt8s
from makewhole.native.compiled import compiled, inlined

LEFT = -1
"""The number of elements of a value that is left."""
_MOST_NUMBER_BYTES, _MOST_EXPONENT_DIGITS = 40, 3
_QUOTE, _ESCAPE, _SPACE, _COMMA, _COLON, _MINUS, _PLUS, _POINT, _ZERO = b'"\\ ,:-+.0'
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = b"{}[]"
_TO_CLOSING = _CLOSE_OBJECT - _OPEN_OBJECT
_N, _T, _F, _U, _LOWER_E, _UPPER_E = b"ntfueE"
_WORDS = np.frombuffer(b"nulltruefalse", dtype=np.uint8)
_SPACES = np.isin(np.arange(256), np.frombuffer(b" \t\n\r", dtype=np.uint8))
_ESCAPED = np.isin(np.arange(256), np.frombuffer(b'"\\/bfnrt', dtype=np.uint8))
_HEXADECIMAL = np.isin(np.arange(256), np.frombuffer(b"0123456789abcdefABCDEF", dtype=np.uint8))
_HEXADECIMAL_DIGITS = 4
_NOWHERE = (-1, -1)


class JsonValues(NamedTuple):
    """Values by start and length in a content, which is UTF-8 in each; length -1 is null."""

    content: UInt8s
    starts: Int32s
    lengths: Int32s


class Division(NamedTuple):
    """The names of a division, name `i` being `text[edges[i]:edges[i + 1]]`. `path`: those that lead to the array.
    `wanted`: of the members at the top that go with each element, the first of the path among them. A value is left
    that has all of a set of `watched` names at its top, the sets by bits."""

    path: UInt8s
    path_edges: Int64s
    wanted: UInt8s
    wanted_edges: Int64s
    watched: UInt8s
    watched_edges: Int64s
    watched_sets: Int64s


class ElementPlaces(NamedTuple):
    """By value: the number of its elements (`LEFT`: it is left), where its array begins and ends, and so many wanted
    members in the order of the text. By element, one behind the other: where it begins and ends."""

    counts: Int64s
    arrays: Int32s
    members: Int32s
    member_counts: Int64s
    elements: Int32s


def find_elements(values: JsonValues, division: Division, deepest: int) -> ElementPlaces:
    """Find the elements of values that are usual. `deepest`: the most brackets that are open at a time."""
    count, wanted = len(values.starts), len(division.wanted_edges) - 1
    places = ElementPlaces(
        counts=np.full(count, LEFT, dtype=np.int64),
        arrays=np.empty((count, 2), dtype=np.int32),
        members=np.empty((count, wanted, 2), dtype=np.int32),
        member_counts=np.zeros(count, dtype=np.int64),
        elements=np.empty((_most_elements(*values), 2), dtype=np.int32),
    )
    element_count = _find(tuple(values), tuple(division), tuple(places), np.empty(deepest - 1, dtype=np.uint8))
    return places._replace(elements=places.elements[:element_count])


@compiled
def _most_elements(content: UInt8s, starts: Int32s, lengths: Int32s) -> int:
    """Return a number that no array of elements exceeds: each but the first of a value has a comma before it."""
    count = 0
    for row in range(len(starts)):
        start, length = starts[row], lengths[row]
        if start < 0 or length < 0 or length > len(content) - start:
            continue
        count += 1
        for at in range(start, start + length):
            count += content[at] == _COMMA
    return count


@compiled
def _find(spans: tuple[Any, ...], asked: tuple[Any, ...], room: tuple[Any, ...], open_brackets: UInt8s) -> int:
    """Find the places in every value, and return the number of elements."""
    values, names, places = JsonValues(*spans), Division(*asked), ElementPlaces(*room)
    first = 0
    for row in range(len(values.starts)):
        start, length = values.starts[row], values.lengths[row]
        if start < 0 or length < 0 or length > len(values.content) - start:
            continue
        past = _find_places(values.content, start, start + length, names, places, row, first, open_brackets)
        if past >= 0:
            places.counts[row] = past - first
            first = past
    return first


@inlined
def _find_places(
    content: UInt8s,
    at: int,
    end: int,
    names: Division,
    places: ElementPlaces,
    row: int,
    first: int,
    open_brackets: UInt8s,
) -> int:
    """Find the places of the value at `[at, end)`, and return the number behind its last element; -1: it is left."""
    at, past = _find_members(content, at, end, names, places, row, open_brackets)
    for level in range(1, len(names.path_edges) - 1):
        at, past = _find_member(content, at, past, names.path, names.path_edges, level, open_brackets)
    if at < 0 or content[at] != _OPEN_ARRAY:
        return -1
    places.arrays[row, 0], places.arrays[row, 1] = at, past
    return _find_elements(content, at, past, places, first, open_brackets)


@inlined
def _find_members(
    content: UInt8s, at: int, end: int, names: Division, places: ElementPlaces, row: int, open_brackets: UInt8s
) -> tuple[int, int]:
    """Note the wanted members of a value, and return where the one on the way to the array has its own (-1: left)."""
    value_at, past, wanted, watched = -1, -1, 0, 0
    at, is_last = _first_member(content, _skip_spaces(content, at, end), end), False
    while not is_last:
        name_end, start, value_end = _member(content, at, end, open_brackets)
        if value_end < 0:
            return _NOWHERE
        number = _number_of(content, at + 1, name_end - 1, names.wanted, names.wanted_edges)
        if number >= 0:
            member = places.member_counts[row]
            if wanted >> number & 1:
                return _NOWHERE
            wanted |= 1 << number
            places.members[row, member, 0], places.members[row, member, 1] = at, value_end
            places.member_counts[row] = member + 1
        if _is_name(content, at + 1, name_end - 1, names.path, names.path_edges, 0):
            value_at, past = start, value_end
        number = _number_of(content, at + 1, name_end - 1, names.watched, names.watched_edges)
        watched |= 0 if number < 0 else 1 << number
        at, is_last = _next_member(content, value_end, end)
    is_whole = at >= 0 and _skip_spaces(content, at, end) == end
    return (value_at, past) if is_whole and not _has_set(watched, names.watched_sets) else _NOWHERE


@inlined
def _has_set(names: int, sets: Int64s) -> bool:
    """Return whether all names of a set are there."""
    has_set = False
    for number in range(len(sets)):
        has_set |= names & sets[number] == sets[number]
    return has_set


@inlined
def _find_member(
    content: UInt8s, at: int, end: int, text: UInt8s, edges: Int64s, level: int, open_brackets: UInt8s
) -> tuple[int, int]:
    """Return where the object at `[at, end)` has the value of the name; -1: it has none, or two, or is no object."""
    value_at, past, is_last = -1, -1, False
    at = _first_member(content, at, end)
    while not is_last:
        name_end, start, value_end = _member(content, at, end, open_brackets)
        if value_end < 0:
            return _NOWHERE
        if _is_name(content, at + 1, name_end - 1, text, edges, level):
            if value_at >= 0:
                return _NOWHERE
            value_at, past = start, value_end
        at, is_last = _next_member(content, value_end, end)
    return (value_at, past) if at >= 0 else _NOWHERE


@inlined
def _first_member(content: UInt8s, at: int, end: int) -> int:
    """Return where the first member of the object at `at` begins; -1: it is no object."""
    return -1 if at < 0 or at >= end or content[at] != _OPEN_OBJECT else _skip_spaces(content, at + 1, end)


@inlined
def _member(content: UInt8s, at: int, end: int, open_brackets: UInt8s) -> tuple[int, int, int]:
    """Return where the name of the member at `at` ends, and where its value begins and ends; -1: it is none, or its
    name has an escape."""
    name_end = _plain_text_end(content, at, end)
    start = _skip_colon(content, name_end, end)
    return name_end, start, _value_end(content, start, end, open_brackets)


@inlined
def _next_member(content: UInt8s, at: int, end: int) -> tuple[int, bool]:
    """Return where the next member begins behind the value that ends at `at`, or where the object ends, and whether it
    does; -1: neither."""
    at = _skip_spaces(content, at, end)
    if at < end and content[at] == _COMMA:
        return _skip_spaces(content, at + 1, end), False
    return (at + 1 if at < end and content[at] == _CLOSE_OBJECT else -1), True


@inlined
def _find_elements(
    content: UInt8s, at: int, end: int, places: ElementPlaces, number: int, open_brackets: UInt8s
) -> int:
    """Find the elements of the array at `[at, end)`, which is JSON, and return the number behind the last one."""
    at = _skip_spaces(content, at + 1, end)
    while at < end and content[at] != _CLOSE_ARRAY:
        past = _value_end(content, at, end, open_brackets)
        places.elements[number, 0], places.elements[number, 1] = at, past
        number += 1
        at = _skip_spaces(content, past, end)
        if content[at] == _COMMA:
            at = _skip_spaces(content, at + 1, end)
    return number


@inlined
def _number_of(content: UInt8s, at: int, end: int, text: UInt8s, edges: Int64s) -> int:
    """Return which of the names stands at `[at, end)`; -1: none."""
    for number in range(len(edges) - 1):
        if _is_name(content, at, end, text, edges, number):
            return number
    return -1


@inlined
def _is_name(content: UInt8s, at: int, end: int, text: UInt8s, edges: Int64s, number: int) -> bool:
    first, is_same = int(edges[number]), bool(end - at == edges[number + 1] - edges[number])
    index = 0
    while is_same and index < end - at:
        is_same = bool(content[at + index] == text[first + index])
        index += 1
    return is_same


# JSON


@inlined
def _value_end(content: UInt8s, at: int, end: int, open_brackets: UInt8s) -> int:
    """Return the end of the value that begins at `at`, whatever it is; -1: it is none, or left."""
    depth, is_inside = 0, True
    while is_inside:
        at, is_open = _begin_value(content, at, end, open_brackets, depth)
        depth += is_open
        if not is_open:
            at, depth = _end_values(content, at, end, open_brackets, depth)
        is_inside = at >= 0 and depth > 0
    return at


@inlined
def _begin_value(content: UInt8s, at: int, end: int, open_brackets: UInt8s, depth: int) -> tuple[int, bool]:
    """Return (where the first value in it begins, True) of an object or array, or (its end, False) of any other value
    and of those that are empty."""
    if at < 0 or at >= end or (content[at] != _OPEN_OBJECT and content[at] != _OPEN_ARRAY):
        return _scalar_end(content, at, end), False
    if depth == len(open_brackets):
        return -1, False
    byte = content[at]
    at = _skip_spaces(content, at + 1, end)
    if at < end and content[at] == byte + _TO_CLOSING:
        return at + 1, False
    open_brackets[depth] = byte
    return _skip_name(content, at, end, byte), True


@inlined
def _end_values(content: UInt8s, at: int, end: int, open_brackets: UInt8s, depth: int) -> tuple[int, int]:
    """End every object and array that the value which ends at `at` is the last of. Return where the next value begins,
    or the outermost one ends, and how many are open."""
    while at >= 0 and depth > 0:
        bracket, at = open_brackets[depth - 1], _skip_spaces(content, at, end)
        if at < end and content[at] == _COMMA:
            return _skip_name(content, _skip_spaces(content, at + 1, end), end, bracket), depth
        at = at + 1 if at < end and content[at] == bracket + _TO_CLOSING else -1
        depth -= 1
    return at, depth


@inlined
def _skip_name(content: UInt8s, at: int, end: int, bracket: int) -> int:
    """Return where the value begins behind the name that is at `at` in an object; in an array there is none."""
    return _skip_colon(content, _text_end(content, at, end), end) if bracket == _OPEN_OBJECT else at


@inlined
def _skip_colon(content: UInt8s, at: int, end: int) -> int:
    at = end if at < 0 else _skip_spaces(content, at, end)
    return -1 if at >= end or content[at] != _COLON else _skip_spaces(content, at + 1, end)


@inlined
def _skip_spaces(content: UInt8s, at: int, end: int) -> int:
    while at < end and _SPACES[content[at]]:
        at += 1
    return at


@inlined
def _scalar_end(content: UInt8s, at: int, end: int) -> int:
    if at < 0 or at >= end:
        return -1
    byte = content[at]
    if byte == _QUOTE:
        return _text_end(content, at, end)
    if byte == _N:
        return _skip_word(content, at, end, 0, 4)
    if byte == _T:
        return _skip_word(content, at, end, 4, 8)
    if byte == _F:
        return _skip_word(content, at, end, 8, 13)
    return _number_end(content, at, end)


@inlined
def _skip_word(content: UInt8s, at: int, end: int, first: int, past: int) -> int:
    if end - at < past - first:
        return -1
    for index in range(past - first):
        if content[at + index] != _WORDS[first + index]:
            return -1
    return at + past - first


@inlined
def _text_end(content: UInt8s, at: int, end: int) -> int:
    """Return the position behind the string that begins at `at`."""
    if at < 0 or at >= end or content[at] != _QUOTE:
        return -1
    at += 1
    while at < end:
        byte = content[at]
        at += 1
        if byte == _QUOTE:
            return at
        if byte < _SPACE:
            return -1
        if byte == _ESCAPE:
            at = _escape_end(content, at, end)
    return -1


@inlined
def _escape_end(content: UInt8s, at: int, end: int) -> int:
    """Return the position behind the escape whose backslash is before `at`; `end`: it is none."""
    if at >= end or content[at] != _U:
        return at + 1 if at < end and _ESCAPED[content[at]] else end
    past = at + 1 + _HEXADECIMAL_DIGITS
    if past > end:
        return end
    for index in range(at + 1, past):
        if not _HEXADECIMAL[content[index]]:
            return end
    return past


@inlined
def _plain_text_end(content: UInt8s, at: int, end: int) -> int:
    """Do as `_text_end` for a string without escapes."""
    past = _text_end(content, at, end)
    for index in range(at, past):
        if content[index] == _ESCAPE:
            return -1
    return past


@inlined
def _number_end(content: UInt8s, at: int, end: int) -> int:
    first = at
    at += content[at] == _MINUS
    whole, at = at, _digits_end(content, at, end)
    if at == whole or (content[whole] == _ZERO and at - whole > 1):
        return -1
    if at < end and content[at] == _POINT:
        fraction, at = at + 1, _digits_end(content, at + 1, end)
        if at == fraction:
            return -1
    if at < end and (content[at] == _LOWER_E or content[at] == _UPPER_E):
        at += 1
        at += at < end and (content[at] == _PLUS or content[at] == _MINUS)
        exponent, at = at, _digits_end(content, at, end)
        if at == exponent or at - exponent > _MOST_EXPONENT_DIGITS:
            return -1
    return at if at - first <= _MOST_NUMBER_BYTES else -1


@inlined
def _digits_end(content: UInt8s, at: int, end: int) -> int:
    while at < end and (content[at] ^ _ZERO) < 10:
        at += 1
    return at
