"""Find every field in the records of batches (Kafka documentation, "Record"), in one pass over their bytes.

A batch has no index of its records: each one's length, a zigzag number, says where the next begins. Nothing is read
behind the end of a record, and no record reaches behind the end of its batch, whatever its numbers say. A place of -1
says that the walk cannot continue, and every step returns it.
"""

from typing import Any, NamedTuple

import numpy as np

from makewhole.native.arrays import Bools, Int32s, Int64s, UInt8s
from makewhole.native.compiled import compiled, inlined

SMALLEST_RECORD_BYTES = 7
_LONGEST_NUMBER_SHIFT = 63
_MOST, _LEAST = 2**63 - 1, -(2**63)
_NO_NUMBER = (0, -1)
_NO_BYTES = (0, -1, -1)


class Batches(NamedTuple):
    """Batches of a text, one after the other. `counts[i]` records are to stand in `text[begins[i]:ends[i]]`.

    Times are in ms; `has_own_time` says that the time of a batch holds for its records, whatever theirs is.
    """

    text: UInt8s
    begins: Int64s
    ends: Int64s
    counts: Int64s
    base_offsets: Int64s
    last_offset_deltas: Int64s
    times: Int64s
    has_own_time: Bools


class Records(NamedTuple):
    """Columns by record: offset, time in ms, place of key and value (length -1 is null), start and number of the
    headers."""

    offsets: Int64s
    times: Int64s
    key_starts: Int32s
    key_lengths: Int32s
    value_starts: Int32s
    value_lengths: Int32s
    header_starts: Int32s
    header_counts: Int32s

    @classmethod
    def with_room_for(cls, records: int) -> "Records":
        """Return columns with room for so many."""
        longs = np.empty((2, records), dtype=np.int64)
        return cls(*longs, *np.empty((len(cls._fields) - len(longs), records), dtype=np.int32))

    def first(self, records: int) -> "Records":
        """Return the first so many."""
        columns: Any = (column[:records] for column in self)
        return Records(*columns)


class HeaderColumns(NamedTuple):
    """Columns by header, record after record: place of name and value; length -1 of a value is null."""

    name_starts: Int32s
    name_lengths: Int32s
    value_starts: Int32s
    value_lengths: Int32s

    @classmethod
    def with_room_for(cls, headers: int) -> "HeaderColumns":
        """Return columns with room for so many."""
        return cls(*np.empty((len(cls._fields), headers), dtype=np.int32))


def walk_records(batches: Batches, records: Records, fits: Bools) -> int:
    """Fill `records`, and note in `fits` which batches are sound and exactly filled. Returns the number of records.

    A batch without records counts as not filled. `records` has room for those of all batches that can be filled.
    """
    return _walk(tuple(batches), tuple(records), fits)


def walk_headers(text: UInt8s, records: Records, headers: HeaderColumns) -> None:
    """Fill `headers` with those of records that were found to be sound. There is room for all."""
    _walk_headers(text, tuple(records), tuple(headers))


@compiled
def _walk(of_batches: tuple[Any, ...], of_records: tuple[Any, ...], fits: Bools) -> int:
    batches, records = Batches(*of_batches), Records(*of_records)
    count = 0
    for batch in range(len(batches.begins)):
        fits[batch] = _fills(batches, batch, records, count)
        if fits[batch]:
            count += batches.counts[batch]
    return count


@inlined
def _fills(batches: Batches, batch: int, records: Records, row: int) -> bool:
    """Return whether the records of a batch are sound and fill it; they are noted from `row` on."""
    at, end, count = int(batches.begins[batch]), int(batches.ends[batch]), batches.counts[batch]
    if at < 0 or at > end or end > len(batches.text) or count <= 0 or count > len(records.offsets) - row:
        return False
    delta = -1
    for number in range(count):
        delta, at = _record(batches, batch, at, delta, records, row + number)
        if at < 0:
            return False
    return at == end


@inlined
def _record(batches: Batches, batch: int, at: int, delta: int, records: Records, row: int) -> tuple[int, int]:
    """Return (offset delta, end) of the record at `at`; offsets lie in their batch and ascend from `delta`."""
    text, limit = batches.text, batches.ends[batch]
    length, at = _number(text, at, limit)
    if at < 0 or length < 0 or length > limit - at:
        return _NO_NUMBER
    end = at + length
    age, at = _number(text, at + 1, end)  # behind the attributes: unused
    offset_delta, at = _number(text, at, end)
    records.key_starts[row], records.key_lengths[row], at = _bytes(text, at, end)
    records.value_starts[row], records.value_lengths[row], at = _bytes(text, at, end)
    headers, at = _number(text, at, end)
    if _behind_headers(text, at, end, headers) != end:
        return _NO_NUMBER
    if offset_delta <= delta or offset_delta > batches.last_offset_deltas[batch]:
        return _NO_NUMBER
    time = batches.times[batch]
    if not batches.has_own_time[batch]:
        if age > _MOST - max(time, 0) or age < _LEAST - min(time, 0):
            return _NO_NUMBER
        time += age
    records.offsets[row] = batches.base_offsets[batch] + offset_delta
    records.times[row] = time
    records.header_starts[row], records.header_counts[row] = at, headers
    return offset_delta, end


@inlined
def _behind_headers(text: UInt8s, at: int, end: int, count: int) -> int:
    if at < 0 or count < 0:
        return -1
    for _ in range(count):
        _, length, at = _bytes(text, at, end)
        if length < 0:
            return -1
        _, _, at = _bytes(text, at, end)
        if at < 0:
            return -1
    return at


@inlined
def _bytes(text: UInt8s, at: int, end: int) -> tuple[int, int, int]:
    """Return (start, length, end) of the byte string whose length stands at `at`."""
    length, at = _number(text, at, end)
    if at < 0 or length > end - at:
        return _NO_BYTES
    return (at, length, at + length) if length >= 0 else (at, -1, at)


@inlined
def _number(text: UInt8s, at: int, end: int) -> tuple[int, int]:
    """Return (value, end) of the zigzag number that begins at `at`, of at most 64 bits."""
    value = np.uint64(0)
    for shift in range(0, _LONGEST_NUMBER_SHIFT + 1, 7):
        if at < 0 or at >= end:
            return _NO_NUMBER
        byte = np.uint64(text[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << np.uint64(shift)
        if byte < 0x80:
            if shift == _LONGEST_NUMBER_SHIFT and byte > 1:
                break
            return int(np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1))), at
    return _NO_NUMBER


@compiled
def _walk_headers(text: UInt8s, of_records: tuple[Any, ...], of_headers: tuple[Any, ...]) -> None:
    records, headers = Records(*of_records), HeaderColumns(*of_headers)
    header = 0
    for row in range(len(records.header_counts)):
        at = records.header_starts[row]
        for _ in range(records.header_counts[row]):
            headers.name_starts[header], headers.name_lengths[header], at = _bytes(text, at, len(text))
            headers.value_starts[header], headers.value_lengths[header], at = _bytes(text, at, len(text))
            header += 1
