"""Spreads in a report."""

from makewhole.audit.report import SpreadReport
from makewhole.kafka.scan.batch_statistics import Spread


def spread_report(spread: Spread) -> SpreadReport:
    """A spread with the upper bound of each class in place of its power of two."""
    return SpreadReport(
        count=spread.count,
        total=spread.total,
        least=spread.least,
        most=spread.most,
        at_most=tuple((2 ** (power + 1) - 1, count) for power, count in sorted(spread.by_power.items())),
    )
