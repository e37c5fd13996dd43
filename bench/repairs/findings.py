"""Measure a window in which nearly every key is missing, from the comparison to the certificate, step by step.

Each step is a process of its own, as a task is: its seconds, and the most memory that the process itself held.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from psycopg2 import sql

from bench.measuring.data_set import DataSet, millions
from bench.measuring.meter import Cost
from bench.measuring.results import Series
from bench.topics.fill import fill
from bench.windows.service import PIPELINE, Service, run_module
from makewhole.model.window import Window
from makewhole.postgres.connect import connect
from makewhole.stack.postgres_server import PostgresServer

FINDINGS = "findings "
"""Marks the name of each part, at its start; the step follows."""
SPARK = "judge"
STEPS = ("plan", "dry_run", "approve", "compensate", "verify", "certify")
SIDE = "makewhole"
ALONE = 1
"""The row that the store has: one in which nothing was ever loaded is a question for a person."""
_MIB = 2**20
Report = Callable[[str], None]
_HOP = "flights→store"
_TABLE = """
create table {table} (
    flight_id text primary key, carrier text, dep_delay double precision, seats integer,
    loaded timestamptz default now()
);
insert into {table} (flight_id, carrier, dep_delay, seats) values ('F000000000', 'AA', 0, 50);
create index on {table} (loaded);
"""
_PIPELINE = """\
version: 2
pipeline: {pipeline}
start: earliest
settle: 0s
compare: {{carrier: string, dep_delay: double, seats: int}}
points:
  flights: {{kind: topic, connection: log, topic: {topic}, key: "$.flight_id"}}
  store: {{kind: store, connection: db, table: {table}, key: flight_id, time: loaded}}
hops:
  - {{from: flights, to: store}}
compensation:
  missing: upsert
  limits: {{actions: {most}, share: 1.0, records_per_second: 1000000}}
  approval: {{above_actions: 100}}
"""


def measured(bootstrap: str, folder: Path, number: int, report: Report) -> Iterator[Series]:
    """Measure one window of so many records, all but one of which the store lacks."""
    data = DataSet(records=number)
    home = folder / f"findings_{number}"
    with PostgresServer(home / "postgres", is_durable=False) as server:
        service = Service.at(server, bootstrap, home)
        _prepare(service, data)
        window = service.open_window(datetime.now(UTC))
        counts, cost, message = service.run_window(window)
        _require_missing(counts.get((_HOP, "missing"), 0), number)
        yield _reported(report, data, SPARK, cost, message)
        for step in STEPS:
            cost, message = _step(service, window, step)
            yield _reported(report, data, step, cost, message)


def _prepare(service: Service, data: DataSet) -> None:
    topic = f"findings-{data.topic}"  # other parts fill that of the data set
    fill(service.bootstrap, data, lambda _: None, topic)
    table = topic.replace("-", "_")
    with connect(service.database) as session, session.cursor() as cursor:
        cursor.execute(sql.SQL(_TABLE).format(table=sql.Identifier(table)))
        session.commit()
    text = _PIPELINE.format(pipeline=PIPELINE, topic=topic, table=table, most=data.records)
    service.write_pipeline(text)


def _step(service: Service, window: Window, step: str) -> tuple[Cost, str]:
    """Run a step in a process of its own; its memory is the most that it held, as it says itself."""
    place = [step, "--window", str(window.number), "--revision", str(window.revision)]
    cost, line = run_module("bench.repairs.findings_steps", place, service.environment)
    outcome = json.loads(line)
    return (
        Cost(
            wall_seconds=outcome["seconds"],
            python_cpu_seconds=cost.python_cpu_seconds,
            jvm_cpu_seconds=cost.jvm_cpu_seconds,
            python_bytes=outcome["peak_bytes"],
            jvm_bytes=0,
        ),
        outcome["message"],
    )


def _reported(report: Report, data: DataSet, step: str, cost: Cost, message: str) -> Series:
    report(
        f"findings {millions(data.records):8} {step:10} {cost.wall_seconds:6.1f} s, {cost.cpu_seconds:6.1f} s of "
        f"cores, {(cost.python_bytes + cost.jvm_bytes) / _MIB:5.0f} MiB: {message}"
    )
    return Series(part=FINDINGS + step, side=SIDE, data=data, warm=[cost])


def _require_missing(missing: int, number: int) -> None:
    if missing != number - ALONE:
        raise RuntimeError(f"found {missing} missing keys, planted are {number - ALONE}")
