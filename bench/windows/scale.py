"""Measure makewhole's side of a whole window alone, at sizes that are far apart: what a record costs at each."""

from collections.abc import Iterator
from pathlib import Path

from bench.measuring.data_set import DataSet
from bench.measuring.results import Series
from bench.windows.orders import Orders
from bench.windows.stage import MAKEWHOLE, Report, prepared

SCALE = "scale "
"""Marks the name of each part, at its start."""


def measured(bootstrap: str, folder: Path, orders: Orders, runs: int, report: Report) -> Iterator[Series]:
    """Measure so many runs at one size."""
    series = Series(part=f"{SCALE}{orders.share_of_faults}", side=MAKEWHOLE, data=DataSet(records=orders.number))
    with prepared(bootstrap, folder, orders) as stage:
        for _ in range(runs):
            cost, message = stage.judged()
            series.warm.append(cost)
            report(stage.line("scale", MAKEWHOLE, cost, message))
    yield series
