"""Prepare the records of a chunk for the producer: find those that the broker would refuse, add lineage headers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from makewhole.model.actions import ProduceExtra
from makewhole.model.plan import CHUNK_HEADER, ORIGIN_HEADER, PLAN_HEADER, SEQ_HEADER, TIME_HEADER, WINDOW_HEADER
from makewhole.model.refusal import Refusal, RefusalCode

_BATCH_OVERHEAD_BYTES = 1024  # of a record alone in its batch, generously
_RECORD_OVERHEAD_BYTES = 30
_HEADER_OVERHEAD_BYTES = 10
_ANY_PARTITION = -1
_NOT_COUNTED = -1
_NEVER = -1
_DAY_MS = 86_400_000
_TIME_HEADER_BYTES = len(TIME_HEADER) + len(str(2**63)) + _HEADER_OVERHEAD_BYTES
_EXTRA = msgspec.json.Decoder(ProduceExtra)
_POWERS_OF_TEN = 10 ** np.arange(1, 10)

Header = tuple[str, str | bytes | None]
MessageFields = tuple[bytes | None, bytes | None, list[Header], int, int]
"""Value, key, headers, partition and timestamp of a record, as the producer takes them."""
_RecordCheck = tuple[NDArray[np.bool_], RefusalCode, str]
"""Which records are refused, and why: the code, and the text with `{partition}` and `{count}` of the record."""


@dataclass(frozen=True, kw_only=True)
class LineageHeaders:
    """Lineage headers of a chunk. They mark a record as ours, so that it is never counted as a duplicate later, and a
    lost marker can be made again. The number of the action and the origin differ from record to record."""

    plan: str
    window: str
    chunk: int

    @property
    def leading(self) -> tuple[Header, Header]:
        """Headers between a record's own and those that differ from record to record."""
        return (PLAN_HEADER, self.plan.encode()), (WINDOW_HEADER, self.window.encode())

    @property
    def trailing(self) -> Header:
        """Header behind those that differ from record to record."""
        return CHUNK_HEADER, str(self.chunk).encode()

    @property
    def size_bytes(self) -> int:
        """Size of all five headers, without the values that differ from record to record."""
        same = sum(len(name) + len(value or b"") for name, value in (*self.leading, self.trailing))
        return same + len(SEQ_HEADER) + len(ORIGIN_HEADER) + 5 * _HEADER_OVERHEAD_BYTES


@dataclass(frozen=True, kw_only=True)
class TopicRules:
    """Limits of a topic on the records that the broker accepts. `retention_ms`: after how long it deletes them; None:
    never by their times."""

    partitions: frozenset[int]
    max_message_bytes: int
    max_ahead_ms: int
    max_behind_ms: int
    is_create_time: bool
    retention_ms: int | None = None

    def expires_before_ms(self, now_ms: int) -> int:
        """Return the timestamp below which a record that is sent now may be deleted before it is read: less than a day
        is left to it, and less than half of what the topic keeps. -1: none may be."""
        if self.retention_ms is None or not self.is_create_time:
            return _NEVER
        return max(_NEVER, now_ms - self.retention_ms + min(_DAY_MS, self.retention_ms // 2))


class SentRecords(Protocol):
    """The records of a transaction."""

    @property
    def seqs(self) -> Sequence[int]:
        """The numbers of the records, by which their positions are reported."""

    def messages(self) -> Iterator[MessageFields]:
        """Yield the records, in the order of their numbers."""


@dataclass(frozen=True)
class ReplayRecords:
    """Records to write, in order.

    Columns of `table`: `seq` (int32), `key`, `value` (binary), `headers` (list of key and value), `timestamp` (ms,
    null: now), `partition` (int32, null: by the partitioner), `origin` (string), `extra` (JSON).

    Those with a timestamp below `expires_before_ms` are sent with the time of their sending, and name their own in a
    header.
    """

    table: pa.Table
    lineage: LineageHeaders
    expires_before_ms: int = _NEVER

    def without(self, seqs: Mapping[int, Any]) -> "ReplayRecords":
        """Return the records without those of these numbers."""
        if not seqs:
            return self
        is_left_out = np.isin(self._column("seq").to_numpy(), list(seqs))
        return replace(self, table=self.table.filter(pa.array(~is_left_out)))

    def lasting(self, rules: TopicRules, now_ms: int) -> "ReplayRecords":
        """Return the records as their topic keeps them for long enough to be read."""
        limit = rules.expires_before_ms(now_ms)
        return replace(self, expires_before_ms=limit) if self._expires(limit).any() else self

    def _expires(self, limit_ms: int) -> NDArray[np.bool_]:
        expires: NDArray[np.bool_] = (self._timestamps_ms >= 0) & (self._timestamps_ms < limit_ms)
        return expires

    @property
    def seqs(self) -> list[int]:
        """Numbers of the actions, in order."""
        numbers: list[int] = self._column("seq").to_pylist()
        return numbers

    def prepare(self) -> None:
        """Convert the columns now, which is what takes time in `messages`."""
        _ = self._message_columns

    def messages(self) -> Iterator[MessageFields]:
        """Yield value, key, headers, partition and timestamp of each record, as the producer takes them."""
        parts = self._message_columns
        return zip(parts.values, parts.keys, _headers(parts, self.lineage), parts.partitions, parts.stamps, strict=True)

    def refusals(self, rules: TopicRules, now_ms: int) -> dict[int, Refusal]:
        """Return why a record does not go to its topic any more, by number: the partition of its key is another one, or
        the broker would refuse it. One refused record would abort its whole chunk."""
        partitions = self._column("partition").fill_null(min(rules.partitions)).to_numpy()
        counts, count = self._partition_counts, len(rules.partitions)
        checks: list[_RecordCheck] = [
            (
                (counts != _NOT_COUNTED) & (counts != count),
                RefusalCode.STALE,
                f"the topic has {count} partitions now and had {{count}} when the plan was frozen: the key may "
                "belong into another one; run the window again",
            ),
            (
                ~np.isin(partitions, list(rules.partitions)),
                RefusalCode.UNFIT,
                "the topic has no partition {partition} any more",
            ),
            *self._limits_exceeded(rules, now_ms),
        ]
        refusals: dict[int, Refusal] = {}
        for is_refused, code, form in checks:
            for row in np.flatnonzero(is_refused).tolist():
                text = form.format(partition=partitions[row], count=counts[row])
                refusals.setdefault(self._column("seq")[row].as_py(), Refusal(code, text))
        return refusals

    def _limits_exceeded(self, rules: TopicRules, now_ms: int) -> list[_RecordCheck]:
        stamps, expires = self._timestamps_ms, self._expires(rules.expires_before_ms(now_ms))
        is_checked = (stamps >= 0) & rules.is_create_time & ~expires
        sizes = self._sizes + _TIME_HEADER_BYTES * expires
        return [
            (
                sizes + _BATCH_OVERHEAD_BYTES > rules.max_message_bytes,
                RefusalCode.UNFIT,
                f"with its lineage headers the record exceeds max.message.bytes ({rules.max_message_bytes})",
            ),
            (
                is_checked & (stamps - now_ms > rules.max_ahead_ms),
                RefusalCode.UNFIT,
                "its timestamp is further ahead than message.timestamp.after.max.ms allows",
            ),
            (
                is_checked & (now_ms - stamps > rules.max_behind_ms),
                RefusalCode.UNFIT,
                "its timestamp is older than message.timestamp.before.max.ms allows",
            ),
        ]

    @property
    def _partition_counts(self) -> NDArray[np.int64]:
        """Partitions that the topic had when a record's partition was chosen by its key; -1: it was not."""
        coded = self._column("extra").combine_chunks().dictionary_encode()
        counts = (_EXTRA.decode(text).partition_count for text in coded.dictionary.to_pylist())
        known = np.array([_NOT_COUNTED if count is None else count for count in counts], dtype=np.int64)
        counts_of_records: NDArray[np.int64] = known[coded.indices.to_numpy()]
        return counts_of_records

    @cached_property
    def _timestamps_ms(self) -> NDArray[np.int64]:
        """Timestamps of the records in ms; -1 where there is none."""
        stamps: NDArray[np.int64] = self._column("timestamp").cast(pa.int64()).fill_null(-1).to_numpy()
        return stamps

    @property
    def _sizes(self) -> NDArray[np.int64]:
        """Most bytes that each record takes with its lineage headers."""
        parts = [_lengths(self._column(name)) for name in ("key", "value", "origin")]
        parts.append(np.searchsorted(_POWERS_OF_TEN, self._column("seq").to_numpy(), side="right") + 1)  # its digits
        pairs, bounds = self._own_headers
        lengths = _lengths(pairs.field("key")) + _lengths(pairs.field("value")) + _HEADER_OVERHEAD_BYTES
        parts.append(np.diff(np.concatenate([[0], np.cumsum(lengths)])[bounds]))
        sizes: NDArray[np.int64] = np.sum(parts, axis=0)
        return sizes + self.lineage.size_bytes + _RECORD_OVERHEAD_BYTES

    @property
    def _own_headers(self) -> tuple[Any, NDArray[np.int64]]:
        """Header pairs (key, value) of all records, and the bounds of each record's in them."""
        lists: Any = self._column("headers").combine_chunks()
        bounds = lists.offsets.to_numpy().astype(np.int64)
        return lists.flatten(), bounds - bounds[0]

    @cached_property
    def _message_columns(self) -> "_MessageColumns":
        pairs, bounds = self._own_headers
        expires = self._expires(self.expires_before_ms)
        return _MessageColumns(
            values=self._column("value").to_pylist(),
            keys=self._column("key").to_pylist(),
            own=list(zip(pairs.field("key").to_pylist(), pairs.field("value").to_pylist(), strict=True)),
            bounds=bounds.tolist(),
            seqs=self._column("seq").cast(pa.string()).cast(pa.binary()).to_pylist(),
            origins=self._column("origin").cast(pa.binary()).to_pylist(),
            partitions=self._column("partition").fill_null(_ANY_PARTITION).to_pylist(),
            stamps=_librdkafka_timestamps(np.where(expires, -1, self._timestamps_ms)).tolist(),
            times=[
                str(stamp).encode() if is_past else None
                for stamp, is_past in zip(self._timestamps_ms.tolist(), expires.tolist(), strict=True)
            ],
        )

    def _column(self, name: str) -> Any:
        """Return a column, untyped: Arrow's type stubs know too little of it."""
        return self.table.column(name)


@dataclass(frozen=True, kw_only=True)
class _MessageColumns:
    """Columns as Python lists. `own` are the headers of all records, record i's from `bounds[i]` to `bounds[i + 1]`;
    `times` the timestamps of those that are not sent with their own."""

    values: list[bytes | None]
    keys: list[bytes | None]
    own: list[Header]
    bounds: list[int]
    seqs: list[bytes]
    origins: list[bytes | None]
    partitions: list[int]
    stamps: list[int]
    times: list[bytes | None]


def _headers(parts: _MessageColumns, lineage: LineageHeaders) -> Iterator[list[Header]]:
    """Yield the headers of each record: its own, then those of the lineage."""
    own, leading, trailing = parts.own, lineage.leading, lineage.trailing
    rows = zip(parts.seqs, parts.origins, parts.times, pairwise(parts.bounds), strict=True)
    for seq, origin, time, (start, end) in rows:
        headers = [*own[start:end], *leading, (SEQ_HEADER, seq), (ORIGIN_HEADER, origin), trailing]
        yield headers if time is None else [*headers, (TIME_HEADER, time)]


def _lengths(texts: Any) -> NDArray[np.int64]:
    """Return the lengths in bytes; 0 for null."""
    lengths: Any = pc.binary_length(texts)
    return np.asarray(lengths.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _librdkafka_timestamps(stamps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return timestamps for librdkafka: 0 is now, so that the first millisecond of 1970 becomes the second."""
    return np.where(stamps < 0, 0, np.maximum(stamps, 1))
