"""A small pipeline of the test's own, ledger → topic → store, and what a test does with it and its windows."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg2
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from makewhole.journal import evidence
from makewhole.journal.database import connect
from makewhole.lake.storage import Storage
from makewhole.model.gate import GateReport
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import HopCounts
from makewhole.window.certify import Closed, certify
from makewhole.window.context import WindowContext, connections_of, find_pipeline, window_context
from makewhole.window.open import Opened, Request, open_window
from makewhole_spark.reconcile.compare import reconcile
from makewhole_spark.snapshot.take import take_snapshots
from makewhole_spark.validate import validate_window
from tests.integration.transactions import left_open

BORN = datetime(2025, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
LEDGER_HOP, STORE_HOP = "outbox→orders", "orders→warehouse"

_FILE = """\
version: 1
pipeline: shop
settle: {settle}
compare: {{amount: "decimal(8,2)"}}
points:
{points}
hops:
{hops}
gate: {{allow_empty: {allow_empty}}}
compensation: {{{compensation}}}
"""

Order = dict[str, Any]
Found = dict[str, tuple[str, str]]
"""Key → (verdict, cause)."""


@dataclass
class World:
    """Tables `outbox` and `warehouse`, a topic, and a journal: all of the test's own.

    With several partitions a record goes to the one that its number says.
    """

    spark: SparkSession
    bootstrap: str
    dsn: str
    journal: str
    folder: Path
    topic: str = field(default_factory=lambda: f"orders-{uuid.uuid4().hex[:12]}")
    partitions: int = 1
    more_topics: list[str] = field(default_factory=list)

    # The pipeline

    def describe(
        self,
        *,
        key: str = "id",
        topic_key: str = '"$.id"',
        hop: str = "",
        ledger_hop: str = "",
        settle: str = "0s",
        allow_empty: str = "false",
        has_ledger: bool = True,
        is_upsert: bool = False,
        has_version: bool = False,
        more_points: Sequence[str] = (),
        more_hops: Sequence[str] = (),
        compensation: str = "limits: {share: 1.0}",
    ) -> None:
        """Write the pipeline file; `hop` and `ledger_hop` are what the hops to the warehouse and to the
        topic say besides their ends."""
        version, topic_version = (", version: version", ', version: "$.version"') if has_version else ("", "")
        both = ", semantics: upsert" if is_upsert else ""
        table = f"connection: db, key: {key}, time: at{version}"
        points = [
            f"outbox: {{kind: ledger, table: outbox, {table}}}" if has_ledger else "",
            f"orders: {{kind: topic, connection: log, topic: {self.topic}, key: {topic_key}{topic_version}}}",
            f"warehouse: {{kind: store, table: warehouse, {table}}}",
            *more_points,
        ]
        hops = [
            f"- {{from: outbox, to: orders{both}{ledger_hop}}}" if has_ledger else "",
            f"- {{from: orders, to: warehouse{both}{hop}}}",
            *more_hops,
        ]
        text = _FILE.format(
            settle=settle,
            allow_empty=allow_empty,
            compensation=compensation,
            points="\n".join(f"  {point}" for point in points if point),
            hops="\n".join(f"  {line}" for line in hops if line),
        )
        (self.folder / "pipelines" / "shop.yaml").write_text(text)

    def make_tables(self, more_columns: str = "") -> None:
        """`outbox` and `warehouse`, empty."""
        for table in ("outbox", "warehouse"):
            columns = f"id text, number int, region text, amount numeric(8,2), at timestamptz{more_columns}"
            self.sql(f"create table {table} ({columns})")

    @property
    def pipeline(self) -> Pipeline:
        return find_pipeline("shop")

    # The system

    def add_topic(self) -> str:
        """Another topic of the test's own."""
        topic = f"{self.topic}-{len(self.more_topics)}"
        make_topic(AdminClient({"bootstrap.servers": self.bootstrap}), topic)
        self.more_topics.append(topic)
        return topic

    def sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return run_sql(self.dsn, statement, *parameters)

    def journal_sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return run_sql(self.journal, statement, *parameters)

    def write(self, table: str, orders: Iterable[Order]) -> None:
        """Rows of `outbox` or `warehouse`, in the order given."""
        self.sql(
            f"insert into {table} select * from json_populate_recordset(null::{table}, %s::json)",
            json.dumps(list(orders)),
        )

    def send(
        self,
        orders: Iterable[Order],
        *,
        headers: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Records into the topic by one plain producer."""
        client = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, **(settings or {})})
        for order in orders:
            self.produce(client, order, headers)
        assert client.flush(30) == 0

    def produce(self, client: Producer, order: Order, headers: Mapping[str, str] | None = None) -> None:
        moment = datetime.fromisoformat(order["at"])
        client.produce(
            self.topic,
            partition=int(order["number"]) % self.partitions,
            key=order["id"],
            value=json.dumps(order),
            timestamp=int(moment.timestamp() * 1000),
            headers=[(name, value.encode()) for name, value in (headers or {}).items()],
        )

    def send_raw(self, value: bytes | None, day: int = 0) -> None:
        """A record with any value."""
        client = Producer({"bootstrap.servers": self.bootstrap})
        moment = BORN + day * DAY
        client.produce(self.topic, partition=0, key=b"raw", value=value, timestamp=int(moment.timestamp() * 1000))
        assert client.flush(30) == 0

    def begin_transaction(self, orders: Iterable[Order]) -> Producer:
        """Records in a transaction that is left open; the producer can commit or abort it."""
        names = {"bootstrap.servers": self.bootstrap, "transactional.id": f"tx-{uuid.uuid4().hex}"}
        client = Producer(names | {"log_level": 0})  # it outlives the brokers of the session
        client.init_transactions(30)
        client.begin_transaction()
        for order in orders:
            self.produce(client, order)
        assert client.flush(30) == 0
        return client

    def end_transaction(self, client: Producer, *, is_committed: bool) -> None:
        """Commit or abort it; its markers are in the log afterwards."""
        client.commit_transaction(30) if is_committed else client.abort_transaction(30)
        assert not left_open(self.bootstrap, self.topic)

    def trade(self, orders: Sequence[Order], *, unsent: Sequence[Order] = (), unloaded: Sequence[Order] = ()) -> None:
        """Orders on their whole way, but for those that are not sent, or sent and not loaded."""
        self.write("outbox", orders)
        sent = [order for order in orders if order not in unsent]
        self.send(sent)
        self.write("warehouse", [order for order in sent if order not in unloaded])

    def commit_group(self, group: str, offset: int) -> None:
        """What a consumer of this group has committed."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False})
        consumer.commit(offsets=[TopicPartition(self.topic, 0, offset)], asynchronous=False)
        consumer.close()

    # The way of a window

    def ask(
        self, day: int = 0, request: str | None = None, journal: str | None = None, end: datetime | None = None
    ) -> Opened:
        """Open the window that ends with a day (or at any moment), or a revision of it."""
        wanted = Request(id=request or uuid.uuid4().hex, end=end or BORN + (day + 1) * DAY)
        with connect(journal or self.journal) as connection:
            return open_window(connection, self.pipeline, connections_of(self.pipeline), wanted)

    def open(self, day: int = 0) -> WindowContext:
        return window_context(self.ask(day).window)

    def snapshot(self, context: WindowContext, parallelism: int = 2) -> list[str]:
        with connect(self.journal) as journal:
            return take_snapshots(self.spark, journal, context, parallelism)

    def manifests(self, context: WindowContext) -> dict[str, dict[str, Any]]:
        with connect(self.journal) as journal:
            return evidence.snapshots(journal, context.window)

    def reconcile(self, context: WindowContext) -> None:
        with connect(self.journal) as journal:
            reconcile(self.spark, journal, context)

    def judge(self, context: WindowContext) -> "World":
        """Snapshots and comparison."""
        self.snapshot(context)
        self.reconcile(context)
        return self

    def validate(self, context: WindowContext) -> GateReport:
        with connect(self.journal) as journal:
            return validate_window(self.spark, journal, context)

    def certify(self, context: WindowContext) -> Closed:
        with connect(self.journal) as journal:
            return certify(journal, context.pipeline, context.window, Storage.from_environment())

    def judge_and_ask_the_gate(self, day: int = 0) -> WindowContext:
        """A window up to the point where a plan could be made."""
        context = self.open(day)
        self.judge(context)
        self.validate(context)
        return context

    def whole_way(self, day: int = 0) -> tuple[WindowContext, Closed]:
        """A window from its opening to its end, without repair."""
        context = self.judge_and_ask_the_gate(day)
        return context, self.certify(context)

    # What was found

    def found(self, context: WindowContext, hop: str) -> Found:
        with connect(self.journal) as journal:
            return {
                item.finding.key: (item.finding.verdict.value, item.finding.cause.value)
                for item in evidence.findings(journal, context.window)
                if item.finding.hop == hop
            }

    def evidence(self, context: WindowContext, hop: str, key: str) -> Mapping[str, Any]:
        with connect(self.journal) as journal:
            items = [item.finding for item in evidence.findings(journal, context.window)]
        return next(item.evidence for item in items if (item.hop, item.key) == (hop, key))

    def counts(self, context: WindowContext, hop: str) -> HopCounts:
        with connect(self.journal) as journal:
            return evidence.results(journal, context.window)[hop].counts

    def accounting(self, context: WindowContext) -> dict[str, int]:
        """What the offsets of the topic were."""
        return dict(self.manifests(context)["orders"]["accounting"])

    def certificates(self) -> int:
        return int(self.journal_sql("select count(*) from makewhole.certificate")[0][0])


def orders(numbers: Iterable[int], day: int = 0) -> list[Order]:
    """Orders of a day, a minute apart. Odd ones are of the US, even ones of the EU."""
    return [
        {
            "id": f"O{number}",
            "number": number,
            "region": "US" if number % 2 else "EU",
            "amount": f"{number}.50",
            "at": (BORN + day * DAY + timedelta(minutes=number % 1000)).isoformat(),
        }
        for number in numbers
    ]


def run_sql(dsn: str, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    connection = psycopg2.connect(dsn)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def make_topic(
    admin: AdminClient, name: str, partitions: int = 1, replicas: int = 1, settings: Mapping[str, Any] | None = None
) -> None:
    config = {"retention.ms": "-1"} | {key: str(value) for key, value in (settings or {}).items()}
    admin.create_topics([NewTopic(name, partitions, replicas, config=config)])[name].result(30)
