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
    aborted = [_transaction_report(found, one) for found in scans for one in found.transactions.aborted.listed]
    longest = [_transaction_report(found, one) for found in scans for one in found.transactions.longest]
    count = sum(found.transactions.aborted.count - found.transactions.aborted.without_data for found in scans)
    return TransactionsReport(
        committed=_ended_report(found.transactions.committed for found in scans),
        aborted=_ended_report(found.transactions.aborted for found in scans),
        open=tuple(_open_reports(scan)),
        open_refusal=scan.open_refusal,
        longest=tuple(sorted(longest, key=lambda one: -one.duration_ms)[:_LONGEST]),
        aborted_listed=tuple(aborted[:_LISTED]),
        aborted_left_out=count - len(aborted[:_LISTED]),
    )


def _ended_report(ended: Iterable[EndedTransactions]) -> EndedReport:
    found = list(ended)
    return EndedReport(
        count=sum(one.count for one in found),
        records=sum(one.records for one in found),
        without_data=sum(one.without_data for one in found),
        longest_ms=max((one.longest_ms for one in found), default=0),
        records_each=spread_report(sum((one.records_each for one in found), Spread())),
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
    seen = {(one.range.partition, found.producer_id): found for one in scan.partitions for found in _unended(one)}
    if scan.open_refusal is None:
        for one in scan.open_transactions:
            yield _open_report(one, seen.get((one.partition, one.producer_id)))
        return
    for (partition, _), found in sorted(seen.items()):
        yield OpenReport(
            partition=partition,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            first_offset=found.first_offset,
            last_timestamp_ms=found.last_timestamp_ms,
            records=found.records,
            batches=found.batches,
            transactional_id=None,
            state=None,
            started_at_ms=None,
            timeout_ms=None,
            is_hanging=False,
        )


def _unended(scan: PartitionScan) -> list[Transaction]:
    return [one for one in scan.transactions.open.values() if one.end_offset > scan.bounds.stable]


def _open_report(one: OpenTransaction, seen: Transaction | None) -> OpenReport:
    return OpenReport(
        partition=one.partition,
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        first_offset=one.first_offset,
        last_timestamp_ms=one.last_timestamp_ms,
        records=seen.records if seen else 0,
        batches=seen.batches if seen else 0,
        transactional_id=one.transactional_id,
        state=one.state,
        started_at_ms=one.started_at_ms,
        timeout_ms=one.timeout_ms,
        is_hanging=one.is_hanging,
    )
