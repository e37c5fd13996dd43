"""Report the producers of all partitions and the breaks in their numbering, the worst first."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from operator import attrgetter

from makewhole.audit.report import BreakReport, EpochReport, ProducerReport, SequencesReport
from makewhole.kafka.scan.partition import PartitionScan
from makewhole.kafka.sequences.audit import SequenceAudit
from makewhole.kafka.sequences.epoch_runs import Counts, EpochRun
from makewhole.kafka.sequences.producer_runs import Producer

_LISTED_PRODUCERS = 1000
_LISTED_BREAKS = 1000
AuditedProducer = tuple[int, SequenceAudit, Producer]


def sequences_report(scans: Sequence[PartitionScan]) -> SequencesReport:
    """Return the numbering of all producers."""
    by_id: dict[int, list[AuditedProducer]] = defaultdict(list)
    for scan in scans:
        for producer in scan.sequences.producers:
            by_id[producer.producer_id].append((scan.range.partition, scan.sequences, producer))
    counts = {producer_id: _counts(known) for producer_id, known in by_id.items()}
    total = sum(counts.values(), Counts())
    worst = nsmallest(_LISTED_PRODUCERS, by_id, key=lambda producer_id: _severity(counts[producer_id], producer_id))
    everyone = [[producer for _, _, producer in known] for known in by_id.values()]
    breaks = _breaks(scans)
    return SequencesReport(
        producers=len(by_id),
        epochs=sum(max(producer.epochs for producer in known) for known in everyone),
        epoch_bumps=sum(max(producer.bumps for producer in known) for known in everyone),
        epoch_regressions=sum(producer.regressions for known in everyone for producer in known),
        gaps=total.gaps,
        missing=total.missing,
        repeats=total.repeats,
        repeated=total.repeated,
        missing_heads=total.missing_heads,
        wraps=total.wraps,
        breaks=breaks,
        breaks_left_out=total.gaps + total.repeats + total.missing_heads - len(breaks),
        listed=tuple(_producer_report(producer_id, by_id[producer_id], counts[producer_id]) for producer_id in worst),
        left_out=len(by_id) - len(worst),
    )


def _counts(known: Iterable[AuditedProducer]) -> Counts:
    return sum((audit.counts_of(producer) for _, audit, producer in known), Counts())


def _severity(counts: Counts, producer_id: int) -> tuple[int, ...]:
    broken = counts.gaps + counts.repeats + counts.missing_heads
    return -broken, -counts.missing - counts.repeated, -counts.records, producer_id


def _producer_report(producer_id: int, known: list[AuditedProducer], counts: Counts) -> ProducerReport:
    runs = [(partition, audit, producer, run) for partition, audit, producer in known for run in producer.listed]
    return ProducerReport(
        producer_id=producer_id,
        partitions=tuple(partition for partition, _, _ in known),
        newest_epoch=max(run.producer_epoch for _, _, _, run in runs),
        epoch_count=max(producer.epochs for _, _, producer in known),
        epoch_bumps=max(producer.bumps for _, _, producer in known),
        epoch_regressions=sum(producer.regressions for _, _, producer in known),
        batches=counts.batches,
        records=counts.records,
        gaps=counts.gaps,
        missing=counts.missing,
        repeats=counts.repeats,
        repeated=counts.repeated,
        missing_heads=counts.missing_heads,
        wraps=counts.wraps,
        first_timestamp_ms=min(run.first_timestamp for _, _, _, run in runs),
        last_timestamp_ms=max(run.last_timestamp for _, _, _, run in runs),
        epochs=tuple(_epoch_report(*run) for run in runs),
        epochs_left_out=sum(producer.epochs for _, _, producer in known) - len(runs),
    )


def _epoch_report(partition: int, audit: SequenceAudit, producer: Producer, run: EpochRun) -> EpochReport:
    head = audit.missing_head(producer) if run is producer.runs[0] else None
    return EpochReport(
        partition=partition,
        epoch=run.producer_epoch,
        first_sequence=run.first_sequence,
        last_sequence=run.last_sequence,
        first_offset=run.first_offset,
        last_offset=run.end_offset - 1,
        first_timestamp_ms=run.first_timestamp,
        last_timestamp_ms=run.last_timestamp,
        batches=run.counts.batches,
        records=run.counts.records,
        gaps=run.counts.gaps,
        missing=run.counts.missing,
        repeats=run.counts.repeats,
        repeated=run.counts.repeated,
        missing_head=run.missing_head if head is None else head.records,
        wraps=run.counts.wraps,
        is_exact=run.is_exact,
    )


def _breaks(scans: Iterable[PartitionScan]) -> tuple[BreakReport, ...]:
    """Return the largest breaks, largest first; those of equal size in the order of the log."""
    breaks = [
        BreakReport(
            kind=place.kind.value,
            partition=scan.range.partition,
            producer_id=place.producer_id,
            producer_epoch=place.producer_epoch,
            offset=place.offset,
            expected=place.expected,
            found=place.found,
            records=place.records,
        )
        for scan in scans
        for place in scan.sequences.breaks
    ]
    breaks.sort(key=attrgetter("partition", "offset"))
    return tuple(sorted(breaks, key=lambda place: -place.records)[:_LISTED_BREAKS])
