"""Report the transactions of all partitions, as the log and as the coordinators show them."""

from collections.abc import Iterable

from makewhole.audit.batches import spread_report
from makewhole.audit.report import EndedReport, OpenReport, TransactionReport, TransactionsReport
from makewhole.kafka.open_transactions import OpenTransaction
from makewhole.kafka.scan.batch_statistics import Spread
from makewhole.kafka.scan.partition import PartitionScan
from makewhole.kafka.scan.topic import TopicScan
from makewhole.kafka.scan.transaction_history import EndedTransactions, Transaction

_LISTED = 100
_LONGEST = 10


def transactions_report(scan: TopicScan) -> TransactionsReport:
    """Return how every transaction ended, or that it is open."""
    scans = scan.partitions
    aborted = [_transaction_report(part, ended) for part in scans for ended in part.transactions.aborted.listed]
    longest = [_transaction_report(part, ended) for part in scans for ended in part.transactions.longest]
    count = sum(part.transactions.aborted.count - part.transactions.aborted.without_data for part in scans)
    return TransactionsReport(
        committed=_ended_report(part.transactions.committed for part in scans),
        aborted=_ended_report(part.transactions.aborted for part in scans),
        open=tuple(_open_reports(scan)),
        open_refusal=scan.open_refusal,
        longest=tuple(sorted(longest, key=lambda transaction: -transaction.duration_ms)[:_LONGEST]),
        aborted_listed=tuple(aborted[:_LISTED]),
        aborted_left_out=count - len(aborted[:_LISTED]),
    )


def _ended_report(ended: Iterable[EndedTransactions]) -> EndedReport:
    parts = list(ended)
    return EndedReport(
        count=sum(part.count for part in parts),
        records=sum(part.records for part in parts),
        without_data=sum(part.without_data for part in parts),
        longest_ms=max((part.longest_ms for part in parts), default=0),
        records_each=spread_report(sum((part.records_each for part in parts), Spread())),
    )


def _transaction_report(scan: PartitionScan, transaction: Transaction) -> TransactionReport:
    return TransactionReport(
        partition=scan.range.partition,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        first_offset=transaction.first_offset,
        end_offset=transaction.end_offset,
        records=transaction.records,
        batches=transaction.batches,
        started_at_ms=transaction.first_timestamp_ms,
        ended_at_ms=transaction.last_timestamp_ms,
        duration_ms=transaction.duration_ms,
        is_commit=bool(transaction.is_commit),
    )


def _open_reports(scan: TopicScan) -> Iterable[OpenReport]:
    """Yield the transactions that the coordinators call open; where they cannot be asked, those that the log shows as
    not ended behind the stable offset."""
    unended = ((part.range.partition, transaction) for part in scan.partitions for transaction in _unended(part))
    seen = {(partition, transaction.producer_id): transaction for partition, transaction in unended}
    if scan.open_refusal is None:
        for open_transaction in scan.open_transactions:
            yield _open_report(open_transaction, seen.get((open_transaction.partition, open_transaction.producer_id)))
        return
    for (partition, _), transaction in sorted(seen.items()):
        yield OpenReport(
            partition=partition,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            first_offset=transaction.first_offset,
            last_timestamp_ms=transaction.last_timestamp_ms,
            records=transaction.records,
            batches=transaction.batches,
            transactional_id=None,
            state=None,
            started_at_ms=None,
            timeout_ms=None,
            is_hanging=False,
        )


def _unended(scan: PartitionScan) -> list[Transaction]:
    stable = scan.bounds.stable
    return [transaction for transaction in scan.transactions.open.values() if transaction.end_offset > stable]


def _open_report(transaction: OpenTransaction, seen: Transaction | None) -> OpenReport:
    return OpenReport(
        partition=transaction.partition,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        first_offset=transaction.first_offset,
        last_timestamp_ms=transaction.last_timestamp_ms,
        records=seen.records if seen else 0,
        batches=seen.batches if seen else 0,
        transactional_id=transaction.transactional_id,
        state=transaction.state,
        started_at_ms=transaction.started_at_ms,
        timeout_ms=transaction.timeout_ms,
        is_hanging=transaction.is_hanging,
    )
