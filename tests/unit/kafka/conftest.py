"""Build record batches by hand, and serve them from memory as a log source."""

import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from makewhole.kafka.log.aborted_transactions import AbortedTransaction
from makewhole.kafka.log.batches import find_defect, split_batches
from makewhole.kafka.log.page import Isolation, LogPage
from makewhole.model.window import PartitionRange

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
_TAIL = struct.Struct(">hiqqqhii")


def varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def blob(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def record(delta: int, row: Row, *, offset_delta: int | None = None) -> bytes:
    timestamp, key, value, headers = row
    body = b"\0" + varint(timestamp) + varint(delta if offset_delta is None else offset_delta) + blob(key) + blob(value)
    body += varint(len(headers)) + b"".join(blob(name.encode()) + blob(content) for name, content in headers)
    return varint(len(body)) + body


def batch_of(
    base_offset: int,
    records: bytes,
    *,
    count: int,
    last_delta: int,
    attributes: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    leader_epoch: int = 0,
    base_timestamp: int = 0,
) -> bytes:
    """Return a batch with a right checksum around any record bytes."""
    tail = _TAIL.pack(attributes, last_delta, base_timestamp, base_timestamp + 1000, *producer, count) + records
    head = struct.pack(">qiibI", base_offset, 9 + len(tail), leader_epoch, 2, calc_crc32c(tail))
    return head + tail


def plain_batch(base_offset: int, rows: Sequence[Row], **options: object) -> bytes:
    records = b"".join(record(delta, row) for delta, row in enumerate(rows))
    return batch_of(base_offset, records, count=len(rows), last_delta=len(rows) - 1, **options)  # type: ignore[arg-type]


def sparse_batch(base_offset: int, rows: dict[int, Row], last_delta: int, **options: object) -> bytes:
    """Return a batch as compaction leaves it: only some offsets have records."""
    records = b"".join(record(delta, row) for delta, row in rows.items())
    return batch_of(base_offset, records, count=len(rows), last_delta=last_delta, **options)  # type: ignore[arg-type]


def marker(offset: int, producer_id: int, *, is_commit: bool) -> bytes:
    key = struct.pack(">hh", 0, int(is_commit))
    return plain_batch(offset, [(0, key, b"\0" * 6, [])], attributes=0x30, producer=(producer_id, 0, -1))


def rows(count: int, start: int = 0) -> list[Row]:
    return [(index, b"k%d" % index, b"value %d" % index, []) for index in range(start, start + count)]


def aiokafka_batch(values: Sequence[Row]) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, 5, 0, 7, 1 << 30)
    for index, (timestamp, key, value, headers) in enumerate(values):
        builder.append(index, timestamp, key, value, headers)
    return bytes(builder.build())


@dataclass
class MemoryLog:
    """Log source that serves `page_batches` at a time, as a broker does: from the one that holds the asked offset."""

    batches: list[bytes]
    aborted: list[AbortedTransaction] = field(default_factory=list)
    log_start: int = 0
    page_batches: int = 2
    intact: int | None = None
    doubt: str | None = None

    def check(self, wanted: PartitionRange) -> None:
        """Accept any topic id."""

    def next_batch(self, wanted: PartitionRange, offset: int, likely: int, isolation: Isolation) -> int:
        bases = (
            batch.base_offset
            for data in self.batches
            for batch in split_batches(data)
            if find_defect(batch, data) is None
        )
        return min((base for base in bases if base > offset), default=wanted.hi)

    def intact_end(self, wanted: PartitionRange) -> int:
        return wanted.hi if self.intact is None else min(self.intact, wanted.hi)

    def hole_reason(self, wanted: PartitionRange, start: int, end: int) -> str | None:
        return self.doubt

    def fetch(self, wanted: PartitionRange, offset: int, isolation: Isolation) -> LogPage:
        if offset < self.log_start:
            return LogPage(log_start=self.log_start)
        ends = [next(iter(split_batches(appended))).end_offset for appended in self.batches]
        first = next((number for number, end in enumerate(ends) if end > offset), len(ends))
        data = b"".join(self.batches[first : first + self.page_batches])
        batches = list(split_batches(data))
        if not batches:
            return LogPage(hole_end=wanted.hi)
        touching = [
            transaction
            for transaction in self.aborted
            if transaction.marker_offset is None or transaction.marker_offset >= offset
        ]
        return LogPage(data=data, batches=batches, aborted=touching)


def wanted(lo: int, hi: int, partition: int = 3) -> PartitionRange:
    return PartitionRange(topic="t", topic_id="id", partition=partition, lo=lo, hi=hi)


@pytest.fixture(scope="session")
def handmade() -> ModuleType:
    """Return this module, with the builders of batches and the log in memory."""
    return sys.modules[__name__]
