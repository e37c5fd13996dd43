"""Decode the records of a group of batches: every field of every record at once.

One pass over the joined bytes of the group finds where every field stands (record_walk.py); keys and values are taken
by position without becoming Python objects.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from makewhole.kafka.log.batches import Batch
from makewhole.kafka.log.record_walk import (
    SMALLEST_RECORD_BYTES,
    Batches,
    HeaderColumns,
    Records,
    walk_headers,
    walk_records,
)
from makewhole.kafka.sequences.numbering import NO_SEQUENCE, SEQUENCES
from makewhole.model.plan import PLAN_HEADER
from makewhole.native.arrays import ArrowArray, Bools, Int64s
from makewhole.native.byte_strings import Blobs, Content, are_utf8

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


class BatchToDecode(NamedTuple):
    """A data batch to decode: header, uncompressed records, and the offsets `[lo, hi)` that are wanted of it."""

    batch: Batch
    data: bytes | memoryview
    lo: int
    hi: int
    is_aborted: bool


class RecordTable:
    """Places of every field of every record of some batches, in their joined bytes.

    `damaged` are the items whose records do not fit together: the others' columns are right only without them.
    """

    def __init__(self, items: Sequence[BatchToDecode]) -> None:
        self.items = items
        self._content = Content(b"".join(item.data for item in items))
        self._fits = np.zeros(len(items), dtype=np.bool_)
        self._records = self._walk_records()
        self._counts: Int64s = np.where(self._fits, self._fields("record_count", np.int64), 0)
        self._names, self._contents = self._walk_headers()
        self.damaged = {*np.flatnonzero(~self._fits).tolist(), *self._with_bad_names()}

    def _walk_records(self) -> Records:
        """Return the records of the sound batches, those that their records fill exactly, and note them in `_fits`."""
        sizes = np.array([len(item.data) for item in self.items], dtype=np.int64)
        counts, has_own_time = self._fields("record_count", np.int64), self._fields("is_log_append_time", np.bool_)
        first, last = self._fields("base_timestamp", np.int64), self._fields("max_timestamp", np.int64)
        batches = Batches(
            text=self._content.bytes,
            begins=np.cumsum(sizes) - sizes,
            ends=np.cumsum(sizes),
            counts=counts,
            base_offsets=self._fields("base_offset", np.int64),
            last_offset_deltas=self._fields("last_offset_delta", np.int64),
            times=np.where(has_own_time, last, first),
            has_own_time=has_own_time,
        )
        records = Records.with_room_for(int(np.clip(counts, 0, sizes // SMALLEST_RECORD_BYTES).sum()))
        return records.first(walk_records(batches, records, self._fits))

    def _walk_headers(self) -> tuple[ArrowArray, Blobs]:
        """Return the names (binary) and the values of all headers, record by record."""
        headers = HeaderColumns.with_room_for(int(self._records.header_counts.sum(dtype=np.int64)))
        if len(headers.name_starts):
            walk_headers(self._content.bytes, self._records, headers)
        names = Blobs(starts=headers.name_starts, lengths=headers.name_lengths)
        return names.column(self._content), Blobs(starts=headers.value_starts, lengths=headers.value_lengths)

    def _with_bad_names(self) -> list[int]:
        """Return the items with a header whose name is not UTF-8."""
        bad = ~are_utf8(self._names)
        return np.unique(self._owners()[self._header_owners()[bad]]).tolist() if bad.any() else []

    def _owners(self) -> Int64s:
        """Return the item of each record."""
        return np.repeat(np.arange(len(self.items)), self._counts)

    def _header_owners(self) -> Int64s:
        """Return the record of each header."""
        counts = self._records.header_counts
        return np.repeat(np.arange(len(counts)), counts)

    def _fields(self, name: str, kind: type[np.generic]) -> npt.NDArray[Any]:
        """Return a header field of each batch."""
        return np.array([getattr(item.batch, name) for item in self.items], dtype=kind)

    def _of_batch(self, name: str, kind: type[np.generic]) -> npt.NDArray[Any]:
        """Return a header field of each record's batch."""
        return np.repeat(self._fields(name, kind), self._counts)

    def _of_item(self, values: Sequence[Any], kind: type[np.generic]) -> npt.NDArray[Any]:
        """Return a value per item, for each of its records."""
        return np.repeat(np.array(values, dtype=kind), self._counts)

    def wanted(self) -> tuple[list[int], Bools | None]:
        """Return how many records of each item are wanted, and a mask of them; None for all."""
        if all(item.lo <= item.batch.base_offset and item.batch.end_offset <= item.hi for item in self.items):
            return self._counts.tolist(), None
        lows = self._of_item([item.lo for item in self.items], np.int64)
        highs = self._of_item([item.hi for item in self.items], np.int64)
        wanted = (self._records.offsets >= lows) & (self._records.offsets < highs)
        return np.bincount(self._owners()[wanted], minlength=len(self.items)).tolist(), wanted

    def columns(self, partition: int, names: Collection[str], *, has_views: bool = False) -> pa.RecordBatch:
        """Return the named columns of `SCHEMA`; with `has_views`, `value` is one of views into the joined bytes."""
        fields, records, content = [field for field in SCHEMA if field.name in names], self._records, self._content
        keys = Blobs(starts=records.key_starts, lengths=records.key_lengths)
        values = Blobs(starts=records.value_starts, lengths=records.value_lengths)
        makers: dict[str, Callable[[], ArrowArray]] = {
            "partition": lambda: pa.array(np.full(len(records.offsets), partition, dtype=np.int32)),
            "offset": lambda: pa.array(records.offsets),
            "leader_epoch": lambda: pa.array(self._of_batch("leader_epoch", np.int32)),
            "timestamp": lambda: pa.array(records.times).view(SCHEMA.field("timestamp").type),
            "timestamp_type": lambda: pa.array(self._of_batch("is_log_append_time", np.int8)),
            "key": lambda: keys.column(content),
            "value": lambda: values.views(content) if has_views else values.column(content),
            "headers": self._headers,
            "producer_id": lambda: pa.array(self._of_batch("producer_id", np.int64)),
            "producer_epoch": lambda: pa.array(self._of_batch("producer_epoch", np.int16)),
            "sequence": self._sequences,
            "is_transactional": lambda: pa.array(self._of_batch("is_transactional", np.bool_)),
            "is_aborted": lambda: pa.array(self._of_item([item.is_aborted for item in self.items], np.bool_)),
            "is_replayed": self._replayed,
        }
        return pa.RecordBatch.from_arrays([makers[field.name]() for field in fields], [field.name for field in fields])

    def _sequences(self) -> ArrowArray:
        base = self._of_batch("base_sequence", np.int64)
        sequences = (base + self._records.offsets - self._of_batch("base_offset", np.int64)) % SEQUENCES
        return pa.array(np.where(base == NO_SEQUENCE, NO_SEQUENCE, sequences).astype(np.int32))

    def _headers(self) -> ArrowArray:
        edges = np.zeros(len(self._records.offsets) + 1, dtype=np.int32)
        np.cumsum(self._records.header_counts, out=edges[1:])
        arrays = [self._names.cast(pa.string()), self._contents.column(self._content)]
        pairs: ArrowArray = pa.StructArray.from_arrays(arrays, fields=list(_HEADER_TYPE))
        return pa.ListArray.from_arrays(pa.array(edges, pa.int32()), pairs)

    def _replayed(self) -> ArrowArray:
        replayed = np.zeros(len(self._records.offsets), dtype=np.bool_)
        is_named: Any = pc.equal(self._names, pa.scalar(PLAN_HEADER.encode()))
        replayed[self._header_owners()[is_named.to_numpy(zero_copy_only=False)]] = True
        return pa.array(replayed)
