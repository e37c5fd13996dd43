"""Measure a whole window, from spark-submit to the gate's answer, beside the job that people write by hand.

Each run is a process of its own, as each window of a day is: what starts is part of the figure. Both must give the same
verdicts, those that were planted.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.measuring.data_set import DataSet, millions
from bench.measuring.meter import Cost
from bench.measuring.results import Series
from bench.windows.orders import Counts, Orders, fill_tables, fill_topic
from bench.windows.service import PIPELINE, Service, run_module
from makewhole.stack.postgres_server import PostgresServer

MAKEWHOLE, BY_HAND = "makewhole", "by hand"
WINDOW = "window "
"""Marks the name of each part, at its start."""
Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The service with its systems, the data in them, and the end of the window."""

    service: Service
    orders: Orders
    end: datetime


def measured(bootstrap: str, folder: Path, orders: Orders, runs: int, tell: Tell) -> Iterator[Series]:
    """Measure so many runs of each side, in turn."""
    home = folder / orders.name
    with PostgresServer(home / "postgres", is_durable=False) as server:
        stage = _stage(server, bootstrap, home, orders)
        data = DataSet(records=orders.number)
        found = {side: Series(part=part_of(orders), side=side, data=data) for side in (MAKEWHOLE, BY_HAND)}
        for _ in range(runs):
            for side, run in ((MAKEWHOLE, _window), (BY_HAND, _by_hand)):
                counts, cost, told = run(stage)
                _require_planted(orders, side, counts)
                found[side].warm.append(cost)
                taken = f"{cost.wall_seconds:6.1f} s, {cost.cpu_seconds:6.1f} s of cores"
                tell(f"window   {millions(orders.number):18} {side:18} {taken}{told}")
        yield from found.values()


def part_of(orders: Orders) -> str:
    """Return the name of the part, with the share of keys that go wrong."""
    return f"{WINDOW}{5 / orders.stride:.2%}"


def _stage(server: PostgresServer, bootstrap: str, home: Path, orders: Orders) -> Stage:
    service = Service.at(server, bootstrap, home)
    fill_tables(service.database, orders)
    fill_topic(bootstrap, orders)
    service.write_pipeline(orders.pipeline_file(PIPELINE, kafka="log", postgres="db"))
    return Stage(service=service, orders=orders, end=datetime.now(UTC))


def _require_planted(orders: Orders, side: str, counts: Counts) -> None:
    found = {place: keys for place, keys in counts.items() if keys}
    if found != orders.planted:
        raise RuntimeError(f"{side}: {orders.name}: found {found}, planted are {orders.planted}")


def _window(stage: Stage) -> tuple[Counts, Cost, str]:
    counts, cost, seconds = stage.service.run_window(stage.service.open_window(stage.end))
    return counts, cost, f": {seconds}"


def _by_hand(stage: Stage) -> tuple[Counts, Cost, str]:
    service = stage.service
    with tempfile.TemporaryDirectory(dir=service.folder) as folder:
        options = {"bootstrap": service.bootstrap, "dsn": service.dsn, "name": stage.orders.name, "folder": folder}
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        cost, found = run_module("bench.windows.by_hand", arguments, {})
    return {(hop, verdict): keys for hop, verdict, keys in json.loads(found)}, cost, ""
