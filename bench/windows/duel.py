"""Measure a whole window, from spark-submit to the gate's answer, beside the job that people write by hand.

Each run is a process of its own, as each window of a day is: what starts is part of the figure. They take turns, and so
does who begins. Both must give the same verdicts, those that were planted.
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
    """Measure so many runs of each side, the first of a round being the last of the next."""
    data, part = DataSet(records=orders.number), f"{WINDOW}{orders.share_of_faults}"
    found = {side: Series(part=part, side=side, data=data) for side in (MAKEWHOLE, BY_HAND)}
    with prepared(bootstrap, folder, orders) as stage:
        sides = (_ours, _by_hand)
        for number in range(runs):
            for side in sides if number % 2 == 0 else sides[::-1]:
                name, cost, told = side(stage)
                found[name].warm.append(cost)
                tell(stage.line("window", name, cost, told))
    yield from found.values()


def _ours(stage: Stage) -> tuple[str, Cost, str]:
    return MAKEWHOLE, *stage.judged()


def _by_hand(stage: Stage) -> tuple[str, Cost, str]:
    service = stage.service
    with tempfile.TemporaryDirectory(dir=service.folder) as folder:
        options = {"bootstrap": service.bootstrap, "dsn": service.dsn, "name": stage.orders.name, "folder": folder}
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        cost, found = run_module("bench.windows.by_hand", arguments, {})
    stage.require_planted(BY_HAND, {(hop, verdict): keys for hop, verdict, keys in json.loads(found)})
    return BY_HAND, cost, ""
