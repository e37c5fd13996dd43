"""The records of some batches, taken apart: every field of every record at once.

One pass finds where each record starts (walk.py); from there everything is vectorised over the records of a whole group
of batches, and keys and values are taken by position without becoming Python objects.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from makewhole.compute.words import Bools, Longs
from makewhole.kafka.log.batches import Batch
from makewhole.kafka.log.binary_columns import PADDING_BYTES, Text
from makewhole.kafka.log.walk import record_places
from makewhole.kafka.sequences.audit import NO_SEQUENCE, SEQUENCES
from makewhole.model.plan import PLAN_HEADER

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
_PADDING = bytes(PADDING_BYTES)

Array = Any  # pyarrow.Array: its type stubs know nothing of views


class Item(NamedTuple):
    """A data batch to decode: header, uncompressed records, and the offsets `[lo, hi)` that are wanted of it."""

    batch: Batch
    data: bytes | memoryview
    lo: int
    hi: int
    is_aborted: bool


class RecordTable:
    """Where every field of every record of some batches stands in their joined bytes.

    `damaged` are the items whose records do not fit together: the others' columns are right only without them.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.damaged: set[int] = set()
        self._text = Text(b"".join([*(item.data for item in items), _PADDING]))
        starts, ends = self._walk()
        self._owner = np.repeat(np.arange(len(items)), self._counts)
        self._locate(starts, ends)

    def _walk(self) -> tuple[Longs, Longs]:
        """Start and end of every record. Batches whose lengths do not add up are noted as damaged."""
        sizes = np.array([len(item.data) for item in self.items], dtype=np.int64)
        counts = np.array([item.batch.record_count for item in self.items], dtype=np.int64)
        behind = np.cumsum(sizes)
        starts, fits = record_places(self._text.bytes, behind - sizes, behind, counts)
        self.damaged.update(np.flatnonzero(~fits).tolist())
        self._counts: Longs = np.where(fits, counts, 0)
        ends = np.empty_like(starts)
        ends[:-1] = starts[1:]
        ends[np.cumsum(self._counts)[fits] - 1] = behind[fits]
        return starts, ends

    def _locate(self, starts: Longs, ends: Longs) -> None:
        """Take the records apart, field by field, all at once (Kafka documentation, "Record").

        Cursors only move on, so a record that ends where it should was read within its bounds.
        """
        good, text = np.ones(len(starts), dtype=np.bool_), self._text
        _, cursor, broken = text.varints(starts)
        cursor += 1  # attributes: unused
        time_delta, cursor, bad_time = text.varints(cursor)
        offset_delta, cursor, bad_offset = text.varints(cursor)
        good[np.concatenate([broken, bad_time, bad_offset])] = False
        self._key, cursor = text.blobs(cursor, ends, good)
        self._value, cursor = text.blobs(cursor, ends, good)
        self._header_counts, cursor, broken = text.varints(cursor)
        good[broken] = False
        good &= self._header_counts >= 0
        cursor, good = self._locate_headers(cursor, ends, good)
        good &= cursor == ends
        self._offsets = self._of_batch("base_offset", np.int64) + offset_delta
        good &= self._offsets_fit(offset_delta)
        self._timestamps = self._times(time_delta)
        if not good.all():
            self.damaged.update(np.unique(self._owner[~good]).tolist())

    def _times(self, delta: Longs) -> Longs:
        """Each record's timestamp in ms: its own, or its batch's where the broker's clock rules."""
        times: Longs = self._of_batch("base_timestamp", np.int64) + delta
        if any(item.batch.is_log_append_time for item in self.items):
            appended = self._of_batch("is_log_append_time", np.bool_)
            times = np.where(appended, self._of_batch("max_timestamp", np.int64), times)
        return times

    def _locate_headers(self, cursor: Longs, ends: Longs, good: Bools) -> tuple[Longs, Bools]:
        """The n-th header of every record that has so many, for n = 0, 1, …"""
        names, contents, owners, rank = [], [], [], 0
        having = np.flatnonzero(good & (self._header_counts > 0))
        while len(having):
            fine = good[having]
            name, at = self._text.blobs(cursor[having], ends[having], fine)
            content, at = self._text.blobs(at, ends[having], fine)
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

    def _offsets_fit(self, delta: Longs) -> Bools:
        """Offsets lie in their batch and ascend in it."""
        fit: Bools = (delta >= 0) & (delta <= self._of_batch("last_offset_delta", np.int64))
        ascends = np.ones(len(delta), dtype=np.bool_)
        np.greater(delta[1:], delta[:-1], out=ascends[1:])
        ascends[(np.cumsum(self._counts) - self._counts)[self._counts > 0]] = True
        return fit & ascends

    def _of_batch(self, name: str, kind: type[np.generic]) -> npt.NDArray[Any]:
        """A header field of each record's batch."""
        return self._of_item([getattr(item.batch, name) for item in self.items], kind)

    def _of_item(self, values: Sequence[Any], kind: type[np.generic]) -> npt.NDArray[Any]:
        """A value per item, for each of its records."""
        return np.repeat(np.array(values, dtype=kind), self._counts)

    def wanted(self) -> tuple[list[int], Bools | None]:
        """How many records of each item are wanted, and which; None for all."""
        if all(item.lo <= item.batch.base_offset and item.batch.end_offset <= item.hi for item in self.items):
            return self._counts.tolist(), None
        lows = self._of_item([item.lo for item in self.items], np.int64)
        highs = self._of_item([item.hi for item in self.items], np.int64)
        wanted = (self._offsets >= lows) & (self._offsets < highs)
        return np.bincount(self._owner[wanted], minlength=len(self.items)).tolist(), wanted

    def columns(self, partition: int, names: Collection[str], *, has_views: bool = False) -> pa.RecordBatch:
        """Those columns of `SCHEMA` that are named; with `has_views`, `value` is one of views into the joined bytes."""
        fields = [field for field in SCHEMA if field.name in names]
        makers: dict[str, Callable[[], Array]] = {
            "partition": lambda: pa.array(np.full(len(self._offsets), partition, dtype=np.int32)),
            "offset": lambda: pa.array(self._offsets),
            "leader_epoch": lambda: pa.array(self._of_batch("leader_epoch", np.int32)),
            "timestamp": lambda: pa.array(self._timestamps).view(SCHEMA.field("timestamp").type),
            "timestamp_type": lambda: pa.array(self._of_batch("is_log_append_time", np.int8)),
            "key": lambda: self._key.column(self._text),
            "value": lambda: self._value.views(self._text) if has_views else self._value.column(self._text),
            "headers": self._headers,
            "producer_id": lambda: pa.array(self._of_batch("producer_id", np.int64)),
            "producer_epoch": lambda: pa.array(self._of_batch("producer_epoch", np.int16)),
            "sequence": self._sequences,
            "is_transactional": lambda: pa.array(self._of_batch("is_transactional", np.bool_)),
            "is_aborted": lambda: pa.array(self._of_item([item.is_aborted for item in self.items], np.bool_)),
            "is_replayed": self._replayed,
        }
        return pa.RecordBatch.from_arrays([makers[field.name]() for field in fields], [field.name for field in fields])

    def _sequences(self) -> Array:
        base = self._of_batch("base_sequence", np.int64)
        sequences = (base + self._offsets - self._of_batch("base_offset", np.int64)) % SEQUENCES
        return pa.array(np.where(base == NO_SEQUENCE, NO_SEQUENCE, sequences).astype(np.int32))

    def _headers(self) -> Array:
        ends = np.zeros(len(self._offsets) + 1, dtype=np.int32)
        pairs: Array = pa.array([], type=_HEADER_TYPE)
        if self._has_headers:
            np.cumsum(self._header_counts, out=ends[1:])
            arrays = [self._names.column(self._text).cast(pa.string()), self._contents.column(self._text)]
            pairs = pa.StructArray.from_arrays(arrays, fields=list(_HEADER_TYPE))
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pairs)

    def _replayed(self) -> Array:
        replayed = np.zeros(len(self._offsets), dtype=np.bool_)
        if self._has_headers:
            named = self._names.equal_to(self._text, PLAN_HEADER.encode())
            replayed[self._header_owner[named]] = True
        return pa.array(replayed)
