"""Build a small pipeline of the test's own, ledger → topic → store, with a window in the journal, and run its plans.

The findings are the test's: nothing is compared here.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message

from makewhole.compensation.execution.run_plan import RunOptions, run_plan
from makewhole.compensation.execution.targets import Target, targets_of
from makewhole.compensation.freezing.freeze import FreezeRequest, FreezeResult, FreezeSources
from makewhole.compensation.plan_window import freeze_plan
from makewhole.compensation.sources.sources import SourceRecord
from makewhole.kafka.partitioner import KnownKeys
from makewhole.lake.storage import Storage
from makewhole.model.connection import Connection, KafkaConnection, PostgresConnection
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Approval, Limits, Pipeline
from makewhole.model.plan import Plan, Receipt
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.model.window import Window
from makewhole.window.context import WindowContext
from tests.world.consumer import Record
from tests.world.sql import Rows
from tests.world.topics import kafka_connection, make_topic, producer
from tests.world.world import World

PARTITIONS = 3
BORN_MS = 1_356_998_400_000
TABLES = (
    "create schema ops; create schema dw;"
    "create table ops.outbox (id text primary key, body jsonb not null, at timestamptz not null,"
    " delay numeric generated always as ((body ->> 'delay')::numeric) stored);"
    "create table dw.departures (id text, delay numeric(6,1), note text, loaded_at timestamptz default now())"
)


@dataclass(frozen=True)
class Originals:
    """The original records of the topic, as the window's archive has them, and its `known` keys."""

    by_position: Mapping[tuple[int, int], SourceRecord]
    known: KnownKeys | None = None

    def records(self, point: str, positions: Sequence[tuple[int, int]]) -> Iterable[SourceRecord]:
        """Return those that are there."""
        assert point == "flights"
        return [self.by_position[position] for position in positions if position in self.by_position]

    def removed(self, point: str) -> str | None:
        return None

    def partition_count(self, point: str) -> int:
        """Return the number that the topic was made with."""
        assert point == "flights"
        return PARTITIONS

    def known_keys(self, point: str) -> KnownKeys | None:
        """Return those that are given."""
        assert point == "flights"
        return self.known


@dataclass(frozen=True, kw_only=True)
class FrozenPlan(FreezeResult):
    """Return what was frozen, where there is a plan."""

    plan: Plan


@dataclass(kw_only=True)
class PlanWorld(World):
    """The systems, the pipeline, and the window that was opened last. `originals` are by (partition, offset)."""

    storage: Path
    topic: str
    pipeline: Pipeline
    originals: dict[tuple[int, int], SourceRecord] = field(default_factory=dict)
    known: KnownKeys | None = None
    window: Window | None = None
    revision: int = 0

    # Where things are

    @property
    def kafka(self) -> KafkaConnection:
        """The connection to Kafka."""
        return kafka_connection(self.bootstrap, "kafka")

    @property
    def postgres(self) -> PostgresConnection:
        """The connection to the tables."""
        return PostgresConnection(id="pg", dsn=self.dsn)

    @property
    def connections(self) -> Mapping[str, Connection]:
        """Both, by their ids."""
        return {"kafka": self.kafka, "pg": self.postgres}

    @property
    def targets(self) -> dict[str, Target]:
        """The targets of plans."""
        return targets_of(self.pipeline, self.connections)

    @property
    def sources(self) -> FreezeSources:
        """The sources of payloads."""
        records = Originals(self.originals, self.known)
        return FreezeSources(storage=str(self.storage), records=records, connections=self.connections)

    @property
    def context(self) -> WindowContext:
        """The context of the window that was opened last."""
        assert self.window is not None
        return WindowContext(
            pipeline=self.pipeline,
            window=self.window,
            connections=self.connections,
            storage=Storage(root=str(self.storage)),
        )

    # The pipeline

    def topic_point(self, name: str = "flights") -> TopicPoint:
        """Return a topic of the pipeline."""
        point = self.pipeline.points[name]
        assert isinstance(point, TopicPoint)
        return point

    def table_point(self, name: str = "warehouse") -> TablePoint:
        """Return a table of the pipeline."""
        point = self.pipeline.points[name]
        assert isinstance(point, TablePoint)
        return point

    def change_points(self, *points: TablePoint | TopicPoint) -> None:
        """Put points in the place of those of the same name."""
        self.pipeline = replace(
            self.pipeline, points={**self.pipeline.points, **{point.name: point for point in points}}
        )

    def remedies(self, hop: str, **changed: Remedy) -> None:
        """Change remedies of a hop."""
        known = next(known for known in self.pipeline.hops if known.name == hop)
        self.change_hop(hop, remedies=replace(known.remedies, **changed))

    def change_hop(self, name: str, **changed: Any) -> None:
        """Change fields of a hop."""
        hops = tuple(replace(hop, **changed) if hop.name == name else hop for hop in self.pipeline.hops)
        self.pipeline = replace(self.pipeline, hops=hops)

    def add_topic(self, name: str, partitions: int = PARTITIONS) -> str:
        """Add a topic point that no hop joins; return the topic."""
        topic = f"{name}-{uuid.uuid4().hex[:8]}"
        make_topic(self.admin, topic, partitions)
        self.change_points(TopicPoint(name=name, connection="kafka", topic=topic, key=("$.id",)))
        return topic

    # The records

    def send(self, numbers: Iterable[int]) -> None:
        """Put original records into the topic, and keep them as the archive would."""
        client = producer(self.bootstrap, linger_ms=20)
        for number in numbers:
            client.produce(
                self.topic,
                key=f"K{number}",
                value=json.dumps({"id": f"K{number}", "delay": number, "extra": "ignored"}),
                partition=number % PARTITIONS,
                timestamp=BORN_MS + number,
                headers=list(headers_of(number)),
                on_delivery=self._keep,
            )
        client.flush()

    def _keep(self, error: KafkaError | None, message: Message) -> None:
        assert error is None
        record = Record.of(message)
        self.originals[record.partition, record.offset] = SourceRecord(
            partition=record.partition,
            offset=record.offset,
            key=record.key,
            value=record.value,
            headers=headers_of(int(record.key_text[1:])),
            timestamp_ms=record.timestamp_ms,
        )

    def replayed(self) -> list[Record]:
        """Read what a read_committed consumer sees of the topic, without the originals."""
        return [record for record in self.records(self.topic) if b"forged" not in dict(record.headers).values()]

    # The rows

    def load_again(self, key: str, copies: int, delay: float = 1) -> None:
        """Write rows of one key, a second apart, `copy 0` first."""
        for copy in range(copies):
            self.sql(
                "insert into dw.departures (id, delay, note, loaded_at) values (%s, %s, %s, %s)",
                key,
                delay,
                f"copy {copy}",
                f"2013-01-01 00:00:{copy:02d}+00",
            )

    def store(self) -> Rows:
        """Return (id, delay) of every row of the store."""
        return self.sql("select id, delay from dw.departures order by id, delay")

    # The window

    def finding(self, number: int, verdict: Verdict, hop: str = "flights→warehouse") -> Finding:
        """Return a finding of key `K<number>`, whose copies in the topic are its evidence.

        The source agrees with the first of the rows that are repeated.
        """
        copies = [record for record in self.originals.values() if record.key == f"K{number}".encode()]
        evidence: dict[str, Any] = {"source": [{"partition": copy.partition, "offset": copy.offset} for copy in copies]}
        if verdict is Verdict.DUPLICATE and hop == "flights→warehouse":
            evidence["values"] = {"delay": self.first_delay(f"K{number}")}
        return Finding(
            hop=hop,
            key=f"K{number}",
            key_hash=f"{number:032x}",
            verdict=verdict,
            cause=Cause.NOT_IN_SOURCE,
            evidence=evidence | {"source_copies": len(copies)},
        )

    def first_delay(self, key: str) -> str | None:
        """Return the delay of a key's first row, as it is compared; None: it has no row."""
        first = "select trim_scale(delay)::text from dw.departures where id = %s order by loaded_at, ctid limit 1"
        rows = self.sql(first, key)
        return None if not rows or rows[0][0] is None else str(rows[0][0])

    def open_revision(self, findings: Iterable[Finding]) -> Window:
        """Open the next revision of the window, which found this."""
        self.revision += 1
        self.window = self._open_window(self.revision)
        self._put_findings(findings)
        return self.window

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

    def _put_findings(self, findings: Iterable[Finding]) -> None:
        rows = [
            {
                "hop": finding.hop,
                "key": finding.key,
                "key_hash": finding.key_hash,
                "verdict": finding.verdict.value,
                "cause": finding.cause.value,
            }
            for finding in findings
        ]
        self.journal_sql(
            "insert into makewhole.finding (pipeline, number, revision, hop, key, key_hash, verdict, cause, evidence) "
            "select %s, 1, %s, hop, key, key_hash, verdict, cause, '{}' "
            "from json_to_recordset(%s) as found (hop text, key text, key_hash text, verdict text, cause text)",
            self.pipeline.name,
            self.revision,
            json.dumps(rows),
        )

    # The plan

    def freeze(self, findings: Sequence[Finding], *, window_keys: int = 1_000_000, is_new: bool = True) -> FreezeResult:
        """Freeze what is planned for these findings, of a new revision unless `is_new` is false."""
        window = self.open_revision(findings) if is_new or self.window is None else self.window
        return freeze_plan(
            self.journal,
            FreezeRequest(pipeline=self.pipeline, window=window, findings=findings, window_keys=window_keys),
            self.sources,
        )

    def freeze_plan(
        self, findings: Sequence[Finding], *, window_keys: int = 1_000_000, is_new: bool = True
    ) -> FrozenPlan:
        """Freeze as above; there is a plan."""
        frozen = self.freeze(findings, window_keys=window_keys, is_new=is_new)
        assert frozen.plan is not None
        return FrozenPlan(**vars(frozen))

    def plan(self, findings: Sequence[Finding], *, window_keys: int = 1_000_000) -> Plan:
        """Freeze the plan for these findings, of a new revision."""
        return self.freeze_plan(findings, window_keys=window_keys).plan

    def run(self, plan_id: str, **options: Any) -> list[Receipt]:
        """Run a plan; `options` are those of `RunOptions`."""
        return run_plan(self.journal, plan_id, self.targets, options=RunOptions(**options))

    def outcomes(self, plan_id: str) -> dict[str, tuple[str | None, str | None]]:
        """Return outcome and reason of each action, by key."""
        rows = self.journal_sql("select key, outcome, outcome_reason from makewhole.action where plan = %s", plan_id)
        return {row[0]: (row[1], row[2]) for row in rows}


def headers_of(number: int) -> tuple[tuple[str, bytes], ...]:
    """Return an original's headers; the forged one must not survive a redelivery."""
    return ("trace", f"t{number}".encode()), ("makewhole-plan", b"forged")


def flights_pipeline(topic: str) -> Pipeline:
    """Return the pipeline of a topic: what is missing is sent or produced, what is too much is moved aside."""
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
                leave=("note",),
            ),
        ),
        compare={"delay": "int"},
        limits=Limits(actions=10_000, share=1.0, records_per_second=5),
        approval=Approval(above_actions=10_000),
    )
