"""Where the records of batches stand in their joined bytes.

A batch has no index of its records: each one's length, a zigzag number, says where the next begins (Kafka
documentation, "Record"). So the batches of a group are walked side by side, one record of each at a time, and a batch
alone in plain Python where too few are left to pay for it. Lengths that do not fill their batch exactly are noted, not
guessed around.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from makewhole.compute.words import Bools, Bytes, Longs

_SMALLEST_RECORD_BYTES = 7
_FEWEST_SIDE_BY_SIDE = 16


def _steps() -> npt.NDArray[np.int64]:
    """By the first two bytes of a record (little-endian): how far it is to the next; 0 where they do not tell.

    They do not tell lengths of 8 KiB and more, and there is no next behind a negative length.
    """
    both = np.arange(1 << 16)
    first, second = both & 0xFF, both >> 8
    one, two = first >> 1, (first & 0x7F | second << 7) >> 1
    steps = np.where(first < 0x80, one + 1, two + 2)
    return np.where((first & 1 == 1) | ((first >= 0x80) & (second >= 0x80)), 0, steps).astype(np.int64)


_STEPS = _steps()


def record_places(text: Bytes, begins: Longs, ends: Longs, counts: Longs) -> tuple[Longs, Bools]:
    """Where each record's length stands, batch after batch, and which batches their records fill exactly.

    `counts[i]` records are to stand in `text[begins[i]:ends[i]]`; those of a batch that they do not fill are left out.
    A batch without any does not count as filled. `text` goes on for a few bytes behind the last batch.
    """
    is_possible = (counts > 0) & (counts <= (ends - begins) // _SMALLEST_RECORD_BYTES)
    counts = np.where(is_possible, counts, 0)
    firsts = np.cumsum(counts) - counts
    places = np.empty(int(counts.sum()), dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    reached, cursor = _side_by_side(text, begins[order], counts[order], firsts[order], places)
    fits = np.zeros(len(counts), dtype=np.bool_)
    for batch, stopped in zip(order.tolist(), cursor.tolist(), strict=True):
        begin, end, count = int(begins[batch]), int(ends[batch]), int(counts[batch])
        own = places[firsts[batch] : firsts[batch] + count]
        fits[batch] = 0 < count <= reached and stopped == end and own[-1] < end  # else it had stopped at its end early
        if count and not fits[batch] and (found := _alone(text, begin, end, count)) is not None:
            fits[batch] = True
            own[:] = found
    return (places if fits.all() else places[np.repeat(fits, counts)]), fits


def _side_by_side(text: Bytes, begins: Longs, counts: Longs, firsts: Longs, places: Longs) -> tuple[int, Longs]:
    """Walk lanes, longest first, until too few are left.

    Returns how many records of each lane are placed at most, and where each stopped. A lane that meets a length which
    two bytes do not tell stays where it is.
    """
    pairs: npt.NDArray[np.uint16] = np.ndarray((len(text) - 1,), dtype="<u2", buffer=text, strides=(1,))
    steps, cursor, reached = _STEPS.take, begins.copy(), 0
    for width, height in _blocks(counts):
        block = np.empty((height + 1, width), dtype=np.int64)
        at = block[0]
        at[:] = cursor[:width]
        try:
            for following in block[1:]:
                np.add(at, steps(pairs[at]), out=following)
                at = following
        except IndexError:  # a lane has left the text
            return 0, cursor
        cursor[:width] = at
        places[firsts[:width, None] + np.arange(reached, reached + height)] = block[:-1].T
        reached += height
    return reached, cursor


def _blocks(counts: Longs) -> Iterator[tuple[int, int]]:
    """(lanes, records of each) to walk in turn, for counts in falling order."""
    done = 0
    remaining = len(counts)
    heights, endings = np.unique(counts, return_counts=True)
    for height, ending in zip(heights.tolist(), endings.tolist(), strict=True):
        if remaining < _FEWEST_SIDE_BY_SIDE:
            return
        if height > done:
            yield remaining, height - done
        done, remaining = height, remaining - ending


def _alone(text: Bytes, position: int, end: int, count: int) -> list[int] | None:
    """The places of one batch's records; None when they do not fill it."""
    places: list[int] = []
    note: Any = places.append
    try:
        for _ in range(count):
            note(position)
            byte = text[position]
            position += 1
            if byte & 1 or position > end:  # zigzag: a negative length
                return None
            if byte < 0x80:
                position += byte >> 1
                continue
            value, shift = byte & 0x7F, 7
            while byte >= 0x80:
                byte = text[position]
                position += 1
                value |= (byte & 0x7F) << shift
                shift += 7
            position += value >> 1
    except IndexError:
        return None
    return places if position == end else None
