"""Measure a window over an Iceberg table whose rows carry positions, beside a Spark job with Iceberg's own reader.

    python -m bench.windows.iceberg --records 10000000

Each run is a process of its own: cold, from spark-submit to the gate's answer on one side, to the job's counts on the
other. They take turns, and so does who begins. Both must find what was planted, and nothing else.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.jars import connector_jars, iceberg_jar, jdbc_driver
from bench.measuring.meter import Cost
from bench.topics.fill import remove
from bench.windows.lake import LAKE_HOP, TABLE, LakeOrders
from bench.windows.orders import Counts
from bench.windows.service import PIPELINE, Service, run_module
from bench.windows.stage import MAKEWHOLE, Report
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.postgres_server import PostgresServer, create_database

BY_HAND = "by hand"
_STRIDE = 10_000
_FIGURES = ("wall_seconds", "cpu_seconds")


@dataclass(frozen=True, kw_only=True)
class IcebergDuel:
    """The costs of the runs of both sides, in their order."""

    orders: LakeOrders
    costs: Mapping[str, Sequence[Cost]]
    steps: Sequence[str]

    def ratio(self, figure: str) -> float:
        """Return how many times as much the job by hand takes: the median over pairs of runs."""
        pairs = zip(self.costs[MAKEWHOLE], self.costs[BY_HAND], strict=True)
        return float(median(getattr(theirs, figure) / getattr(ours, figure) for ours, theirs in pairs))

    def document(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return {
            "records": self.orders.number,
            "compares_values": self.orders.has_values,
            "ratio": {figure: round(self.ratio(figure), 2) for figure in _FIGURES},
            **{
                side: [{figure: round(getattr(cost, figure), 2) for figure in _FIGURES} for cost in costs]
                for side, costs in self.costs.items()
            },
            "steps": list(self.steps),
        }


@dataclass(frozen=True, kw_only=True)
class LakeStage:
    """The service, the orders in a topic and a table, and the end of the window."""

    service: Service
    orders: LakeOrders
    catalog_dsn: str
    end: datetime = field(default_factory=lambda: datetime.now(UTC))

    def judged(self) -> tuple[Cost, str]:
        """Judge the window once more; return the cost, and the seconds of each step in a sentence.

        Raises:
            RuntimeError: the verdicts are not those that were planted.
        """
        counts, cost, steps = self.service.run_window(self.service.open_window(self.end))
        self._require(MAKEWHOLE, {place: keys for place, keys in counts.items() if keys})
        return cost, steps

    def judged_by_hand(self) -> tuple[Cost, str]:
        """Run the job by hand; return its cost. Raises as `judged` does."""
        assert self.service.lake is not None
        jars = ",".join(str(jar) for jar in [*connector_jars(), jdbc_driver(), iceberg_jar()])
        with tempfile.TemporaryDirectory(dir=self.service.folder) as folder:
            options = {"bootstrap": self.service.bootstrap, "dsn": self.catalog_dsn, "topic": self.orders.topic}
            options |= {"warehouse": self.service.lake["warehouse"], "table": TABLE, "folder": folder, "jars": jars}
            arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
            arguments += ["--values"] if self.orders.has_values else []
            cost, line = run_module("bench.windows.positions_by_hand", arguments, {})
        self._require(BY_HAND, {(LAKE_HOP, verdict): keys for verdict, keys in json.loads(line)})
        return cost, ""

    def _require(self, side: str, counts: Counts) -> None:
        if counts != self.orders.planted:
            raise RuntimeError(f"{side}: {self.orders.topic}: found {counts}, planted are {self.orders.planted}")


@contextmanager
def prepared(bootstrap: str, folder: Path, orders: LakeOrders) -> Iterator[LakeStage]:
    """Yield a stage with the orders in a topic and in a table, whose catalogue is in a database; remove both."""
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix=orders.topic, ignore_cleanup_errors=True) as home,
        PostgresServer(Path(home) / "postgres", is_durable=False) as server,
    ):
        dsn = create_database(server.dsn, "catalog")
        lake = {
            "type": "sql",
            "uri": dsn.replace("postgresql://", "postgresql+psycopg2://", 1),
            "warehouse": f"file://{home}/warehouse",
        }
        service = replace(Service.at(server, bootstrap, Path(home)), lake=lake)
        service.write_pipeline(orders.pipeline_file(PIPELINE))
        orders.fill_topic(bootstrap)
        try:
            orders.fill_table(lake)
            yield LakeStage(service=service, orders=orders, catalog_dsn=dsn)
        finally:
            remove(bootstrap, orders.topic)


def measured(bootstrap: str, folder: Path, orders: LakeOrders, runs: int, report: Report) -> IcebergDuel:
    """Measure so many runs of each side.

    Raises:
        RuntimeError: a side has not found what was planted, or something else.
    """
    costs: dict[str, list[Cost]] = {MAKEWHOLE: [], BY_HAND: []}
    steps = []
    with prepared(bootstrap, folder, orders) as stage:
        sides = {MAKEWHOLE: stage.judged, BY_HAND: stage.judged_by_hand}
        for number in range(runs):
            for side in list(sides)[:: 1 if number % 2 == 0 else -1]:
                cost, message = sides[side]()
                costs[side].append(cost)
                steps += [message] if message else []
                report(f"{side:10} {cost.wall_seconds:6.1f} s, {cost.cpu_seconds:6.1f} s of cores  {message}")
    return IcebergDuel(orders=orders, costs=costs, steps=steps)


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--values", action="store_true", help="compare amount and status, too")
    wanted = parser.parse_args()
    orders = LakeOrders(number=wanted.records, stride=_STRIDE, has_values=wanted.values)
    with tempfile.TemporaryDirectory(prefix="makewhole-bench-") as scratch:
        server = KafkaServer(Path(scratch) / "kafka")
        try:
            server.start()
            duel = measured(server.bootstrap, Path(scratch), orders, wanted.runs, _report)
        finally:
            server.stop()
    print(json.dumps(duel.document(), indent=1))


if __name__ == "__main__":
    main()
