"""Measure a whole window, from spark-submit to the gate's answer, beside a job written by hand and datacompy.

Each run is a process of its own, as each window of a day is: what starts is part of the figure. They take turns, and so
does who begins. All must find what was planted, and nothing else.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.datacompy_environment import datacompy_python
from bench.jars import avro_jar, connector_jars, jdbc_driver
from bench.measuring.data_set import DataSet
from bench.measuring.meter import Cost
from bench.measuring.results import Series
from bench.windows.orders import Orders
from bench.windows.service import run_module
from bench.windows.stage import MAKEWHOLE, Report, Stage, prepared

BY_HAND, DATACOMPY = "by hand", "datacompy"
UNCHANGED = f"{MAKEWHOLE}, nothing changed"
"""The side that judges the window again, of which an earlier revision has read every point."""
WINDOW = "window "
"""Marks the name of each part, at its start."""


@dataclass(frozen=True, kw_only=True)
class Duel:
    """A window of these orders, which each of `sides` judges so many times, and once before where that is more than
    once: the first after filling, the cold one."""

    orders: Orders
    runs: int
    sides: Sequence[str]

    def measured(self, bootstrap: str, folder: Path, report: Report) -> Iterator[Series]:
        """Measure the runs of each side, the first of a round being the last of the next."""
        if DATACOMPY in self.sides:
            datacompy_python()  # is made before anything is measured
        costs: dict[str, list[Cost]] = {side: [] for side in self.sides}
        with prepared(bootstrap, folder, self.orders) as stage:
            for number in range(self._first + self.runs):
                for side in self.sides if number % 2 == 0 else self.sides[::-1]:
                    cost, message = _JUDGES[side](stage)
                    costs[side].append(cost)
                    report(stage.line("window", side, cost, message))
        yield from (self.series(side, runs) for side, runs in costs.items())

    def series(self, side: str, costs: Sequence[Cost]) -> Series:
        """Return the series of all runs of a side, in their order, with the first one apart where there is one."""
        return Series(
            part=f"{WINDOW}{self.orders.title}",
            side=side,
            data=DataSet(records=self.orders.number),
            cold=costs[0] if self._first else None,
            warm=list(costs[self._first :]),
        )

    @property
    def _first(self) -> int:
        """How many runs are the first one apart."""
        return 1 if self.runs > 1 else 0


def _by_hand(stage: Stage) -> tuple[Cost, str]:
    cost, answer = _plain_spark(stage, "bench.windows.by_hand", sys.executable)
    stage.require_planted(BY_HAND, {(hop, verdict): keys for hop, verdict, keys in json.loads(answer)})
    return cost, ""


def _by_datacompy(stage: Stage) -> tuple[Cost, str]:
    cost, answer = _plain_spark(stage, "bench.windows.by_datacompy", str(datacompy_python()))
    stage.require_rows_apart(DATACOMPY, {hop: tuple(rows) for hop, rows in json.loads(answer).items()})
    return cost, ""


def _plain_spark(stage: Stage, module: str, python: str) -> tuple[Cost, str]:
    """Run a job over what plain Spark reads; return its cost and its answer."""
    service = stage.service
    schema = stage.orders.avro_schema
    jars = ",".join(str(jar) for jar in [*connector_jars(), jdbc_driver(), *([avro_jar()] if schema else [])])
    with tempfile.TemporaryDirectory(dir=service.folder) as folder:
        options = {"bootstrap": service.bootstrap, "dsn": service.dsn, "name": stage.orders.name}
        options |= {"folder": folder, "jars": jars, "schema": schema or ""}
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        return run_module(module, arguments, {}, python=python)


_JUDGES: Mapping[str, Callable[[Stage], tuple[Cost, str]]] = {
    MAKEWHOLE: Stage.judged,
    BY_HAND: _by_hand,
    DATACOMPY: _by_datacompy,
    UNCHANGED: partial(Stage.judged, read_again=False),
}
