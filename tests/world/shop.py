"""Run a shop whose orders go from a ledger through a topic into a store, and write the pipeline file that says so."""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from confluent_kafka import Producer

from makewhole.model.pipeline import Pipeline
from makewhole.window.context import find_pipeline
from tests.world.consumer import Record
from tests.world.orders import BORN, COLUMNS, DAY, Order, milliseconds
from tests.world.pipeline_file import Settings, flow, ledger, pipeline_file, store, topic
from tests.world.sql import insert_rows
from tests.world.topics import (
    change_topic,
    commit_group,
    delete_records,
    dotted,
    left_open,
    make_topic,
    make_topic_again,
    producer,
)
from tests.world.world import World

LEDGER_HOP, STORE_HOP = "outbox→orders", "orders→warehouse"

_NOTHING: Settings = {}
_SHARE: Settings = {"limits": "{share: 1.0}"}


@dataclass(kw_only=True)
class Shop(World):
    """Tables `outbox` and `warehouse` and a topic, all of the test's own; the pipeline file is in `folder`.

    With several partitions a record goes to the one that its number says. `more_columns` are those of its tables beside
    the orders' own, with their types in the pipeline file. `format`: what the topic's point says of its values, which
    `encode` makes.
    """

    folder: Path
    name: str = "shop"
    topic: str = field(default_factory=lambda: f"orders-{uuid.uuid4().hex[:12]}")
    partitions: int = 1
    more_topics: list[str] = field(default_factory=list)
    more_columns: dict[str, str] = field(default_factory=dict)
    format: Settings = field(default_factory=dict)
    encode: Callable[[Order], bytes] = lambda order: json.dumps(order).encode()
    _read: tuple[str, Pipeline] | None = field(default=None, init=False)

    # The pipeline

    def describe(
        self,
        *,
        key: str = "id",
        topic_key: str = '"$.id"',
        partitioner: str = "murmur2",
        hop: Settings = _NOTHING,
        ledger_hop: Settings = _NOTHING,
        settle: str = "0s",
        allow_empty: bool = False,
        has_ledger: bool = True,
        is_upsert: bool = False,
        has_version: bool = False,
        more_points: Mapping[str, Settings] | None = None,
        more_hops: Sequence[Settings] = (),
        compensation: Settings = _SHARE,
        compare: str = '{amount: "decimal(8,2)"}',
        start: str | None = "earliest",
        max_age: str | None = None,
        late: str | None = None,
        tolerance: Settings = _NOTHING,
        is_observing: bool = False,
        reach: str | None = None,
        history: str | None = None,
        keep: Settings = _NOTHING,
    ) -> None:
        """Write the pipeline file; `hop` and `ledger_hop` are what the hops to the warehouse and to the topic have
        besides their ends. What is missing or there twice is repaired, unless other remedies are named, or
        `is_observing`."""
        version = {"version": "version"} if has_version else {}
        topic_version = {"version": '"$.version"'} if has_version else {}
        semantics = {"semantics": "upsert"} if is_upsert else {}
        points: dict[str, Settings] = {
            "outbox": ledger("db", "outbox", key=key, **version),
            "orders": topic("log", self.topic, key=topic_key, partitioner=partitioner, **topic_version, **self.format),
            "warehouse": store("db", "warehouse", key=key, **version),
            **(more_points or {}),
        }
        hops = [
            {"from": "outbox", "to": "orders", **semantics, **ledger_hop},
            {"from": "orders", "to": "warehouse", **semantics, **hop},
            *more_hops,
        ]
        if not has_ledger:
            del points["outbox"], hops[0]
        tolerated = {"tolerance": flow(tolerance)} if tolerance else {}
        settings = {
            **({} if start is None else {"start": start}),
            "settle": settle,
            "compare": compare,
            "gate": flow({"allow_empty": str(allow_empty).lower(), **tolerated}),
            **({} if max_age is None else {"pending": flow({"max_age": max_age})}),
            **({} if late is None else {"late": late}),
            **({} if reach is None else {"reach": reach}),
            **({} if history is None else {"history": history}),
            **({"keep": flow(keep)} if keep else {}),
            "compensation": flow(compensation),
        }
        text = pipeline_file(
            self.name,
            points=points,
            hops=hops,
            settings=settings,
            columns=COLUMNS | self.more_columns,
            is_observing=is_observing,
        )
        self.file.write_text(text)

    @property
    def file(self) -> Path:
        """The pipeline file."""
        return self.folder / "pipelines" / "shop.yaml"

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as the file has it now."""
        text = self.file.read_text()
        if self._read is None or self._read[0] != text:
            self._read = text, find_pipeline(self.name)
        return self._read[1]

    def make_tables(self, more_columns: str = "") -> None:
        """Make `outbox` and `warehouse`, empty."""
        for table in ("outbox", "warehouse"):
            columns = f"id text, number int, region text, amount numeric(8,2), at timestamptz{more_columns}"
            self.sql(f"create table {table} ({columns})")

    def add_topic(self) -> str:
        """Make another topic of the test's own; return its name."""
        name = f"{self.topic}-{len(self.more_topics)}"
        make_topic(self.admin, name)
        self.more_topics.append(name)
        return name

    def make_topic_again(self) -> None:
        """Delete the topic and make it again."""
        make_topic_again(self.admin, self.topic)

    def change_topic(self, **settings: object) -> None:
        """Set settings of the topic, as Kafka names them, with `_` for `.`."""
        change_topic(self.admin, self.topic, dotted(settings))

    def delete_records(self, before: Mapping[int, int]) -> None:
        """Have Kafka forget what lies before these offsets (by partition)."""
        delete_records(self.admin, self.topic, before)

    # The system at work

    def write(self, table: str, orders: Iterable[Order]) -> None:
        """Write rows of `outbox` or `warehouse`, in the order given."""
        insert_rows(self.dsn, table, orders)

    def send(
        self,
        orders: Iterable[Order],
        *,
        headers: Mapping[str, str] | None = None,
        settings: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        """Send records into the topic by one plain producer; `settings` as librdkafka names them."""
        client = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, **(settings or {})})
        for order in orders:
            self.produce(client, order, headers)
        assert client.flush(30) == 0

    def produce(self, client: Producer, order: Order, headers: Mapping[str, str] | None = None) -> None:
        """Hand one record to a producer."""
        client.produce(
            self.topic,
            partition=int(order["number"]) % self.partitions,
            key=order["id"],
            value=self.encode(order),
            timestamp=milliseconds(order["at"]),
            headers=[(name, value.encode()) for name, value in (headers or {}).items()],
        )

    def send_raw(self, value: bytes | None, day: int = 0, key: bytes | None = b"raw") -> None:
        """Send a record with any value. `key` None: it has none, and nothing produced can look otherwise."""
        client = producer(self.bootstrap)
        moment = BORN + day * DAY
        client.produce(self.topic, partition=0, key=key, value=value, timestamp=int(moment.timestamp() * 1000))
        assert client.flush(30) == 0

    def send_values(
        self,
        records: Iterable[tuple[str, bytes | None, Mapping[str, str]]],
        day: float = 0.5,
        *,
        topic: str | None = None,
    ) -> None:
        """Send records of any format, each its key, its value and its headers; a key has one partition.

        `topic`: another one of the test's, which has one partition.
        """
        client = producer(self.bootstrap, linger_ms=5)
        for key, value, headers in records:
            client.produce(
                topic or self.topic,
                partition=sum(key.encode()) % self.partitions if topic is None else 0,
                key=key,
                value=value,
                timestamp=int((BORN + day * DAY).timestamp() * 1000),
                headers=[(name, text.encode()) for name, text in headers.items()],
            )
        assert client.flush(30) == 0

    def delete(
        self,
        keys: Iterable[str],
        *,
        day: float = 0.5,
        partition: int = 0,
        headers: Mapping[str, str] | None = None,
        by: Producer | None = None,
    ) -> None:
        """Send records without a value (tombstones); `day`: their time, in days after the first order. `by`: the
        producer of an open transaction."""
        client = by or producer(self.bootstrap)
        for key in keys:
            client.produce(
                self.topic,
                partition=partition,
                key=key,
                value=None,
                timestamp=int((BORN + day * DAY).timestamp() * 1000),
                headers=[(name, value.encode()) for name, value in (headers or {}).items()],
            )
        assert client.flush(30) == 0

    def begin_transaction(self, orders: Iterable[Order], seconds: int = 60) -> Producer:
        """Send records in a transaction that is left open; the producer can commit or abort it for so many seconds."""
        # It outlives the brokers of the session, and would say so.
        client = producer(
            self.bootstrap,
            transactional_id=f"tx-{uuid.uuid4().hex}",
            transaction_timeout_ms=seconds * 1000,
            log_level=0,
        )
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
        """Take orders all the way, but for those that are not sent, or sent and not loaded."""
        self.write("outbox", orders)
        sent = [order for order in orders if order not in unsent]
        self.send(sent)
        self.write("warehouse", [order for order in sent if order not in unloaded])

    def read(self, topic: str | None = None) -> list[Record]:
        """Read a topic, the shop's own when no other is named, as `World.records` does."""
        return self.records(topic or self.topic)

    def commit_group(self, group: str, offset: int) -> None:
        """Commit an offset of partition 0 as a consumer of this group does."""
        commit_group(self.bootstrap, group, self.topic, offset)

    def delete_group(self, group: str) -> None:
        """Delete a consumer group, as Kafka does when its offsets expire."""
        client = self.admin  # it must live until it is answered
        client.delete_consumer_groups([group])[group].result(30)

    # The time

    def let_pass(self, time: timedelta) -> None:
        """Make time pass, as far as the journal knows it: everything in it was seen so much earlier."""
        for table, column in (("window", "opened_at"), ("handover", "since"), ("observation", "observed_at")):
            self.journal_sql(f"update makewhole.{table} set {column} = {column} - %s", time)
