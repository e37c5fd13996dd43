"""From a scan to a report: sums over partitions, the worst first, lists capped."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from makewhole.audit.findings import findings
from makewhole.audit.guarantees import guarantees
from makewhole.audit.report import (
    VERSION,
    AuditReport,
    BatchesReport,
    EpochSpan,
    PartitionReport,
    TailReport,
    TimesReport,
    TotalReport,
    UnreadOffsets,
)
from makewhole.audit.sequences import sequences_report
from makewhole.audit.spread import spread_report
from makewhole.audit.transactions import transactions_report
from makewhole.kafka.scan.batch_statistics import CODECS, Rates, Spread, Total
from makewhole.kafka.scan.partition import PartitionScan
from makewhole.kafka.scan.topic import ScanProgress as ScanProgress
from makewhole.kafka.scan.topic import ScanRequest, TopicScan, scan_topic
from makewhole.kafka.topics import Replicas
from makewhole.model.connection import KafkaConnection
from makewhole.model.window import Accounting

_LISTED_PLACES = 100


def audit_topic(
    connection: KafkaConnection, topic: str, wanted: ScanRequest, on_progress: ScanProgress | None = None
) -> AuditReport:
    """Scan a topic and say what was found. Reads only.

    Raises:
        ConfigurationError: the topic or a partition does not exist, or the connection's properties are wrong.
        TransientError: the brokers do not answer.
        PermanentError: they refuse us.
    """
    return report_of(scan_topic(connection, topic, wanted, on_progress), connection.bootstrap, wanted)


def report_of(scan: TopicScan, bootstrap: str, wanted: ScanRequest) -> AuditReport:
    """The report of a scan."""
    description = scan.description
    replicas = {one.partition: one for one in description.partitions}
    bare = AuditReport(
        version=VERSION,
        topic=description.name,
        topic_id=description.topic_id,
        bootstrap=bootstrap,
        audited_at_ms=scan.started_at_ms,
        elapsed_seconds=round(scan.elapsed_seconds, 3),
        from_offset=wanted.from_offset,
        is_crc_checked=wanted.is_crc_checked,
        brokers=description.brokers,
        offsets=sum((one.account.accounting for one in scan.partitions), Accounting(span=0)),
        partitions=tuple(_partition(one, replicas[one.range.partition]) for one in scan.partitions),
        sequences=sequences_report(scan.partitions),
        transactions=transactions_report(scan),
        batches=_batches(scan.partitions),
        times=_times(scan.partitions),
        settings={
            name: {"value": setting.value, "source": setting.source.value}
            for name, setting in description.settings.items()
        },
        settings_refusal=description.refusal,
        findings=(),
        guarantees=(),
    )
    return replace(bare, findings=findings(bare), guarantees=guarantees(bare))


def _partition(scan: PartitionScan, replicas: Replicas) -> PartitionReport:
    account, counts, total = scan.account, scan.sequences.counts, _total(scan.statistics.codecs.values())
    return PartitionReport(
        partition=scan.range.partition,
        leader=replicas.leader,
        leader_epoch=replicas.leader_epoch,
        replicas=replicas.replicas,
        in_sync=replicas.in_sync,
        log_start=scan.bounds.log_start,
        stable=scan.bounds.stable,
        end=scan.bounds.end,
        failure=scan.failure,
        offsets=account.accounting,
        expired=tuple(account.expired),
        undecodable=tuple(
            UnreadOffsets(offset=one.offset, end_offset=one.end_offset, reason=one.reason)
            for one in account.undecodable[:_LISTED_PLACES]
        ),
        undecodable_left_out=max(len(account.undecodable) - _LISTED_PLACES, 0),
        tail=TailReport(**vars(scan.tail)),
        leader_epochs=tuple(
            EpochSpan(epoch=one.epoch, start_offset=one.start_offset, end_offset=one.end_offset)
            for one in account.leader_epochs
        ),
        batches=total.batches,
        records=total.records,
        size_bytes=total.size_bytes,
        committed_transactions=scan.transactions.committed.count,
        aborted_transactions=scan.transactions.aborted.count,
        producers=len(list(scan.sequences.producers)),
        gaps=counts.gaps,
        repeats=counts.repeats,
        missing_heads=counts.missing_heads,
    )


def _batches(scans: Iterable[PartitionScan]) -> BatchesReport:
    codecs: dict[str, Total] = defaultdict(Total)
    kinds: dict[str, Total] = defaultdict(Total)
    records, size_bytes = Spread(), Spread()
    for scan in scans:
        statistics = scan.statistics
        for codec, total in statistics.codecs.items():
            codecs[CODECS[codec] if codec < len(CODECS) else f"unknown ({codec})"] += total
        for kind, total in statistics.kinds.items():
            kinds[kind] += total
        records += statistics.records_per_batch
        size_bytes += statistics.bytes_per_batch
    return BatchesReport(
        total=_told(_total(codecs.values())),
        codecs={name: _told(total) for name, total in sorted(codecs.items())},
        kinds={name: _told(total) for name, total in sorted(kinds.items())},
        records_per_batch=spread_report(records),
        bytes_per_batch=spread_report(size_bytes),
    )


def _times(scans: Iterable[PartitionScan]) -> TimesReport:
    times, rates = [scan.statistics.times for scan in scans], Rates()
    for scan in scans:
        rates.merge(scan.statistics.rates)
    width = rates.width_ms
    return TimesReport(
        oldest_ms=min((one.oldest_ms for one in times if one.oldest_ms is not None), default=None),
        newest_ms=max((one.newest_ms for one in times if one.newest_ms is not None), default=None),
        late=_told(_total(one.late for one in times)),
        latest_ms=max((one.latest_ms for one in times), default=0),
        without=_told(_total(one.without for one in times)),
        log_append=_told(_total(one.log_append for one in times)),
        width_ms=width,
        rates=tuple((bucket * width, records) for bucket, records in sorted(rates.records.items())),
    )


def _total(totals: Iterable[Total]) -> Total:
    return sum(totals, Total())


def _told(total: Total) -> TotalReport:
    return TotalReport(batches=total.batches, records=total.records, size_bytes=total.size_bytes)
