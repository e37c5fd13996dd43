"""Run plans that write rows into PostgreSQL, as compensation does, beside a plain COPY of the very same rows.

First every key is missing, then every key is there with another value. The journal is on the same server. A COPY looks
at nothing and keeps nothing: it is how fast the server takes rows at all.
"""

import csv
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from psycopg2 import sql

from bench.measuring.data_set import DataSet
from bench.measuring.results import Series
from bench.repairs.freeze import freeze
from bench.repairs.replays import Side
from bench.topics.fill import records
from makewhole.compensation.execution.run_plan import run_plan
from makewhole.compensation.execution.targets import Target
from makewhole.compensation.freezing.chunks import PlannedPayload
from makewhole.compute.canonical import canonical_text
from makewhole.journal.database import migrate
from makewhole.model.actions import Action, BeforeUpsert, Payload
from makewhole.model.connection import PostgresConnection
from makewhole.model.plan import Plan
from makewhole.model.points import PointKind, TablePoint
from makewhole.postgres.connect import connect
from makewhole.stack.postgres_server import PostgresServer, create_database
from makewhole.tables.items import ExpectedValue, UpsertExtra
from makewhole.tables.rows import TableRow

UPSERT = "makewhole"
COPY = "plain COPY"
MISSING, MISMATCHED = "upsert missing", "upsert mismatched"
_TARGET = "warehouse"
_COLUMNS = {
    "flight_id": "text primary key",
    "carrier": "text",
    "dep_delay": "numeric(6,1)",
    "seats": "integer",
    "cancelled": "boolean",
    "minute": "integer",
}
_COMPARED = {"carrier": "string", "seats": "int", "cancelled": "boolean"}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The store and the journal; the table that the plan writes, and the one that COPY fills from `rows`, a CSV
    file."""

    store: str
    journal: str
    table: str
    copied: str
    rows: Path

    @property
    def connection(self) -> PostgresConnection:
        return PostgresConnection(id="pg", dsn=self.store)

    @property
    def target(self) -> Target:
        point = TablePoint(
            name=_TARGET, kind=PointKind.STORE, connection="pg", table=f"public.{self.table}", key=("flight_id",)
        )
        return Target(point=point, connection=self.connection)


def measured(folder: Path, data: DataSet, rounds: int, report: Callable[[str], None]) -> Iterator[Series]:
    """Measure both sides in turn, tables of their own each time, after one run each that warms up."""
    with PostgresServer(folder / "postgres") as server, Side(UPSERT, upsert) as ours, Side(COPY, copy) as theirs:
        store, journal = (create_database(server.dsn, f"{name}_{data.records}") for name in ("store", "journal"))
        migrate(journal)
        series = {
            (part, side.name): Series(part=part, side=side.name, data=data)
            for part in (MISSING, MISMATCHED)
            for side in (ours, theirs)
        }
        for number in range(rounds + 1):
            for step, part in enumerate((MISSING, MISMATCHED)):
                stage = _make_stage(store, journal, folder, data, number=number, step=step)
                plan = freeze(stage.journal, _items(stage, data, step), 1 + 2 * number + step, folder)
                for side in (ours, theirs) if number % 2 else (theirs, ours):
                    cost = side.run(cast(Any, stage), plan)
                    report(f"{part:17} {data.title:18} {side.name:10} {cost.wall_seconds:6.2f} s")
                    series[part, side.name].warm.extend([cost] if number else [])
                _require_agreement(stage, data)
        yield from series.values()


def _make_stage(store: str, journal: str, folder: Path, data: DataSet, *, number: int, step: int) -> Stage:
    """Make the tables of a step, and the rows that it leads to. The second step goes on with the first one's table."""
    stage = Stage(
        store=store,
        journal=journal,
        table=f"written_{number}",
        copied=f"copied_{number}_{step}",
        rows=folder / f"rows-{step}.csv",
    )
    columns = sql.SQL(", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items()))
    for table in (stage.table, stage.copied) if step == 0 else (stage.copied,):
        _run(stage, sql.SQL("create table {} ({})").format(sql.Identifier(table), columns))
    with stage.rows.open("w", newline="") as file:
        csv.writer(file).writerows(row.values() for row in _rows(data, step))
    return stage


def _rows(data: DataSet, step: int) -> Iterator[Mapping[str, Any]]:
    """Yield what the records say; in the second step something else."""
    for record in records(data):
        row = json.loads(record["value"])
        yield {**row, "seats": row["seats"] + step}


def _items(stage: Stage, data: DataSet, step: int) -> Iterator[PlannedPayload]:
    place = stage.target.point.place
    before = _before(stage)
    for row in _rows(data, step):
        key = row["flight_id"]
        rows = before.get(key, ())
        yield (
            Action(
                seq=0,
                hop="flights→warehouse",
                target=_TARGET,
                key=key,
                key_hash=hashlib.md5(key.encode(), usedforsecurity=False).hexdigest(),
                before=BeforeUpsert(place=place, rows=tuple(row.ctid for row in rows)),
            ),
            Payload(
                key=key.encode(),
                value=json.dumps(row, separators=(",", ":")).encode(),
                extra=UpsertExtra(
                    origin="ledger",
                    columns=tuple(_COLUMNS) if step == 0 else ("seats",),
                    expected=_expected(row),
                    rows=rows,
                ),
            ),
        )


def _expected(row: Mapping[str, Any]) -> tuple[ExpectedValue, ...]:
    return tuple((name, declared, canonical_text(row[name], declared)) for name, declared in _COMPARED.items())


def _before(stage: Stage) -> dict[str, tuple[TableRow, ...]]:
    """Return what a plan sees of each key."""
    query = sql.SQL("select flight_id, tableoid::bigint, ctid::text, row_to_json(t)::text from {} as t")
    rows = _run(stage, query.format(sql.Identifier(stage.table)))
    return {key: (TableRow(table_oid=oid, ctid=ctid, text=text),) for key, oid, ctid, text in rows}


def upsert(stage: Stage, plan: Plan) -> int:
    """Run the plan: lease, checks, every chunk exactly once with its effects and its receipt, the journal."""
    receipts = run_plan(stage.journal, plan.id, {_TARGET: stage.target})
    return sum(receipt.actions for receipt in receipts)


def copy(stage: Stage, _: Plan) -> int:
    """Copy the same rows from a file, in one transaction."""
    query = sql.SQL("copy {} from stdin with (format csv)").format(sql.Identifier(stage.copied))
    with connect(stage.connection) as session, session.cursor() as cursor, stage.rows.open() as file:
        cursor.copy_expert(query, file)
        return int(cursor.rowcount)


def _require_agreement(stage: Stage, data: DataSet) -> None:
    """Require that both tables hold the same: all of it."""
    query = sql.SQL("select count(*), sum(hashtextextended((t.*)::text, 0)) from {} as t")
    ours, theirs = (_run(stage, query.format(sql.Identifier(table))) for table in (stage.table, stage.copied))
    if ours != theirs or ours[0][0] != data.records:
        raise RuntimeError(f"{data.title}: the sides do not agree on what is in the tables: {ours}, {theirs}")


def _run(stage: Stage, statement: sql.Composed) -> list[tuple[Any, ...]]:
    with connect(stage.connection) as session, session.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []
