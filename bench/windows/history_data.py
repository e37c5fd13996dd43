"""Make the orders of a pipeline's days: rows in a ledger and a store, records in a topic, the same number every day."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg2 import sql

from bench.topics.fill import idempotent_producer, make_topic
from bench.windows.orders import pipeline_text
from makewhole.model.connection import PostgresConnection
from makewhole.postgres.connect import connect

DAY = timedelta(days=1)
_POLLED = 10_000
_FLUSH_SECONDS = 120
_FIRST_DAYS, _LAST_DAYS = 24, 16
_TABLES = """
create schema {schema};
create unlogged table {schema}.ledger (order_id text primary key, amount numeric(12,2), status text, at timestamptz);
create unlogged table {schema}.store (order_id text, amount numeric(12,2), status text, loaded timestamptz);
create index on {schema}.ledger (at);
create index on {schema}.store (order_id);
create index on {schema}.store (loaded);
"""
_ROWS = """
insert into {schema}.ledger
    select 'O' || lpad(i::text, 10, '0'), (i % 100000 / 100.0)::numeric(12,2), 'PAID',
           {begin} + (i - {first}) * {step}
    from generate_series({first}, {last}) i;
insert into {schema}.store select * from {schema}.ledger where at >= {begin} and at < {begin} + interval '1 day';
"""


@dataclass(frozen=True, kw_only=True)
class History:
    """So many days of so many orders each, the last of which ended last midnight (UTC)."""

    days: int
    orders: int

    @property
    def name(self) -> str:
        """The name of the topic, and of the schema of the tables."""
        return f"history_{self.days}_{self.orders}"

    @property
    def days_with_rows(self) -> list[int]:
        """The days of which the tables have rows: the newest ones, and those whose slices are counted again first. The
        rows of a year would take more disk than they are worth: they are not read."""
        first, last = range(1, _FIRST_DAYS + 1), range(self.days - _LAST_DAYS + 1, self.days + 1)
        return sorted({day for day in (*first, *last) if 1 <= day <= self.days})

    def begin(self, day: int) -> datetime:
        """Return when a day begins; days count from 1."""
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - (self.days - day + 1) * DAY

    def numbers(self, day: int) -> range:
        """Return the numbers of a day's orders."""
        return range((day - 1) * self.orders + 1, day * self.orders + 1)

    def pipeline_file(self, pipeline: str) -> str:
        """Return the file of a pipeline over these orders."""
        return pipeline_text(self.name, pipeline=pipeline, kafka="log", postgres="db")


def make_tables(connection: PostgresConnection, history: History) -> None:
    """Make the ledger and the store with their indexes, and the rows of the days that have any."""
    schema = sql.Identifier(history.name)
    with connect(connection) as session, session.cursor() as cursor:
        cursor.execute(sql.SQL(_TABLES).format(schema=schema))
        for day in history.days_with_rows:
            numbers = history.numbers(day)
            values: dict[str, sql.Composable] = {
                "begin": sql.Literal(history.begin(day)),
                "first": sql.Literal(numbers[0]),
                "last": sql.Literal(numbers[-1]),
                "step": sql.Literal(DAY / (history.orders + 1)),
            }
            cursor.execute(sql.SQL(_ROWS).format(schema=schema, **values))
        session.commit()
        cursor.execute(sql.SQL("analyze {schema}.ledger; analyze {schema}.store").format(schema=schema))
        session.commit()


def make_history_topic(bootstrap: str, history: History) -> None:
    """Make the topic, which keeps records of any age."""
    make_topic(bootstrap, history.name, {"retention.ms": "-1"})


def send_day(bootstrap: str, history: History, day: int, again: int | None = None) -> dict[str, str]:
    """Produce a day's records, and `again` an order of another day. Returns where the first order of the day and the
    repeated one lie: key → `partition:offset`."""
    producer = idempotent_producer(bootstrap, "lz4")
    places: dict[str, str] = {}

    def note(error: Any, message: Any) -> None:
        if error is None:
            places[message.key().decode()] = f"{message.partition()}:{message.offset()}"

    numbers = [*history.numbers(day), *([] if again is None else [again])]
    messages = list(_messages(history, day, numbers))
    for message in (messages[0], messages[-1]):
        message["on_delivery"] = note
    for number, message in enumerate(messages):
        producer.produce(history.name, **message)  # in batches the client knows no timestamps
        if number % _POLLED == 0:
            producer.poll(0)
    if left := producer.flush(_FLUSH_SECONDS):
        raise RuntimeError(f"{left} records of {history.name} were not written in two minutes")
    return places


def key_of(number: int) -> str:
    """Return the key of an order."""
    return f"O{number:010d}"


def _messages(history: History, day: int, numbers: list[int]) -> Iterator[dict[str, Any]]:
    begin, step = history.begin(day).timestamp() * 1000, DAY.total_seconds() * 1000 / (history.orders + 2)
    for at, number in enumerate(numbers):
        key = key_of(number)
        value = (
            f'{{"order_id":"{key}","amount":{number % 100_000 / 100:.2f},"status":"PAID",'
            '"note":"standard delivery, two parcels","channel":"web"}'
        )
        yield {"key": key, "value": value, "timestamp": int(begin + at * step)}
