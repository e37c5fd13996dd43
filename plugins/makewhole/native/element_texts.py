"""Write each element of many JSON objects with the text around its array: the object, with the element in its place."""

from typing import Any, NamedTuple

import numpy as np

from makewhole.native.arrays import Int32s, UInt8s
from makewhole.native.compiled import compiled, inlined
from makewhole.native.json_elements import ElementPlaces

_OPEN_OBJECT, _CLOSE_OBJECT, _COMMA = b"{},"


class ElementTexts(NamedTuple):
    """Texts, one behind the other: `content[edges[i]:edges[i + 1]]` is text `i`."""

    content: UInt8s
    edges: Int32s


def size_of_texts(places: ElementPlaces) -> int:
    """Return the size of the texts of all elements in bytes."""
    return _size(tuple(places))


def write_texts(content: UInt8s, places: ElementPlaces) -> ElementTexts:
    """Write the texts of all elements, of less than 2 GiB."""
    written = np.empty(size_of_texts(places), dtype=np.uint8)
    edges = np.zeros(len(places.elements) + 1, dtype=np.int32)
    _write(content, tuple(places), written, edges)
    return ElementTexts(written, edges)


@compiled
def _size(places: tuple[Any, ...]) -> int:
    counts, arrays, members, member_counts, elements = places
    size = number = 0
    for row in range(len(counts)):
        around = arrays[row, 0] - arrays[row, 1] + 1  # the braces, and a comma less than there are members
        for member in range(member_counts[row]):
            around += members[row, member, 1] - members[row, member, 0] + 1
        for _ in range(counts[row]):
            size += around + elements[number, 1] - elements[number, 0]
            number += 1
    return size


@compiled
def _write(content: UInt8s, places: tuple[Any, ...], written: UInt8s, edges: Int32s) -> None:
    counts, arrays, members, member_counts, elements = places
    at = number = 0
    for row in range(len(counts)):
        first, past = arrays[row, 0], arrays[row, 1]
        for _ in range(counts[row]):
            written[at] = _OPEN_OBJECT
            at += 1
            for member in range(member_counts[row]):
                start, end = members[row, member, 0], members[row, member, 1]
                if member > 0:
                    written[at] = _COMMA
                    at += 1
                if start < first and end >= past:
                    at = _copy(content, start, first, written, at)
                    at = _copy(content, elements[number, 0], elements[number, 1], written, at)
                    start = past
                at = _copy(content, start, end, written, at)
            written[at] = _CLOSE_OBJECT
            at += 1
            number += 1
            edges[number] = at


@inlined
def _copy(content: UInt8s, start: int, end: int, written: UInt8s, at: int) -> int:
    for index in range(end - start):
        written[at + index] = content[start + index]
    return at + end - start
