"""Take records out of fetched batches, as the log cleaner does: the others keep offsets, times and sequence numbers.

A batch that loses a record is written again without compression, with a checksum of its own. One that loses all of them
stays, empty, for its producer's sequence. Every other byte stays as it was fetched.
"""

import struct
from collections.abc import Collection, Iterator

import google_crc32c

from makewhole.kafka.log.batches import HEADER_BYTES, Batch, find_defect, split_batches
from makewhole.kafka.log.compression import CodecError, decompress
from makewhole.model.errors import CorruptionError

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_BEHIND = 12  # the length counts from behind itself
_CRC_COVERS_FROM = 21
_CODEC = 0x07


def without_records(text: bytes, offsets: Collection[int]) -> bytes:
    """Return batches without the records at these offsets; those of control batches stay.

    Raises:
        CorruptionError: a batch that covers one of them cannot be read.
    """
    wanted = frozenset(offsets)
    parts, done = list[bytes](), 0
    for batch in split_batches(text):
        covered = {offset for offset in wanted if batch.base_offset <= offset < batch.end_offset}
        if covered and not batch.is_control:
            parts += [text[done : batch.start], _without(text, batch, covered)]
            done = batch.end
    return b"".join([*parts, text[done:]])


def _without(text: bytes, batch: Batch, offsets: Collection[int]) -> bytes:
    defect = find_defect(batch, text)
    if defect is not None:
        raise CorruptionError(f"the batch at offset {batch.base_offset} cannot be written again: {defect}")
    body = memoryview(text)[batch.start + HEADER_BYTES : batch.end]
    try:
        records = bytes(decompress(batch.codec, body))
    except CodecError as error:
        raise CorruptionError(f"the batch at offset {batch.base_offset} cannot be written again: {error}") from error
    left = [record for offset, record in _records(records, batch) if offset not in offsets]
    return _batch(batch, b"".join(left), len(left))


def _batch(batch: Batch, records: bytes, count: int) -> bytes:
    """Return a batch with these records, uncompressed."""
    fields = (
        batch.base_offset,
        HEADER_BYTES - _LENGTH_BEHIND + len(records),
        batch.leader_epoch,
        batch.magic,
        0,
        batch.attributes & ~_CODEC,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        count,
    )
    covered = _HEADER.pack(*fields)[_CRC_COVERS_FROM:] + records
    with_checksum = (*fields[:4], google_crc32c.value(covered), *fields[5:])
    return _HEADER.pack(*with_checksum)[:_CRC_COVERS_FROM] + covered


def _records(text: bytes, batch: Batch) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the bytes of each record (Kafka documentation, "Record").

    Raises:
        CorruptionError: they do not fill the batch.
    """
    at = 0
    try:
        for _ in range(batch.record_count):
            size, behind = _number(text, at)
            _, delta_at = _number(text, behind + 1)  # a byte of attributes, then the time
            delta, _ = _number(text, delta_at)
            end = behind + size
            if size < 0 or end > len(text):
                raise IndexError(end)
            yield batch.base_offset + delta, text[at:end]
            at = end
    except IndexError as error:
        raise CorruptionError(f"the records of the batch at offset {batch.base_offset} are cut off") from error


def _number(text: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag number of variable length, and where it ends."""
    number, shift = 0, 0
    while True:
        byte = text[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), at
