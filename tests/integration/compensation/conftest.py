"""A small pipeline of the test's own: ledger → topic → store, with a window in the journal and real servers."""

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from makewhole.compensation.execution.run_plan import RunOptions, run_plan
from makewhole.compensation.execution.targets import Target, targets_of
from makewhole.compensation.freezing.freeze import FreezeRequest, FreezeSources, Frozen
from makewhole.compensation.freezing.sources import SourceRecord
from makewhole.compensation.plan_window import freeze
from makewhole.journal.database import connect
from makewhole.journal.plans import replayed_keys
from makewhole.lake.storage import Storage
from makewhole.model.connection import Connection, KafkaConnection, PostgresConnection
from makewhole.model.pipeline import (
    Approval,
    Hop,
    Limits,
    Pipeline,
    PointKind,
    Remedies,
    Remedy,
    TablePoint,
    TopicPoint,
)
from makewhole.model.plan import Receipt
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.model.window import Window
from makewhole.window.context import WindowContext

PARTITIONS = 3
BORN_MS = 1_356_998_400_000


@dataclass
class World:
    """Servers, names, and what a test does with them."""

    bootstrap: str
    dsn: str
    journal: str
    storage: Path
    topic: str
    pipeline: Pipeline
    connections: Mapping[str, Connection]
    originals: dict[tuple[int, int], SourceRecord] = field(default_factory=dict)
    window: Window | None = None
    revision: int = 0

    def records(self, point: str, positions: Sequence[tuple[int, int]]) -> Iterable[SourceRecord]:
        assert point == "flights"
        return [self.originals[position] for position in positions if position in self.originals]

    @property
    def targets(self) -> dict[str, Target]:
        return targets_of(self.pipeline, self.connections)

    def sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return run_sql(self.dsn, statement, *parameters)

    def journal_sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return run_sql(self.journal, statement, *parameters)

    def send(self, numbers: Iterable[int]) -> None:
        """Put original records into the topic, and keep them as the archive would."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20})

        def keep(error: Any, message: Message) -> None:
            assert error is None
            self.originals[message.partition(), message.offset()] = SourceRecord(
                partition=message.partition(),
                offset=message.offset(),
                key=message.key(),
                value=message.value(),
                headers=headers_of(int(message.key()[1:])),
                timestamp_ms=message.timestamp()[1],
            )

        for number in numbers:
            producer.produce(
                self.topic,
                key=f"K{number}",
                value=json.dumps({"id": f"K{number}", "delay": number, "extra": "ignored"}),
                partition=number % PARTITIONS,
                timestamp=BORN_MS + number,
                headers=list(headers_of(number)),
                on_delivery=keep,
            )
        producer.flush()

    def finding(self, number: int, verdict: Verdict, hop: str = "flights→warehouse") -> Finding:
        copies = [record for record in self.originals.values() if record.key == f"K{number}".encode()]
        evidence = {"source": [{"partition": copy.partition, "offset": copy.offset} for copy in copies]}
        return Finding(
            hop=hop,
            key=f"K{number}",
            key_hash=f"{number:032x}",
            verdict=verdict,
            cause=Cause.NOT_IN_SOURCE,
            evidence=evidence | {"source_copies": len(copies)},
        )

    def remedies(self, hop: str, **changed: Remedy) -> None:
        known = next(known for known in self.pipeline.hops if known.name == hop)
        self.change_hop(hop, remedies=replace(known.remedies, **changed))

    def freeze(self, findings: Sequence[Finding], *, window_keys: int = 1_000_000, is_new: bool = True) -> Frozen:
        if is_new or self.window is None:
            self.revision += 1
            self.window = self._open_window(self.revision)
            for finding in findings:
                self._note(finding)
        return freeze(
            self.journal,
            FreezeRequest(pipeline=self.pipeline, window=self.window, findings=findings, window_keys=window_keys),
            self.sources,
        )

    def _note(self, finding: Finding) -> None:
        self.journal_sql(
            "insert into makewhole.finding (pipeline, number, revision, hop, key, key_hash, verdict, cause, evidence) "
            "values (%s, 1, %s, %s, %s, %s, %s, %s, '{}')",
            self.pipeline.name,
            self.revision,
            finding.hop,
            finding.key,
            finding.key_hash,
            finding.verdict.value,
            finding.cause.value,
        )

    def run(self, plan_id: str, **options: Any) -> list[Receipt]:
        return run_plan(self.journal, plan_id, self.targets, options=RunOptions(**options))

    def replayed_keys(self, plans: Sequence[str], pipeline: str | None = None) -> list[tuple[str, str]]:
        """As the journal knows them, of the world's own pipeline when no other is named."""
        with connect(self.journal) as journal:
            return replayed_keys(journal, pipeline or self.pipeline.name, plans)

    @property
    def sources(self) -> FreezeSources:
        return FreezeSources(storage=str(self.storage), records=self, connections=self.connections)

    @property
    def context(self) -> WindowContext:
        """Of the window that was opened last."""
        assert self.window is not None
        return WindowContext(
            pipeline=self.pipeline,
            window=self.window,
            connections=self.connections,
            storage=Storage(root=str(self.storage)),
        )

    def outcomes(self, plan_id: str) -> dict[str, tuple[str | None, str | None]]:
        rows = self.journal_sql("select key, outcome, outcome_reason from makewhole.action where plan = %s", plan_id)
        return {row[0]: (row[1], row[2]) for row in rows}

    def load_again(self, key: str, copies: int, delay: float = 1) -> None:
        """Rows of one key, a second apart, `copy 0` first."""
        for copy in range(copies):
            self.sql(
                "insert into dw.departures (id, delay, note, loaded_at) values (%s, %s, %s, %s)",
                key,
                delay,
                f"copy {copy}",
                f"2013-01-01 00:00:{copy:02d}+00",
            )

    def store(self) -> list[tuple[Any, ...]]:
        return self.sql("select id, delay from dw.departures order by id, delay")

    def replayed(self) -> list[Message]:
        """What a read_committed consumer sees of the topic, without the originals."""
        return [message for message in self.consume() if b"forged" not in dict(message.headers() or ()).values()]

    def consume(self, topic: str | None = None, partitions: int = PARTITIONS) -> list[Message]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(topic or self.topic, partition, 0) for partition in range(partitions)])
        ended, found = set(), []
        until = time.monotonic() + 30
        while len(ended) < partitions and time.monotonic() < until:
            for message in consumer.consume(1000, timeout=0.2):
                if message.error():
                    ended.add(message.partition())
                else:
                    found.append(message)
        consumer.close()
        assert len(ended) == partitions, "an open transaction holds the stable offset back"
        return found

    def add_topic(self, name: str, partitions: int = PARTITIONS) -> str:
        """A topic point that no hop joins; returns the topic."""
        topic = f"{name}-{uuid.uuid4().hex[:8]}"
        make_topic(self.bootstrap, topic, partitions)
        point = TopicPoint(name=name, connection="kafka", topic=topic, key=("$.id",))
        self.pipeline = replace(self.pipeline, points={**self.pipeline.points, name: point})
        return topic

    def change_hop(self, name: str, **changed: Any) -> None:
        hops = tuple(replace(hop, **changed) if hop.name == name else hop for hop in self.pipeline.hops)
        self.pipeline = replace(self.pipeline, hops=hops)

    def _open_window(self, revision: int) -> Window:
        self.journal_sql(
            "insert into makewhole.window (pipeline, number, revision, end_time, request, configuration) "
            "values (%s, 1, %s, '2013-01-02', %s, '{}')",
            self.pipeline.name,
            revision,
            f"test {revision}",
        )
        return Window(
            pipeline=self.pipeline.name,
            number=1,
            revision=revision,
            start=None,
            end=datetime(2013, 1, 2, tzinfo=UTC),
            opened_at=datetime.now(UTC),
            ranges={},
        )


def make_topic(bootstrap: str, topic: str, partitions: int) -> None:
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config={"retention.ms": "-1"})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([new])[topic].result(30)


def headers_of(number: int) -> tuple[tuple[str, bytes], ...]:
    """An original's headers; the forged one must not survive a redelivery."""
    return ("trace", f"t{number}".encode()), ("makewhole-plan", b"forged")


def run_sql(dsn: str, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    connection = psycopg2.connect(dsn)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def _pipeline(topic: str) -> Pipeline:
    ledger = TablePoint(
        name="outbox",
        kind=PointKind.LEDGER,
        connection="pg",
        table="ops.outbox",
        key=("id",),
        time="at",
        payload="body",
    )
    store = TablePoint(
        name="warehouse", kind=PointKind.STORE, connection="pg", table="dw.departures", key=("id",), time="loaded_at"
    )
    report = Remedy.REPORT
    return Pipeline(
        name=topic,
        points={
            "outbox": ledger,
            "flights": TopicPoint(name="flights", connection="kafka", topic=topic, key=("$.id",)),
            "warehouse": store,
        },
        hops=(
            Hop(
                source="outbox",
                target="flights",
                remedies=Remedies(missing=Remedy.PRODUCE, duplicate=report, mismatched=report),
            ),
            Hop(
                source="flights",
                target="warehouse",
                remedies=Remedies(missing=Remedy.REDELIVER, duplicate=Remedy.QUARANTINE, mismatched=Remedy.UPSERT),
            ),
        ),
        compare={"delay": "int"},
        limits=Limits(actions=10_000, share=1.0, records_per_second=5),
        approval=Approval(above_actions=10_000),
    )


@pytest.fixture
def world(kafka: Any, database: str, journal: str, tmp_path: Path) -> Iterator[World]:
    topic = f"flights-{uuid.uuid4().hex[:8]}"
    make_topic(kafka.bootstrap, topic, PARTITIONS)
    run_sql(
        database,
        "create schema ops; create schema dw;"
        "create table ops.outbox (id text primary key, body jsonb not null, at timestamptz not null);"
        "create table dw.departures (id text, delay numeric(6,1), note text, loaded_at timestamptz default now())",
    )
    made = World(
        bootstrap=kafka.bootstrap,
        dsn=database,
        journal=journal,
        storage=tmp_path / "storage",
        topic=topic,
        pipeline=_pipeline(topic),
        connections={
            "kafka": KafkaConnection(id="kafka", properties={"bootstrap.servers": kafka.bootstrap}),
            "pg": PostgresConnection(id="pg", dsn=database),
        },
    )
    yield made
    topics = {topic, *(point.topic for point in made.pipeline.points.values() if isinstance(point, TopicPoint))}
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for deleted in admin.delete_topics(list(topics)).values():
        deleted.exception(30)
