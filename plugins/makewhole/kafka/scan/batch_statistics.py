"""Sum up the headers of a partition's data batches: sizes, codecs, kinds of producers, times, rates.

Batches of aborted transactions count, too: they were sent, stored and fetched like the others. A batch that only
touches the range counts whole.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeVar

from makewhole.kafka.log.batches import Batch
from makewhole.kafka.sequences.numbering import NO_PRODUCER

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PLAIN, IDEMPOTENT, TRANSACTIONAL = "plain", "idempotent", "transactional"
_BUCKETS_AT_MOST = 4096
_SECOND_MS = 1000
_NO_TIMESTAMP = -1
_Key = TypeVar("_Key")


@dataclass(slots=True)
class Total:
    """Numbers of batches and of their records, and their size as stored."""

    batches: int = 0
    records: int = 0
    size_bytes: int = 0

    def add(self, records: int, size_bytes: int) -> None:
        """Count one batch."""
        self.batches += 1
        self.records += records
        self.size_bytes += size_bytes

    def __add__(self, other: "Total") -> "Total":
        return Total(self.batches + other.batches, self.records + other.records, self.size_bytes + other.size_bytes)


@dataclass(slots=True)
class Spread:
    """Distribution of a quantity over batches. `by_power` counts those in [2^n, 2^(n+1)) under n; 0 under -1."""

    count: int = 0
    total: int = 0
    least: int | None = None
    most: int | None = None
    by_power: dict[int, int] = field(default_factory=dict)

    def add(self, value: int) -> None:
        """Count one value, 0 or more."""
        self.count += 1
        self.total += value
        if self.least is None or value < self.least:
            self.least = value
        if self.most is None or value > self.most:
            self.most = value
        power = value.bit_length() - 1
        self.by_power[power] = self.by_power.get(power, 0) + 1

    def __add__(self, other: "Spread") -> "Spread":
        powers = sorted({*self.by_power, *other.by_power})
        return Spread(
            count=self.count + other.count,
            total=self.total + other.total,
            least=min((least for least in (self.least, other.least) if least is not None), default=None),
            most=max((most for most in (self.most, other.most) if most is not None), default=None),
            by_power={power: self.by_power.get(power, 0) + other.by_power.get(power, 0) for power in powers},
        )


class Rates:
    """Records over time, in at most some thousand buckets of 2^n seconds; a batch counts at its newest timestamp."""

    def __init__(self) -> None:
        self.width_ms = _SECOND_MS
        self.records: dict[int, int] = {}

    def add(self, timestamp_ms: int, records: int) -> None:
        """Count the records of a batch."""
        bucket = timestamp_ms // self.width_ms
        self.records[bucket] = self.records.get(bucket, 0) + records
        if len(self.records) > _BUCKETS_AT_MOST:
            self._widen(2 * self.width_ms)

    def _widen(self, width_ms: int) -> None:
        factor = width_ms // self.width_ms
        wider: dict[int, int] = defaultdict(int)
        for bucket, records in self.records.items():
            wider[bucket // factor] += records
        self.width_ms, self.records = width_ms, dict(wider)

    def merge(self, other: "Rates") -> None:
        """Add the rates of another partition."""
        factor = max(1, self.width_ms // other.width_ms)
        if other.width_ms > self.width_ms:
            self._widen(other.width_ms)
        for bucket, records in other.records.items():
            self.add(bucket // factor * self.width_ms, records)


@dataclass(kw_only=True)
class Times:
    """Timestamps of batches, ms of the epoch. `late`: batches older than the newest so far, by up to `latest_ms`."""

    oldest_ms: int | None = None
    newest_ms: int | None = None
    late: Total = field(default_factory=Total)
    latest_ms: int = 0
    without: Total = field(default_factory=Total)
    log_append: Total = field(default_factory=Total)

    def add(self, batch: Batch, records: int, size_bytes: int) -> None:
        """Count one batch."""
        newest = batch.max_timestamp
        if newest == _NO_TIMESTAMP:
            self.without.add(records, size_bytes)
            return
        if batch.is_log_append_time:
            self.log_append.add(records, size_bytes)
        oldest = batch.first_timestamp
        if self.oldest_ms is None or oldest < self.oldest_ms:
            self.oldest_ms = oldest
        if self.newest_ms is None or newest >= self.newest_ms:
            self.newest_ms = newest
        else:
            self.late.add(records, size_bytes)
            self.latest_ms = max(self.latest_ms, self.newest_ms - newest)


class BatchStatistics:
    """Statistics of a partition, which grow with every data batch."""

    def __init__(self) -> None:
        self.codecs: dict[int, Total] = {}
        self.kinds: dict[str, Total] = {}
        self.records_per_batch = Spread()
        self.bytes_per_batch = Spread()
        self.times = Times()
        self.rates = Rates()

    def add(self, batch: Batch) -> None:
        """Count a data batch."""
        records, size_bytes = batch.record_count, batch.end - batch.start
        _total(self.codecs, batch.codec).add(records, size_bytes)
        _total(self.kinds, _kind(batch)).add(records, size_bytes)
        self.records_per_batch.add(records)
        self.bytes_per_batch.add(size_bytes)
        self.times.add(batch, records, size_bytes)
        if batch.max_timestamp != _NO_TIMESTAMP:
            self.rates.add(batch.max_timestamp, records)


def _total(totals: dict[_Key, Total], key: _Key) -> Total:
    total = totals.get(key)
    if total is None:
        total = totals[key] = Total()
    return total


def _kind(batch: Batch) -> str:
    if batch.is_transactional:
        return TRANSACTIONAL
    return PLAIN if batch.producer_id == NO_PRODUCER else IDEMPOTENT
