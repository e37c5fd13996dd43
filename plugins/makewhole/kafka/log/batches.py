"""Parse the headers of record batches: 61 bytes, big-endian, magic 2.

Source: Kafka documentation, "Record Batch". A page of fetched bytes is a run of whole batches; the last may be cut off.
The checksum (CRC-32C) covers everything behind itself: not the offsets, the length and the leader epoch before it.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch

from makewhole.kafka.sequences.numbering import sequence_after

_HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = _HEADER.size
_LENGTH = struct.Struct(">qi")
_CODEC = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_DELETE_HORIZON = 0x40
_NO_TIMESTAMP = -1
_MARKER = struct.Struct(">hh")
ABORT_MARKER, COMMIT_MARKER = 0, 1
_MAGIC = 2
_TOO_SHORT = -1
_MAGIC_AT = 16
_CRC_COVERS_FROM = 21


class Batch(NamedTuple):
    """A batch header, with the place of the batch in its page (`start`, `end` in bytes)."""

    base_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    start: int
    end: int

    @property
    def end_offset(self) -> int:
        """First offset behind the batch, compacted-away records counted."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & _CODEC

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def first_timestamp(self) -> int:
        """The time of the first record, ms of the epoch, as far as the header has it, and else the newest of them.

        The log cleaner keeps a batch without records for its producer's sequence, with no base timestamp, and has the
        time at which tombstones go away in place of it (KIP-534).
        """
        is_other = self.is_log_append_time or bool(self.attributes & _DELETE_HORIZON)
        return self.max_timestamp if is_other or self.base_timestamp == _NO_TIMESTAMP else self.base_timestamp

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def is_dense(self) -> bool:
        """Every offset of the batch still has its record."""
        return self.record_count == self.last_offset_delta + 1

    @property
    def next_sequence(self) -> int:
        return sequence_after(self.base_sequence, self.last_offset_delta + 1)


def split_batches(page: bytes) -> Iterator[Batch]:
    """Yield the whole batches of a page in order. A batch that is cut off at the end is left out.

    A batch of an older format (magic 0 or 1) comes with its offset and place only, everything else zero. So does one
    that is shorter than its header, with a magic of -1, also if there is a 2 where its magic would be.
    """
    position, size = 0, len(page)
    while size - position >= _LENGTH.size:
        base_offset, length = _LENGTH.unpack_from(page, position)
        end = position + _LENGTH.size + length
        if length <= 0 or end > size:
            return
        yield _header(page, position, end, base_offset)
        position = end


def _header(page: bytes, start: int, end: int, base_offset: int) -> Batch:
    size = end - start
    magic = page[start + _MAGIC_AT] if size > _MAGIC_AT else _TOO_SHORT
    if magic == _MAGIC and size < HEADER_BYTES:
        magic = _TOO_SHORT
    if magic != _MAGIC:
        return Batch(base_offset, -1, magic, 0, 0, 0, 0, 0, -1, -1, -1, 0, start, end)
    fields = _HEADER.unpack_from(page, start)
    return Batch._make((base_offset, *fields[2:], start, end))


def find_defect(batch: Batch, page: bytes, *, is_crc_checked: bool = True) -> str | None:
    """Return why the batch as a whole cannot be trusted; None when it can. Checks length, magic, counts, checksum."""
    if batch.magic == _TOO_SHORT:
        return f"its length says {batch.end - batch.start} bytes, fewer than a header has"
    if batch.magic != _MAGIC:
        return f"record format {batch.magic} is not supported, only 2 is"
    if not 0 <= batch.last_offset_delta < 2**31 - 1 or not 0 <= batch.record_count <= batch.last_offset_delta + 1:
        return f"impossible counts: {batch.record_count} records, last offset delta {batch.last_offset_delta}"
    if is_crc_checked and google_crc32c.value(page[batch.start + _CRC_COVERS_FROM : batch.end]) != batch.crc:
        return "wrong checksum (CRC-32C)"
    return None


def marker_type(batch: Batch, page: bytes) -> int | None:
    """Return `ABORT_MARKER` or `COMMIT_MARKER` for a control batch; None for other or unreadable control records. No
    broker compresses one: a batch that says so is damaged."""
    if batch.codec:
        return None
    try:
        key = next(iter(DefaultRecordBatch(page[batch.start : batch.end]))).key
    except (StopIteration, ValueError, IndexError, AssertionError, CorruptRecordException):
        return None
    if key is None or len(key) < _MARKER.size:
        return None
    kind = _MARKER.unpack_from(key)[1]
    return kind if kind in (ABORT_MARKER, COMMIT_MARKER) else None


def clip(batch: Batch, lo: int, hi: int) -> tuple[int, int]:
    """Return the part of `[lo, hi)` that the batch covers, half-open; empty ranges have equal ends."""
    start = min(max(batch.base_offset, lo), hi)
    return start, max(start, min(batch.end_offset, hi))
