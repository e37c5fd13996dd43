"""Records of many batches at once as Arrow columns.

One pass over the bytes finds where each record starts; everything else is vectorised over the records of a whole
group of batches, and keys and values are taken by position without becoming Python objects. A batch whose records do
not fit together is taken out and read record by record (damaged.py), so that one bad record costs itself only.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from makewhole.kafka.batches import Batch
from makewhole.kafka.binary_columns import blobs_at, varints_at
from makewhole.kafka.damaged import Salvage, Undecodable, salvage
from makewhole.kafka.sequences import NO_SEQUENCE, SEQUENCES

PLAN_HEADER = "makewhole-plan"
_HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
SCHEMA: pa.Schema = pa.schema(
    [  # type: ignore[arg-type]
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("timestamp_type", pa.int8()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(_HEADER_TYPE)),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("sequence", pa.int32()),
        ("is_transactional", pa.bool_()),
        ("is_aborted", pa.bool_()),
        ("is_replayed", pa.bool_()),
    ]
)
_PADDING = bytes(16)

Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Item(NamedTuple):
    """A data batch to decode: header, uncompressed records, and the offsets `[lo, hi)` that are wanted of it."""

    batch: Batch
    data: bytes
    lo: int
    hi: int
    is_aborted: bool


class Decoded(NamedTuple):
    """The wanted records of `items`, in offset order, with how many each item gave and what could not be read."""

    items: Sequence[Item]
    counts: Sequence[int]
    columns: pa.RecordBatch
    undecodable: Sequence[Undecodable]


def decode(partition: int, items: Sequence[Item]) -> Iterator[Decoded]:
    """Decode items in order; several results when damaged batches stand between."""
    table = _RecordTable(items)
    if not table.damaged:
        yield table.decoded(partition)
        return
    start = 0
    for index in [*sorted(table.damaged), len(items)]:
        if index > start:
            yield _RecordTable(items[start:index]).decoded(partition)
        if index < len(items):
            yield _salvaged(partition, items[index])
        start = index + 1


class _RecordTable:
    """Where every field of every record of some batches stands in their joined bytes."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.damaged: set[int] = set()
        self._text = b"".join(item.data for item in items) + _PADDING
        self._bytes = np.frombuffer(self._text, dtype=np.uint8)
        starts, ends, counts = self._walk()
        self._owner = np.repeat(np.arange(len(items)), counts)
        self._locate(np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64))

    def _walk(self) -> tuple[list[int], list[int], list[int]]:
        """Start and end of every record body. Batches whose lengths do not add up are noted as damaged."""
        starts: list[int] = []
        ends: list[int] = []
        counts: list[int] = []
        begin = 0
        for index, item in enumerate(self.items):
            end = begin + len(item.data)
            before = len(starts)
            if not _walk_batch(self._text, begin, end, item.batch.record_count, starts, ends):
                del starts[before:], ends[before:]
                self.damaged.add(index)
            counts.append(len(starts) - before)
            begin = end
        return starts, ends, counts

    def _locate(self, starts: Longs, ends: Longs) -> None:
        """Take the records apart, field by field, all at once (Kafka documentation, "Record")."""
        good = np.ones(len(starts), dtype=np.bool_)
        time_delta, cursor, good = varints_at(self._bytes, starts + 1, ends, good)
        offset_delta, cursor, good = varints_at(self._bytes, cursor, ends, good)
        self._key, cursor, good = blobs_at(self._bytes, cursor, ends, good)
        self._value, cursor, good = blobs_at(self._bytes, cursor, ends, good)
        self._header_counts, cursor, good = varints_at(self._bytes, cursor, ends, good)
        good &= self._header_counts >= 0
        cursor, good = self._locate_headers(cursor, ends, good)
        good &= cursor == ends
        self._offsets = self._of_batch("base_offset", np.int64) + offset_delta
        good &= self._offsets_fit()
        appended = np.array([item.batch.is_log_append_time for item in self.items], dtype=np.bool_)[self._owner]
        self._timestamps = np.where(
            appended, self._of_batch("max_timestamp", np.int64), self._of_batch("base_timestamp", np.int64) + time_delta
        )
        self.damaged.update(np.unique(self._owner[~good]).tolist())

    def _locate_headers(self, cursor: Longs, ends: Longs, good: Bools) -> tuple[Longs, Bools]:
        """The n-th header of every record that has so many, for n = 0, 1, …"""
        names, contents, owners, rank = [], [], [], 0
        having = np.flatnonzero(good & (self._header_counts > 0))
        while len(having):
            name, at, fine = blobs_at(self._bytes, cursor[having], ends[having], good[having])
            content, at, fine = blobs_at(self._bytes, at, ends[having], fine)
            cursor[having], good[having] = at, fine & (name.lengths >= 0)
            names.append(name)
            contents.append(content)
            owners.append(having)
            rank += 1
            having = having[good[having] & (self._header_counts[having] > rank)]
        self._has_headers = bool(names)
        if names:
            order = np.argsort(np.concatenate([name.starts for name in names]), kind="stable")
            self._header_owner = np.concatenate(owners)[order]
            self._names = type(names[0]).joined(names).take(order)
            self._contents = type(names[0]).joined(contents).take(order)
            good[self._header_owner[~self._names.is_utf8(self._text)]] = False
        return cursor, good

    def _of_batch(self, name: str, kind: type[np.generic]) -> npt.NDArray[np.int64]:
        """A header field of each record's batch."""
        values: Longs = np.array([getattr(item.batch, name) for item in self.items], dtype=kind)[self._owner]
        return values

    def _offsets_fit(self) -> Bools:
        """Offsets lie in their batch and ascend in it."""
        fit: Bools = (self._offsets >= self._of_batch("base_offset", np.int64)) & (
            self._offsets < self._of_batch("end_offset", np.int64)
        )
        fit[1:] &= (np.diff(self._offsets) > 0) | (np.diff(self._owner) > 0)
        return fit

    def decoded(self, partition: int) -> Decoded:
        """The wanted records as columns."""
        lows = np.array([item.lo for item in self.items], dtype=np.int64)[self._owner]
        highs = np.array([item.hi for item in self.items], dtype=np.int64)[self._owner]
        wanted = (self._offsets >= lows) & (self._offsets < highs)
        counts = np.bincount(self._owner[wanted], minlength=len(self.items)).tolist()
        columns = self._columns(partition)
        return Decoded(self.items, counts, columns if wanted.all() else columns.filter(pa.array(wanted)), ())

    def _columns(self, partition: int) -> pa.RecordBatch:
        producer_ids = self._of_batch("producer_id", np.int64)
        base_sequences = self._of_batch("base_sequence", np.int64)
        sequences = (base_sequences + self._offsets - self._of_batch("base_offset", np.int64)) % SEQUENCES
        aborted = np.array([item.is_aborted for item in self.items], dtype=np.bool_)[self._owner]
        buffer = pa.py_buffer(self._text)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(np.full(len(self._owner), partition, dtype=np.int32)),
                pa.array(self._offsets),
                pa.array(self._of_batch("leader_epoch", np.int32)),
                pa.array(self._timestamps).view(SCHEMA.field("timestamp").type),
                pa.array(self._of_batch("is_log_append_time", np.int8)),
                self._key.column(buffer),
                self._value.column(buffer),
                self._headers(buffer),
                pa.array(producer_ids),
                pa.array(self._of_batch("producer_epoch", np.int16)),
                pa.array(np.where(base_sequences == NO_SEQUENCE, NO_SEQUENCE, sequences).astype(np.int32)),
                pa.array(self._of_batch("is_transactional", np.bool_)),
                pa.array(aborted),
                self._replayed(),
            ],
            schema=SCHEMA,
        )

    def _headers(self, buffer: pa.Buffer) -> "pa.Array[Any]":
        ends = np.zeros(len(self._owner) + 1, dtype=np.int32)
        pairs: pa.Array[Any] = pa.array([], type=_HEADER_TYPE)
        if self._has_headers:
            np.cumsum(self._header_counts, out=ends[1:])
            arrays = [self._names.column(buffer).cast(pa.string()), self._contents.column(buffer)]
            pairs = pa.StructArray.from_arrays(arrays, fields=list(_HEADER_TYPE))
        lists: pa.Array[Any] = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pairs)
        return lists

    def _replayed(self) -> "pa.Array[Any]":
        replayed = np.zeros(len(self._owner), dtype=np.bool_)
        if self._has_headers:
            named = self._names.equal_to(self._text, PLAN_HEADER.encode())
            replayed[self._header_owner[named]] = True
        return pa.array(replayed)


def _walk_batch(text: bytes, position: int, end: int, count: int, starts: list[int], ends: list[int]) -> bool:
    """Append where each record body starts and ends; whether the lengths fill the batch exactly.

    The one loop over all records in Python: inlined on purpose.
    """
    try:
        for _ in range(count):
            byte = text[position]
            position += 1
            if byte & 1:  # zigzag: a negative length
                return False
            if byte < 0x80:
                length = byte >> 1
            else:
                value, shift = byte & 0x7F, 7
                while byte >= 0x80:
                    byte = text[position]
                    position += 1
                    value |= (byte & 0x7F) << shift
                    shift += 7
                length = value >> 1
            starts.append(position)
            position += length
            ends.append(position)
            if position > end:
                return False
    except IndexError:
        return False
    return position == end


def _salvaged(partition: int, item: Item) -> Decoded:
    """What can be read of a damaged batch, by the slow way."""
    found: Salvage = salvage(item.batch, item.data, partition)
    records = [record for record in found.records if item.lo <= record.offset < item.hi]
    bad = [
        Undecodable(partition, max(one.offset, item.lo), min(one.end_offset, item.hi), one.reason)
        for one in found.undecodable
        if one.offset < item.hi and one.end_offset > item.lo
    ]
    batch = item.batch
    has_sequence = batch.base_sequence != NO_SEQUENCE
    rows = [
        {
            "partition": partition,
            "offset": record.offset,
            "leader_epoch": batch.leader_epoch,
            "timestamp": record.timestamp,
            "timestamp_type": int(batch.is_log_append_time),
            "key": record.key,
            "value": record.value,
            "headers": [{"key": name, "value": content} for name, content in record.headers],
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "sequence": (batch.base_sequence + record.offset - batch.base_offset) % SEQUENCES if has_sequence else -1,
            "is_transactional": batch.is_transactional,
            "is_aborted": item.is_aborted,
            "is_replayed": any(name == PLAN_HEADER for name, _ in record.headers),
        }
        for record in records
    ]
    return Decoded([item], [len(rows)], pa.RecordBatch.from_pylist(rows, schema=SCHEMA), bad)
