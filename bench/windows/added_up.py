"""Measure a window of records that are added up to rows (`group`), beside one of as many records that have a row each.

    python -m bench.windows.added_up --records 2000000

Both read the same topic: ten lines of an order each. On one side a row holds the number of an order's lines and their
sum, on the other one line; one order in a thousand is wrong on each.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from psycopg2 import sql

from bench.measuring.meter import Cost
from bench.topics.fill import idempotent_producer, make_topic, produce
from bench.windows.service import PIPELINE, Service
from bench.windows.stage import Report
from makewhole.model.connection import PostgresConnection
from makewhole.postgres.connect import connect
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.postgres_server import PostgresServer

TOPIC = "order_lines"
LINES = 10
_WRONG = 1000
_ORDERS_PER_CALL = 5_000
_BY_KEY = -1
_FLUSH_SECONDS = 120
_OF_LINES = """
create unlogged table target as
    select 'O' || lpad(o::text, 9, '0') || '-' || l as id,
           (o % 1000 + l)::numeric(12,2) / 100 + (case when o % {wrong} = 0 and l = 0 then 1 else 0 end) as amount,
           now() as at
    from generate_series(1, {orders}) o, generate_series(0, {lines} - 1) l
"""
_OF_ORDERS = """
create unlogged table target as
    select 'O' || lpad(o::text, 9, '0') as id, {lines}::bigint as lines,
           sum((o % 1000 + l)::numeric(12,2) / 100) + (case when o % {wrong} = 0 then 1 else 0 end) as amount,
           now() as at
    from generate_series(1, {orders}) o, generate_series(0, {lines} - 1) l group by o
"""
_PIPELINE = """\
version: 2
pipeline: {pipeline}
start: earliest
settle: 0s
compare: {{amount: "decimal(12,2)"}}
points:
  lines: {{kind: topic, connection: log, topic: {topic}, key: "$.{key}"}}
  rows: {{kind: store, connection: db, table: target, key: id, time: at}}
hops:
  - {{from: lines, to: rows{group}}}
"""
_GROUP = ', group: {identity: line, counts: lines, sums: {amount: "decimal(12,2)"}}'
SIDES = {"grouped": (_OF_ORDERS, "order", _GROUP), "ungrouped": (_OF_LINES, "line", "")}


def measured(bootstrap: str, folder: Path, orders: int, report: Report) -> dict[str, Cost]:
    """Return the cost of a window on each side, over so many orders.

    Raises:
        RuntimeError: the verdicts are not those that were planted.
    """
    _fill_topic(bootstrap, orders)
    return {side: _window(bootstrap, folder / side, side, orders, report) for side in SIDES}


def _window(bootstrap: str, home: Path, side: str, orders: int, report: Report) -> Cost:
    statement, key, group = SIDES[side]
    home.mkdir()
    with PostgresServer(home / "postgres", is_durable=False) as server:
        service = Service.at(server, bootstrap, home)
        _fill_table(service.database, statement, orders)
        service.write_pipeline(_PIPELINE.format(pipeline=PIPELINE, topic=TOPIC, key=key, group=group))
        counts, cost, seconds = service.run_window(service.open_window(datetime.now(UTC)))
    verdicts = {verdict: number for (_, verdict), number in counts.items() if number}
    if verdicts != {"mismatched": orders // _WRONG}:
        raise RuntimeError(f"{side}: found {verdicts}, planted are {orders // _WRONG} mismatched")
    report(f"{side:10} {cost.wall_seconds:6.1f} s, {cost.cpu_seconds:6.1f} s of cores: {seconds}")
    return cost


def _fill_table(connection: PostgresConnection, statement: str, orders: int) -> None:
    numbers = {"wrong": _WRONG, "orders": orders, "lines": LINES}
    filled = sql.SQL(statement).format(**{name: sql.Literal(number) for name, number in numbers.items()})
    with connect(connection) as session, session.cursor() as cursor:
        cursor.execute(filled)
        cursor.execute("create index on target (id)")
        cursor.execute("create index on target (at)")
        session.commit()
        session.autocommit = True
        cursor.execute("vacuum (freeze, analyze) target")


def _fill_topic(bootstrap: str, orders: int) -> None:
    make_topic(bootstrap, TOPIC)
    producer = idempotent_producer(bootstrap, "lz4")
    for start in range(1, orders + 1, _ORDERS_PER_CALL):
        produce(producer, TOPIC, _BY_KEY, list(_messages(range(start, min(start + _ORDERS_PER_CALL, orders + 1)))))
    if left := producer.flush(_FLUSH_SECONDS):
        raise RuntimeError(f"{left} records of {TOPIC} were not written in two minutes")


def _messages(orders: range) -> Iterator[dict[str, Any]]:
    for order in orders:
        for line in range(LINES):
            key, cents = f"O{order:09d}", order % 1000 + line
            value = f'{{"order":"{key}","line":"{key}-{line}","amount":{cents / 100}}}'
            yield {"key": key, "value": value}


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Measure, and print the costs as JSON."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="makewhole-bench-") as scratch:
        server = KafkaServer(Path(scratch) / "kafka")
        try:
            server.start()
            costs = measured(server.bootstrap, Path(scratch), wanted.records // LINES, _report)
        finally:
            server.stop()
    print(json.dumps({side: asdict(cost) for side, cost in costs.items()}, indent=1))


if __name__ == "__main__":
    main()
