"""Define the report of an audit, which `--json` prints field by field.

Times are ms of the epoch, ranges half-open, lists capped: a number beside each says how many it leaves out. Counts are
never capped.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from makewhole.model.window import Accounting

VERSION = 1


class Level(StrEnum):
    """Weight of a finding or a setting."""

    FOUND = "found"  # something happened that should not have
    NOT_KNOWN = "not_known"  # something could not be read
    WEAK = "weak"  # a setting that cannot keep what people expect of it
    NOTE = "note"  # good to know, nothing wrong
    HOLDS = "holds"  # a setting that keeps its promise


_OF_POINTS = ("erasures", "elements")
"""The numbers that the account of a point's records has besides, and that of a log never."""


@dataclass(frozen=True, kw_only=True)
class AuditFinding:
    """Something found: `what` happened and where, what it `means`, what it leaves `unproven`, what `todo`."""

    code: str
    level: Level
    what: str
    means: str
    unproven: str | None = None
    todo: str | None = None


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A setting with what it can and cannot guarantee. `source`: topic, broker, default, or unknown."""

    setting: str
    value: str
    source: str
    level: Level
    says: str
    todo: str | None = None


@dataclass(frozen=True, kw_only=True)
class UnreadOffsets:
    """Offsets that could not be read, and why."""

    offset: int
    end_offset: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class EpochSpan:
    """Offsets that were written under one leader epoch."""

    epoch: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, kw_only=True)
class TailReport:
    """Offsets behind the stable one, which an open transaction holds back from committed readers."""

    start: int
    end: int
    records: int
    control: int
    empty: int
    undecodable: int


@dataclass(frozen=True, kw_only=True)
class PartitionReport:
    """One partition. `offsets` says what every offset up to `stable` was; batches are data batches, the tail's too."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    log_start: int
    stable: int
    end: int
    failure: str | None
    offsets: Accounting
    expired: tuple[tuple[int, int], ...]
    undecodable: tuple[UnreadOffsets, ...]
    undecodable_left_out: int
    tail: TailReport
    leader_epochs: tuple[EpochSpan, ...]
    batches: int
    records: int
    size_bytes: int
    committed_transactions: int
    aborted_transactions: int
    producers: int
    gaps: int
    repeats: int
    missing_heads: int


@dataclass(frozen=True, kw_only=True)
class EpochReport:
    """One epoch of a producer in one partition: a session's numbering, or one transaction's (KIP-890)."""

    partition: int
    epoch: int
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    first_timestamp_ms: int
    last_timestamp_ms: int
    batches: int
    records: int
    gaps: int
    missing: int
    repeats: int
    repeated: int
    missing_head: int
    wraps: int
    is_exact: bool


@dataclass(frozen=True, kw_only=True)
class ProducerReport:
    """One producer id over all partitions. `epochs` lists the first and the newest of each partition.

    `epoch_count` and `epoch_bumps` are those of the partition that saw most of them.
    """

    producer_id: int
    partitions: tuple[int, ...]
    newest_epoch: int
    epoch_count: int
    epoch_bumps: int
    epoch_regressions: int
    batches: int
    records: int
    gaps: int
    missing: int
    repeats: int
    repeated: int
    missing_heads: int
    wraps: int
    first_timestamp_ms: int
    last_timestamp_ms: int
    epochs: tuple[EpochReport, ...]
    epochs_left_out: int


@dataclass(frozen=True, kw_only=True)
class BreakReport:
    """One place where a producer's numbering does not continue."""

    kind: str
    partition: int
    producer_id: int
    producer_epoch: int
    offset: int
    expected: int
    found: int
    records: int


@dataclass(frozen=True, kw_only=True)
class SequencesReport:
    """All producers together, the worst listed first."""

    producers: int
    epochs: int
    epoch_bumps: int
    epoch_regressions: int
    gaps: int
    missing: int
    repeats: int
    repeated: int
    missing_heads: int
    wraps: int
    breaks: tuple[BreakReport, ...]
    breaks_left_out: int
    listed: tuple[ProducerReport, ...]
    left_out: int


@dataclass(frozen=True, kw_only=True)
class SpreadReport:
    """Distribution of a quantity: `at_most[i]` is (upper bound, how many are up to it and above the bound before)."""

    count: int
    total: int
    least: int | None
    most: int | None
    at_most: tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class TransactionReport:
    """One transaction in one partition: its data and its marker are `[first_offset, end_offset)`."""

    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    end_offset: int
    records: int
    batches: int
    started_at_ms: int
    ended_at_ms: int
    duration_ms: int
    is_commit: bool


@dataclass(frozen=True, kw_only=True)
class EndedReport:
    """Transactions that ended the same way, each partition counted. `without_data`: only the marker is in the log."""

    count: int
    records: int
    without_data: int
    longest_ms: int
    records_each: SpreadReport


@dataclass(frozen=True, kw_only=True)
class OpenReport:
    """A transaction that is open in a partition. `records` and `batches` are what the scan saw of it."""

    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    last_timestamp_ms: int
    records: int
    batches: int
    transactional_id: str | None
    state: str | None
    started_at_ms: int | None
    timeout_ms: int | None
    is_hanging: bool


@dataclass(frozen=True, kw_only=True)
class TransactionsReport:
    """All transactions. `open_refusal`: why the coordinators could not be asked; None when they answered."""

    committed: EndedReport
    aborted: EndedReport
    open: tuple[OpenReport, ...]
    open_refusal: str | None
    longest: tuple[TransactionReport, ...]
    aborted_listed: tuple[TransactionReport, ...]
    aborted_left_out: int


@dataclass(frozen=True, kw_only=True)
class TotalReport:
    """Numbers of batches and of their records, and their size as stored."""

    batches: int
    records: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class BatchesReport:
    """Data batches by codec, by kind of producer, and by size."""

    total: TotalReport
    codecs: Mapping[str, TotalReport]
    kinds: Mapping[str, TotalReport]
    records_per_batch: SpreadReport
    bytes_per_batch: SpreadReport


@dataclass(frozen=True, kw_only=True)
class TimesReport:
    """Timestamps of the data batches. `late` are those that end before the newest one before them in their partition.

    `rates` are (start, records) in buckets of `width_ms`, ascending, empty ones left out.
    """

    oldest_ms: int | None
    newest_ms: int | None
    late: TotalReport
    latest_ms: int
    without: TotalReport
    log_append: TotalReport
    width_ms: int
    rates: tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """A whole audit."""

    version: int
    topic: str
    topic_id: str
    bootstrap: str
    audited_at_ms: int
    elapsed_seconds: float
    from_offset: int | None
    is_crc_checked: bool
    brokers: int
    offsets: Accounting
    partitions: tuple[PartitionReport, ...]
    sequences: SequencesReport
    transactions: TransactionsReport
    batches: BatchesReport
    times: TimesReport
    settings: Mapping[str, Mapping[str, str | None]]
    settings_refusal: str | None
    findings: tuple[AuditFinding, ...]
    guarantees: tuple[Guarantee, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-able data. No file says here which tombstones erase: there are none."""
        return asdict(self, dict_factory=lambda items: {name: count for name, count in items if name not in _OF_POINTS})
