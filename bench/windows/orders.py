"""Make a ledger, a topic and a store of orders with planted faults, and name the verdicts that are right."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg2 import sql

from bench.topics.fill import idempotent_producer, make_topic, produce
from bench.windows.order_records import AVRO_SCHEMA, OrderFormat, order_value
from makewhole.model.connection import PostgresConnection
from makewhole.postgres.connect import connect

LEDGER_HOP, STORE_HOP = "ledger→orders", "orders→store"
VERDICTS = ("missing", "duplicate", "mismatched", "unexpected", "conflict", "pending", "undecidable")
_NEVER_SENT, _CHANGED, _NEVER_LOADED, _LOADED_TWICE, _SENT_TWICE = 3, 5, 7, 11, 13
_FAULTS = 5
_ORDERS_PER_CALL = 50_000
_BY_KEY = -1  # the partition that the record's key says
_FLUSH_SECONDS = 120
_TABLES = """
create schema {schema};
create unlogged table {schema}.ledger as
    select 'O' || lpad(i::text, 10, '0') as order_id, ((i::bigint * 7919) % 1000000 / 100.0)::numeric(12,2) as amount,
           (array['NEW', 'PAID', 'SHIPPED', 'DONE'])[1 + i % 4] as status, now() as at
    from generate_series(1, {orders}) i;
create unlogged table {schema}.store as
    select order_id, case when n % {stride} = {changed} then amount + 1 else amount end as amount, status,
           now() as loaded
    from {schema}.ledger, lateral (select substr(order_id, 2)::bigint as n) number
    where n % {stride} not in ({never_loaded}, {never_sent});
insert into {schema}.store
    select * from {schema}.store where substr(order_id, 2)::bigint % {stride} = {twice};
alter table {schema}.ledger add primary key (order_id);
create index on {schema}.ledger (at);
create index on {schema}.store (order_id);
create index on {schema}.store (loaded);
"""
_VACUUM = "vacuum (freeze, analyze) {schema}.{table}"
_PIPELINE = """\
version: 2
pipeline: {pipeline}
start: earliest
settle: 0s
compare: {{amount: "decimal(12,2)", status: string}}
points:
  ledger: {{kind: ledger, connection: {postgres}, table: {name}.ledger, key: order_id, time: at}}
  orders: {{kind: topic, connection: {kafka}, topic: {name}, key: "$.order_id"{value}}}
  store: {{kind: store, connection: {postgres}, table: {name}.store, key: order_id, time: loaded}}
hops:
  - {{from: ledger, to: orders}}
  - {{from: orders, to: store}}
"""
Counts = Mapping[tuple[str, str], int]
"""(hop, verdict) → number of keys."""
RowsApart = tuple[int, int, int]
"""Rows in the source alone, rows in the target alone, rows of both that are unequal."""
_SCHEMA_FILE = "order.avsc"


@dataclass(frozen=True, kw_only=True)
class Orders:
    """So many orders, one in `stride` of which goes wrong in each of five ways: never sent, sent twice, never loaded,
    loaded twice, changed on the way into the store."""

    number: int
    stride: int
    form: OrderFormat = OrderFormat.JSON

    @property
    def name(self) -> str:
        """The name of the topic, and of the schema of the tables."""
        return f"orders_{self.number}_{self.stride}"

    @property
    def title(self) -> str:
        """The share of keys that go wrong, and the format of the records where it is not JSON."""
        return f"{self.share_of_faults}{'' if self.form is OrderFormat.JSON else f', {self.form.title()}'}"

    @property
    def share_of_faults(self) -> str:
        """The share of keys that go wrong, in percent."""
        return f"{_FAULTS / self.stride:.2%}"

    def pipeline_file(self, pipeline: str, *, kafka: str, postgres: str) -> str:
        """Return the file of a pipeline over these orders, with the connections of these names."""
        value = "" if self.avro_schema is None else f", value: {self.form}, schema: {_SCHEMA_FILE}"
        return pipeline_text(self.name, pipeline=pipeline, kafka=kafka, postgres=postgres, value=value)

    @property
    def avro_schema(self) -> str | None:
        """The schema of the records; None: they are JSON."""
        return AVRO_SCHEMA if self.form is OrderFormat.AVRO else None

    @property
    def files(self) -> Mapping[str, str]:
        """The files that lie beside that of the pipeline, by name."""
        return {} if self.avro_schema is None else {_SCHEMA_FILE: self.avro_schema}

    @property
    def planted(self) -> Counts:
        """The number of keys of each verdict that is no match."""
        never_sent, changed, never_loaded, loaded_twice, sent_twice = (
            len(range(first, self.number + 1, self.stride))
            for first in (_NEVER_SENT, _CHANGED, _NEVER_LOADED, _LOADED_TWICE, _SENT_TWICE)
        )
        return {
            (LEDGER_HOP, "missing"): never_sent,
            (LEDGER_HOP, "duplicate"): sent_twice,
            (STORE_HOP, "missing"): never_loaded,
            (STORE_HOP, "duplicate"): loaded_twice,
            (STORE_HOP, "mismatched"): changed,
        }

    @property
    def rows_apart(self) -> Mapping[str, RowsApart]:
        """The rows of each hop that differ when rows are paired one by one: the second record of an order is apart on
        both hops, neither the ledger nor the store has another row for it."""
        keys = self.planted
        sent_twice = keys[LEDGER_HOP, "duplicate"]
        return {
            LEDGER_HOP: (keys[LEDGER_HOP, "missing"], sent_twice, 0),
            STORE_HOP: (
                keys[STORE_HOP, "missing"] + sent_twice,
                keys[STORE_HOP, "duplicate"],
                keys[STORE_HOP, "mismatched"],
            ),
        }


def pipeline_text(name: str, *, pipeline: str, kafka: str, postgres: str, value: str = "") -> str:
    """Return the file of a pipeline over a topic and the tables of a schema that have this name; `value` is what it
    says of the topic's values."""
    return _PIPELINE.format(pipeline=pipeline, name=name, kafka=kafka, postgres=postgres, value=value)


def fill_tables(connection: PostgresConnection, orders: Orders) -> None:
    """Make the ledger and the store, with the indexes that such tables have.

    They are vacuumed as tables in use are: whoever reads new rows first also writes down that they are committed, and
    would pay for the other side.
    """
    faults = {"changed": _CHANGED, "never_loaded": _NEVER_LOADED, "never_sent": _NEVER_SENT, "twice": _LOADED_TWICE}
    numbers = {name: sql.Literal(number) for name, number in faults.items()}
    statements = sql.SQL(_TABLES).format(
        schema=sql.Identifier(orders.name),
        orders=sql.Literal(orders.number),
        stride=sql.Literal(orders.stride),
        **numbers,
    )
    with connect(connection) as session, session.cursor() as cursor:
        cursor.execute(statements)
        session.commit()
        session.autocommit = True
        for table in ("ledger", "store"):
            names = {"schema": sql.Identifier(orders.name), "table": sql.Identifier(table)}
            cursor.execute(sql.SQL(_VACUUM).format(**names))


def fill_topic(bootstrap: str, orders: Orders) -> None:
    """Make the topic and produce the records."""
    make_topic(bootstrap, orders.name)
    producer = idempotent_producer(bootstrap, "lz4")
    for start in range(1, orders.number + 1, _ORDERS_PER_CALL):
        produce(producer, orders.name, _BY_KEY, list(_messages(orders, start)))
    if left := producer.flush(_FLUSH_SECONDS):
        raise RuntimeError(f"{left} records of {orders.name} were not written in two minutes")


def _messages(orders: Orders, start: int) -> Iterator[dict[str, Any]]:
    for number in range(start, min(start + _ORDERS_PER_CALL, orders.number + 1)):
        value = order_value(orders.form, number)
        for _ in range({_NEVER_SENT: 0, _SENT_TWICE: 2}.get(number % orders.stride, 1)):
            yield {"key": f"O{number:010d}", "value": value}
