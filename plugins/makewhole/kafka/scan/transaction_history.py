"""Collect the transactions of one partition from its log: data batches, then the marker that ends them.

Markers are matched by producer id alone: a marker's epoch may be one above that of its data (KIP-890). What began
before the range, and what compaction or retention has taken, shows as a marker without data.
"""

from dataclasses import dataclass, field
from heapq import heappush, heappushpop

from makewhole.kafka.log.batches import Batch
from makewhole.kafka.scan.batch_statistics import Spread

LISTED = 100


@dataclass(kw_only=True, slots=True)
class Transaction:
    """A transaction of one partition: offsets `[first_offset, end_offset)`, its marker included; `is_commit` None while
    it is open.

    Times in ms of the epoch: the first batch's is its producer's, the marker's its coordinator's.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    end_offset: int
    records: int
    batches: int
    first_timestamp_ms: int
    last_timestamp_ms: int
    is_commit: bool | None = None

    @property
    def duration_ms(self) -> int:
        return self.last_timestamp_ms - self.first_timestamp_ms


@dataclass(kw_only=True)
class EndedTransactions:
    """Transactions that ended the same way. `listed` are the first of them."""

    count: int = 0
    records: int = 0
    without_data: int = 0
    records_each: Spread = field(default_factory=Spread)
    longest_ms: int = 0
    listed: list[Transaction] = field(default_factory=list)

    def add(self, transaction: Transaction | None) -> None:
        """Count a transaction by its marker; None where no data of it was seen."""
        self.count += 1
        if transaction is None:
            self.without_data += 1
            return
        self.records += transaction.records
        self.records_each.add(transaction.records)
        self.longest_ms = max(self.longest_ms, transaction.duration_ms)
        if len(self.listed) < LISTED:
            self.listed.append(transaction)


class TransactionHistory:
    """Transactions of a partition, which grow batch by batch, in offset order. `open` is by producer id."""

    def __init__(self) -> None:
        self.open: dict[int, Transaction] = {}
        self.committed = EndedTransactions()
        self.aborted = EndedTransactions()
        self._longest: list[tuple[int, int, Transaction]] = []

    @property
    def longest(self) -> list[Transaction]:
        """Transactions that lasted longest from their first batch to their marker, longest first."""
        return [transaction for _, _, transaction in sorted(self._longest, key=lambda entry: (-entry[0], entry[1]))]

    def add_data(self, batch: Batch) -> None:
        """Add a transactional data batch."""
        transaction = self.open.get(batch.producer_id)
        if transaction is None:
            self.open[batch.producer_id] = Transaction(
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                first_offset=batch.base_offset,
                end_offset=batch.end_offset,
                records=batch.record_count,
                batches=1,
                first_timestamp_ms=batch.first_timestamp,
                last_timestamp_ms=batch.max_timestamp,
            )
            return
        transaction.producer_epoch = batch.producer_epoch
        transaction.end_offset, transaction.last_timestamp_ms = batch.end_offset, batch.max_timestamp
        transaction.records += batch.record_count
        transaction.batches += 1

    def add_marker(self, batch: Batch, *, is_commit: bool) -> None:
        """End the producer's open transaction, if it was seen, by its marker."""
        transaction = self.open.pop(batch.producer_id, None)
        if transaction is not None:
            transaction.is_commit = is_commit
            transaction.end_offset, transaction.last_timestamp_ms = batch.end_offset, batch.max_timestamp
            self._note_longest(transaction)
        (self.committed if is_commit else self.aborted).add(transaction)

    def _note_longest(self, transaction: Transaction) -> None:
        entry = (transaction.duration_ms, transaction.first_offset, transaction)
        if len(self._longest) < LISTED // 10:
            heappush(self._longest, entry)
        elif entry[:2] > self._longest[0][:2]:
            heappushpop(self._longest, entry)
