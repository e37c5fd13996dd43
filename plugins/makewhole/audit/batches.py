"""Report the batches of all partitions: sizes, codecs, kinds of producers, timestamps."""

from collections import defaultdict
from collections.abc import Iterable

from makewhole.audit.report import BatchesReport, SpreadReport, TimesReport, TotalReport
from makewhole.kafka.scan.batch_statistics import CODECS, Rates, Spread, Total
from makewhole.kafka.scan.partition import PartitionScan


def batches_report(scans: Iterable[PartitionScan]) -> BatchesReport:
    """Return the data batches of all partitions by codec, by kind of producer, and by size."""
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
        total=_total_report(sum(codecs.values(), Total())),
        codecs={name: _total_report(total) for name, total in sorted(codecs.items())},
        kinds={name: _total_report(total) for name, total in sorted(kinds.items())},
        records_per_batch=spread_report(records),
        bytes_per_batch=spread_report(size_bytes),
    )


def times_report(scans: Iterable[PartitionScan]) -> TimesReport:
    """Return what the timestamps of all partitions' batches add up to."""
    times, rates = [scan.statistics.times for scan in scans], Rates()
    for scan in scans:
        rates.merge(scan.statistics.rates)
    width = rates.width_ms
    return TimesReport(
        oldest_ms=min((stamps.oldest_ms for stamps in times if stamps.oldest_ms is not None), default=None),
        newest_ms=max((stamps.newest_ms for stamps in times if stamps.newest_ms is not None), default=None),
        late=_total_report(sum((stamps.late for stamps in times), Total())),
        latest_ms=max((stamps.latest_ms for stamps in times), default=0),
        without=_total_report(sum((stamps.without for stamps in times), Total())),
        log_append=_total_report(sum((stamps.log_append for stamps in times), Total())),
        width_ms=width,
        rates=tuple((bucket * width, records) for bucket, records in sorted(rates.records.items())),
    )


def _total_report(total: Total) -> TotalReport:
    return TotalReport(batches=total.batches, records=total.records, size_bytes=total.size_bytes)


def spread_report(spread: Spread) -> SpreadReport:
    """Return a spread with the upper bound of each class in place of its power of two."""
    return SpreadReport(
        count=spread.count,
        total=spread.total,
        least=spread.least,
        most=spread.most,
        at_most=tuple((2 ** (power + 1) - 1, count) for power, count in sorted(spread.by_power.items())),
    )
