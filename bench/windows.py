"""Measure a whole window, from spark-submit to the gate's answer, beside the job that people write by hand.

Each run is a process of its own, as each window of a day is: what starts is part of the figure. Both must give the same
verdicts, those that were planted.
"""

import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.data import DataSet, millions
from bench.measure import Cost, Meter
from bench.results import Series
from bench.window_data import VERDICTS, Counts, Orders, fill_tables, fill_topic
from makewhole.config.pipeline_file import read_pipelines
from makewhole.journal import window_results
from makewhole.journal.database import connect, migrate
from makewhole.model.connection import Connection, KafkaConnection, PostgresConnection
from makewhole.model.window import Window
from makewhole.stack.environment import connection_kafka, connection_postgres
from makewhole.stack.postgres_server import PostgresServer, create_database
from makewhole.window.open import Request, open_interval

MAKEWHOLE, BY_HAND = "makewhole", "by hand"
WINDOW = "window "
"""Marks the name of each part, at its start."""
Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The systems with their data, the service's journal and folder, and the end of the window."""

    bootstrap: str
    dsn: str
    journal: str
    folder: Path
    orders: Orders
    end: datetime

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables in which the service finds its systems."""
        return {
            "MAKEWHOLE_JOURNAL_DSN": self.journal,
            "MAKEWHOLE_STORAGE": str(self.folder / "storage"),
            "MAKEWHOLE_PIPELINES": str(self.folder / "pipelines"),
            "AIRFLOW_CONN_LOG": connection_kafka(self.bootstrap),
            "AIRFLOW_CONN_DB": connection_postgres(self.dsn),
        }

    def open_window(self) -> Window:
        """Open the window of everything that is there, or the next revision of it."""
        pipelines, problems = read_pipelines([self.folder / "pipelines"])
        if problems:
            raise RuntimeError(f"the pipeline of the benchmark is refused: {problems}")
        connections: dict[str, Connection] = {
            "log": KafkaConnection(id="log", properties={"bootstrap.servers": self.bootstrap}),
            "db": PostgresConnection(id="db", dsn=self.dsn),
        }
        request = Request(id=uuid.uuid4().hex, end=self.end)
        with connect(self.journal) as journal:
            return open_interval(journal, pipelines["bench"], connections, request).window


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
    journal = create_database(server.dsn, "journal")
    migrate(journal)
    dsn = create_database(server.dsn, "shop")
    fill_tables(PostgresConnection(id="db", dsn=dsn), orders)
    fill_topic(bootstrap, orders)
    pipelines = home / "pipelines"
    pipelines.mkdir()
    (pipelines / "bench.yaml").write_text(orders.pipeline_file("bench", kafka="log", postgres="db"))
    return Stage(bootstrap=bootstrap, dsn=dsn, journal=journal, folder=home, orders=orders, end=datetime.now(UTC))


def _require_planted(orders: Orders, side: str, counts: Counts) -> None:
    found = {place: keys for place, keys in counts.items() if keys}
    if found != orders.planted:
        raise RuntimeError(f"{side}: {orders.name}: found {found}, planted are {orders.planted}")


def _window(stage: Stage) -> tuple[Counts, Cost, str]:
    window = stage.open_window()
    place = ["--pipeline", window.pipeline, "--window", str(window.number), "--revision", str(window.revision)]
    cost, seconds = _process("bench.window_steps", place, stage.environment)
    with connect(stage.journal) as journal:
        results = window_results.results(journal, window)
    counts = {
        (hop, name): keys
        for hop, result in results.items()
        for name, keys in asdict(result.counts).items()
        if name in VERDICTS
    }
    return counts, cost, f": {seconds}"


def _by_hand(stage: Stage) -> tuple[Counts, Cost, str]:
    with tempfile.TemporaryDirectory(dir=stage.folder) as folder:
        options = {"bootstrap": stage.bootstrap, "dsn": stage.dsn, "name": stage.orders.name, "folder": folder}
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        cost, found = _process("bench.window_by_hand", arguments, {})
    return {(hop, verdict): keys for hop, verdict, keys in json.loads(found)}, cost, ""


def _process(module: str, arguments: list[str], environment: Mapping[str, str]) -> tuple[Cost, str]:
    """Run a module in a process of its own; return its cost, and the line that it printed. It waits for the end of its
    input, so that its processor time can still be read."""
    command = [sys.executable, "-m", module, *arguments]
    variables = {**os.environ, **environment, "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
    ) as process:
        assert process.stdout is not None
        with Meter(process.pid) as meter:
            line = process.stdout.readline()
        _, complaints = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{module} ended with {process.returncode}: {complaints[-2000:]}")
    return meter.cost, line.rstrip()
