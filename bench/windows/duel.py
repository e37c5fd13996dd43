"""Measure a whole window, from spark-submit to the gate's answer, beside the job that people write by hand.

Each run is a process of its own, as each window of a day is: what starts is part of the figure. Both must give the same
verdicts, those that were planted.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measuring.data_set import DataSet
from bench.measuring.meter import Cost
from bench.measuring.results import Series
from bench.windows.orders import Orders
from bench.windows.service import run_module
from bench.windows.stage import MAKEWHOLE, Stage, Tell, prepared

BY_HAND = "by hand"
WINDOW = "window "
"""Marks the name of each part, at its start."""


def measured(bootstrap: str, folder: Path, orders: Orders, runs: int, tell: Tell) -> Iterator[Series]:
    """Measure so many runs of each side, in turn."""
    data, part = DataSet(records=orders.number), f"{WINDOW}{orders.share_of_faults}"
    found = {side: Series(part=part, side=side, data=data) for side in (MAKEWHOLE, BY_HAND)}
    with prepared(bootstrap, folder, orders) as stage:
        for _ in range(runs):
            cost, told = stage.judged()
            found[MAKEWHOLE].warm.append(cost)
            tell(stage.line("window", MAKEWHOLE, cost, told))
            cost = _by_hand(stage)
            found[BY_HAND].warm.append(cost)
            tell(stage.line("window", BY_HAND, cost))
    yield from found.values()


def _by_hand(stage: Stage) -> Cost:
    service = stage.service
    with tempfile.TemporaryDirectory(dir=service.folder) as folder:
        options = {"bootstrap": service.bootstrap, "dsn": service.dsn, "name": stage.orders.name, "folder": folder}
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        cost, found = run_module("bench.windows.by_hand", arguments, {})
    stage.require_planted(BY_HAND, {(hop, verdict): keys for hop, verdict, keys in json.loads(found)})
    return cost
