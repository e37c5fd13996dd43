"""Salvage what can still be read of a batch with damaged records: record by record, each failure with its offsets.

Slow on purpose: plain Python, one record at a time. The reasons never hold payload.
"""

from collections.abc import Iterator
from typing import NamedTuple

from makewhole.kafka.log.batches import Batch

RecordHeaders = list[tuple[str, bytes | None]]

_CUT = "record length leaves the batch"
_MISPLACED = "record offset leaves the batch or does not ascend"
_LONGEST_VARINT_SHIFT = 63


class Undecodable(NamedTuple):
    """Offsets `[offset, end_offset)` of a partition whose records cannot be read, and why. Never holds payload."""

    partition: int
    offset: int
    end_offset: int
    reason: str


class Record(NamedTuple):
    """One record; timestamp in ms."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders


class Salvage(NamedTuple):
    """Readable records of a batch, offsets ascending, and the places of the others."""

    records: list[Record]
    undecodable: list[Undecodable]


def salvage(batch: Batch, data: bytes, partition: int) -> Salvage:
    """Read the uncompressed records of a batch one by one."""
    salvaged = Salvage([], [])
    last = batch.base_offset - 1
    for index, (record, reason) in enumerate(_walk(batch, data)):
        # In a dense batch every record has its place: one that claims another would leave its own unaccounted for.
        is_placed = record is not None and (not batch.is_dense or record.offset == batch.base_offset + index)
        if record is not None and is_placed and last < record.offset < batch.end_offset:
            salvaged.records.append(record)
            last = record.offset
            continue
        # In a compacted batch the place is only known to lie behind the last good record.
        at = batch.base_offset + index if batch.is_dense else last + 1
        end = batch.end_offset if reason == _CUT else at + 1
        salvaged.undecodable.append(Undecodable(partition, at, end, reason or _MISPLACED))
    return salvaged


def _walk(batch: Batch, data: bytes) -> Iterator[tuple[Record | None, str | None]]:
    """Yield each record, or why it cannot be read. A length that leaves the batch ends the walk."""
    position = 0
    for _ in range(batch.record_count):
        try:
            length, position = _varint(data, position)
        except (IndexError, ValueError):
            length = -1
        if length < 0 or position + length > len(data):
            yield None, _CUT
            return
        yield _record_or_reason(batch, data[position : position + length])
        position += length


def _record_or_reason(batch: Batch, body: bytes) -> tuple[Record | None, str | None]:
    try:
        return _record(batch, body), None
    except UnicodeDecodeError:
        return None, "header name is not UTF-8"
    except (IndexError, ValueError):
        return None, "record structure is damaged"


def _record(batch: Batch, body: bytes) -> Record:
    delta, position = _varint(body, 1)
    timestamp = batch.max_timestamp if batch.is_log_append_time else batch.base_timestamp + delta
    offset_delta, position = _varint(body, position)
    key, position = _bytes(body, position)
    value, position = _bytes(body, position)
    count, position = _varint(body, position)
    headers: RecordHeaders = []
    for _ in range(count):
        name, position = _bytes(body, position)
        content, position = _bytes(body, position)
        if name is None:
            raise ValueError("header without a name")
        headers.append((name.decode("utf-8"), content))
    if count < 0 or position != len(body) or not -(2**63) <= timestamp < 2**63:
        raise ValueError("length and content disagree")
    return Record(batch.base_offset + offset_delta, timestamp, key, value, headers)


def _bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = _varint(body, position)
    if length < 0:
        return None, position
    if position + length > len(body):
        raise ValueError("length leaves the record")
    return body[position : position + length], position + length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > _LONGEST_VARINT_SHIFT:
            raise ValueError("number too long")
