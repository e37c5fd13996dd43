"""Run the service's steps over the systems of a benchmark, each in a process of its own."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Self

from bench.measuring.meter import Cost, Meter
from bench.windows.orders import VERDICTS, Counts
from makewhole.config.connection_text import variable_of
from makewhole.config.pipeline_file import read_pipelines
from makewhole.journal.database import connect, migrate
from makewhole.journal.results import hop_results
from makewhole.model.connection import Connection, IcebergConnection, KafkaConnection, PostgresConnection
from makewhole.model.window import Window
from makewhole.stack.environment import connection_kafka, connection_postgres
from makewhole.stack.postgres_server import PostgresServer, create_database
from makewhole.window.opening.open import Request, open_interval

PIPELINE = "bench"
"""The name of the one pipeline of a service."""


@dataclass(frozen=True, kw_only=True)
class SparkMaster:
    """The Spark that a window is submitted to, with its settings, and the processes of it that run all the time."""

    url: str
    settings: Mapping[str, str] = field(default_factory=dict)
    pids: tuple[int, ...] = ()


ONE_MACHINE = SparkMaster(url="local[2]")


@dataclass(frozen=True, kw_only=True)
class Service:
    """The service's journal and folder (`storage`, `pipelines`), and the systems that its pipeline compares. `lake`
    has pyiceberg's properties of a catalogue; None: there is none."""

    bootstrap: str
    dsn: str
    journal: str
    folder: Path
    lake: Mapping[str, str] | None = None

    @classmethod
    def at(cls, server: PostgresServer, bootstrap: str, folder: Path) -> Self:
        """Make a service with an empty journal, and an empty database for the tables that its pipeline compares."""
        journal = create_database(server.dsn, "journal")
        migrate(journal)
        return cls(bootstrap=bootstrap, dsn=create_database(server.dsn, "shop"), journal=journal, folder=folder)

    @property
    def database(self) -> PostgresConnection:
        """The connection to the tables, `db`."""
        return PostgresConnection(id="db", dsn=self.dsn)

    @property
    def connections(self) -> Mapping[str, str]:
        """The connections of the pipeline, by their ids, as Airflow writes them."""
        known = {"log": connection_kafka(self.bootstrap), "db": connection_postgres(self.dsn)}
        return (
            known if self.lake is None else known | {"lake": json.dumps({"conn_type": "iceberg", "extra": self.lake})}
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables in which the service finds its systems."""
        return {
            "MAKEWHOLE_JOURNAL_DSN": self.journal,
            "MAKEWHOLE_STORAGE": str(self.folder / "storage"),
            "MAKEWHOLE_PIPELINES": str(self.folder / "pipelines"),
            **{variable_of(name): text for name, text in self.connections.items()},
        }

    def write_pipeline(self, text: str, beside: Mapping[str, str] | None = None) -> None:
        """Write the file of the pipeline, whose connections are `log`, `db` and `lake`, and files that lie beside
        it."""
        folder = self.folder / "pipelines"
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in {f"{PIPELINE}.yaml": text, **(beside or {})}.items():
            (folder / name).write_text(content)

    def open_window(self, end: datetime, *, read_again: bool = True) -> Window:
        """Open the window that ends then, or the next revision of it, which reads every point again unless it is not
        asked to."""
        pipelines, problems = read_pipelines([self.folder / "pipelines"])
        if problems:
            raise RuntimeError(f"the pipeline of the benchmark is refused: {problems}")
        connections: dict[str, Connection] = {
            "log": KafkaConnection(id="log", properties={"bootstrap.servers": self.bootstrap}),
            "db": self.database,
        }
        if self.lake is not None:
            connections["lake"] = IcebergConnection(id="lake", catalog="default", properties=self.lake)
        request = Request(id=uuid.uuid4().hex, end=end, read_again=read_again)
        with connect(self.journal) as journal:
            return open_interval(journal, pipelines[PIPELINE], connections, request).window

    def run_window(self, window: Window, master: SparkMaster = ONE_MACHINE) -> tuple[Counts, Cost, str]:
        """Take a window from spark-submit to the gate's answer; return its verdicts, its cost, and the seconds of each
        step in a sentence."""
        place = ["--pipeline", window.pipeline, "--window", str(window.number), "--revision", str(window.revision)]
        settings = [part for name, text in master.settings.items() for part in ("--conf", f"{name}={text}")]
        arguments = ["--master", master.url, *settings, *place]
        cost, seconds = run_module("bench.windows.steps", arguments, self.environment, master.pids)
        with connect(self.journal) as journal:
            results = hop_results.results(journal, window)
        counts = {
            (hop, name): keys
            for hop, result in results.items()
            for name, keys in asdict(result.counts).items()
            if name in VERDICTS
        }
        return counts, cost, seconds


def run_module(
    module: str,
    arguments: list[str],
    environment: Mapping[str, str],
    others: Sequence[int] = (),
    python: str = sys.executable,
) -> tuple[Cost, str]:
    """Run a module in a process of its own; return its cost with that of the processes `others`, and the line that it
    printed. It waits for the end of its input, so that its processor time can still be read."""
    command = [python, "-m", module, *arguments]
    variables = {**os.environ, **environment, "PYSPARK_PYTHON": python}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
    ) as process:
        assert process.stdout is not None
        with Meter(process.pid, others) as meter:
            line = process.stdout.readline()
        _, complaints = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{module} ended with {process.returncode}: {complaints[-6000:]}")
    return meter.cost, line.rstrip()
