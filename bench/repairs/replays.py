"""Replay a plan as compensation runs it, beside a plain idempotent producer of the very same records.

The plan is frozen as `makewhole.compensation.freezing.freeze` leaves it: actions and approval in a journal, payloads in
a file.
"""

import hashlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import pyarrow.parquet as pq
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.measuring.data_set import DataSet
from bench.measuring.meter import Cost, Meter
from bench.measuring.results import Series
from bench.repairs.freeze import freeze
from bench.topics.fill import PARTITIONS, records
from bench.topics.headers import scan
from makewhole.compensation.execution.run_plan import run_plan
from makewhole.compensation.execution.targets import Target
from makewhole.compensation.freezing.chunks import PlannedPayload
from makewhole.journal.database import migrate
from makewhole.kafka.offsets import high_watermarks, stable_offsets
from makewhole.kafka.replay import BATCHING
from makewhole.kafka.replay_records import LineageHeaders, ReplayRecords
from makewhole.model.actions import Action, BeforeRedeliver, Payload, PayloadExtra
from makewhole.model.connection import KafkaConnection
from makewhole.model.plan import Plan
from makewhole.model.points import TopicPoint
from makewhole.stack.postgres_server import PostgresServer, create_database

REPLAY = "makewhole"
PRODUCER = "plain producer"
_TARGET = "flights"
_FLUSH_SECONDS = 120
_StageT = TypeVar("_StageT")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The Kafka that plans are replayed to, and the journal that they are in."""

    bootstrap: str
    topic: str
    codec: str
    journal: str

    @property
    def connection(self) -> KafkaConnection:
        properties = {"bootstrap.servers": self.bootstrap, "compression.type": self.codec}
        return KafkaConnection(id="log", properties=properties)

    @property
    def target(self) -> Target:
        point = TopicPoint(name=_TARGET, connection="log", topic=self.topic, key=("$.flight_id",))
        return Target(point=point, connection=self.connection)


class Side(Generic[_StageT]):
    """A process that is up all the time and runs one task at a time."""

    def __init__(self, name: str, task: Callable[[_StageT, Plan], int]) -> None:
        self.name, self._task = name, task
        self._pool = ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn"))

    def __enter__(self) -> Self:
        self._pid = self._pool.submit(os.getpid).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def run(self, stage: _StageT, plan: Plan) -> Cost:
        """Write the plan's records, all of them."""
        with Meter(self._pid) as meter:
            written = self._pool.submit(self._task, stage, plan).result()
        if written != plan.actions:
            raise RuntimeError(f"{self.name} wrote {written} of {plan.actions} records")
        return meter.cost


def measured(
    bootstrap: str, folder: Path, data: DataSet, rounds: int, report: Callable[[str], None]
) -> Iterator[Series]:
    """Measure both sides in turn, a plan of its own each time, after one run each that warms up."""
    with PostgresServer(folder / "postgres") as server, Side(REPLAY, replay) as ours, Side(PRODUCER, produce) as theirs:
        topic = f"replays-{data.topic}"
        journal = create_database(server.dsn, topic.replace("-", "_"))
        stage = Stage(bootstrap=bootstrap, topic=topic, codec=data.codec, journal=journal)
        _make(stage)
        series_by_side = {side.name: Series(part="replay", side=side.name, data=data) for side in (ours, theirs)}
        for number in range(1, rounds + 2):
            plan = freeze(stage.journal, _items(stage, data), number, folder)
            for side in (ours, theirs) if number % 2 == 1 else (theirs, ours):
                cost = side.run(stage, plan)
                times = f"{cost.wall_seconds:6.2f} s, {cost.cpu_seconds:6.2f} s of cores"
                report(f"replay   {data.title:18} {side.name:18} {times}")
                series_by_side[side.name].warm.extend([cost] if number > 1 else [])
        _require_all(stage, data.records * 2 * (1 + rounds))
        yield from series_by_side.values()


def _make(stage: Stage) -> None:
    migrate(stage.journal)
    admin = AdminClient({"bootstrap.servers": stage.bootstrap})
    # The records keep their old times, by which the broker would delete them at once.
    topic = NewTopic(stage.topic, PARTITIONS, 1, config={"retention.ms": "-1"})
    admin.create_topics([topic])[stage.topic].result()


def _require_all(stage: Stage, wanted: int) -> None:
    """Require that every record is there, and committed. The broker answers a commit before it has marked the
    records as such."""
    deadline = time.monotonic() + _FLUSH_SECONDS
    while stable_offsets(stage.connection, stage.topic) != high_watermarks(stage.connection, stage.topic):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{stage.topic} has a transaction that does not end")
        time.sleep(0.1)
    there, _ = scan(stage.bootstrap, stage.topic, False)
    if there != wanted:
        raise RuntimeError(f"{stage.topic} holds {there} records, and both sides together wrote {wanted}")


def _items(stage: Stage, data: DataSet) -> Iterator[PlannedPayload]:
    place = stage.target.point.place
    for index, record in enumerate(records(data)):
        origin = f"{data.topic}/{index % PARTITIONS}/{index // PARTITIONS}"
        yield (
            Action(
                seq=0,
                hop="flights→warehouse",
                target=_TARGET,
                key=record["key"],
                key_hash=hashlib.md5(record["key"].encode(), usedforsecurity=False).hexdigest(),
                before=BeforeRedeliver(place=place, origin=origin),
            ),
            Payload(
                key=record["key"].encode(),
                value=record["value"].encode(),
                headers=(("trace", b"%032x" % index),),
                timestamp_ms=1_700_000_000_000 + index,
                partition=index % PARTITIONS,
                extra=PayloadExtra(origin=origin),
            ),
        )


def replay(stage: Stage, plan: Plan) -> int:
    """Run the plan: lease, checks, every chunk exactly once, the journal."""
    receipts = run_plan(stage.journal, plan.id, {_TARGET: stage.target})
    return sum(receipt.actions for receipt in receipts)


def produce(stage: Stage, plan: Plan) -> int:
    """Produce the same records with the same headers from the same file: no transaction, no journal, nothing
    checked."""
    settings: dict[str, Any] = {**stage.connection.properties, **BATCHING, "enable.idempotence": True}
    producer, written = Producer(settings), 0
    assert plan.payload_uri is not None
    with pq.ParquetFile(plan.payload_uri) as file:
        for chunk in range(file.num_row_groups):
            lineage = LineageHeaders(plan=plan.id, window="bench/0", chunk=chunk)
            chunk_records = ReplayRecords(file.read_row_group(chunk), lineage)
            for value, key, headers, partition, timestamp in chunk_records.messages():
                _send(producer, stage.topic, value, key, headers=headers, partition=partition, timestamp=timestamp)
                written += 1
    if left := producer.flush(_FLUSH_SECONDS):
        raise RuntimeError(f"{left} records were not written in two minutes")
    return written


def _send(producer: Producer, *message: Any, **place: Any) -> None:
    while True:
        try:
            producer.produce(*message, **place)
            return
        except BufferError:
            producer.poll(0.1)
