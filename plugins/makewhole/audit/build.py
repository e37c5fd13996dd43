"""Build the report of an audit from a scan: sums over partitions, the worst first, lists capped."""

from dataclasses import replace

from makewhole.audit.batches import batches_report, times_report
from makewhole.audit.findings import findings
from makewhole.audit.guarantees import guarantees
from makewhole.audit.report import (
    VERSION,
    AuditReport,
    EpochSpan,
    PartitionReport,
    TailReport,
    UnreadOffsets,
)
from makewhole.audit.sequences import sequences_report
from makewhole.audit.transactions import transactions_report
from makewhole.kafka.scan.batch_statistics import Total
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
    """Scan a topic and return the report of what was found. Reads only.

    Raises:
        ConfigurationError: the topic or a partition does not exist, or the connection's properties are wrong.
        TransientError: the brokers do not answer.
        PermanentError: they refuse us.
    """
    return report_of(scan_topic(connection, topic, wanted, on_progress), connection.bootstrap, wanted)


def report_of(scan: TopicScan, bootstrap: str, wanted: ScanRequest) -> AuditReport:
    """Return the report of a scan."""
    description = scan.description
    replicas = {partition.partition: partition for partition in description.partitions}
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
        offsets=sum((part.account.accounting for part in scan.partitions), Accounting(span=0)),
        partitions=tuple(_partition_report(part, replicas[part.range.partition]) for part in scan.partitions),
        sequences=sequences_report(scan.partitions),
        transactions=transactions_report(scan),
        batches=batches_report(scan.partitions),
        times=times_report(scan.partitions),
        settings={
            name: {"value": setting.value, "source": setting.source.value}
            for name, setting in description.settings.items()
        },
        settings_refusal=description.refusal,
        findings=(),
        guarantees=(),
    )
    return replace(bare, findings=findings(bare), guarantees=guarantees(bare))


def _partition_report(scan: PartitionScan, replicas: Replicas) -> PartitionReport:
    account, counts, total = scan.account, scan.sequences.counts, sum(scan.statistics.codecs.values(), Total())
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
            UnreadOffsets(offset=place.offset, end_offset=place.end_offset, reason=place.reason)
            for place in account.undecodable[:_LISTED_PLACES]
        ),
        undecodable_left_out=max(len(account.undecodable) - _LISTED_PLACES, 0),
        tail=TailReport(**vars(scan.tail)),
        leader_epochs=tuple(
            EpochSpan(epoch=span.epoch, start_offset=span.start_offset, end_offset=span.end_offset)
            for span in account.leader_epochs
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
