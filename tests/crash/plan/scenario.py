"""Plan and carry out a repair: two chunks into a topic, two into a table, with an action in each that cannot be done.

`K0`–`K4` are redelivered, of which K4 is unfit: its partition is gone. `K5` is inserted and `K6` mended; of `K7`–`K9`
the extra rows are moved aside, but K9 was changed after the plan was made.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest import mock

from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.execution import supersede
from makewhole.compensation.execution.attempt import Attempt
from makewhole.compensation.execution.run_plan import RunOptions, run_plan
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.freezing.freeze import FreezeRequest, FreezeSources
from makewhole.compensation.plan_window import freeze_plan
from makewhole.compensation.sources.sources import SourceRecord
from makewhole.compensation.undo.plan_undo import UndoRequest, freeze_undo
from makewhole.kafka import replay
from makewhole.kafka.partitioner import KnownKeys
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Approval, Limits, Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.model.window import Window
from tests.crash.plan import lakes, produced
from tests.crash.plan.case_settings import MADE, CaseSettings, Writes

PARTITIONS = 2
CHUNK_ACTIONS = 3
BORN_MS = 1_356_998_400_000
WRITTEN = ("K0", "K1", "K2", "K3")
"""Keys whose record is sent again."""

REFUSED = {
    "K4": "unfit: the topic has no partition 7 any more",
    "K9": "stale: rows of this key changed after the plan was made",
}
BEFORE = [("K6", -1), ("K7", 7), ("K7", 7), ("K8", 8), ("K8", 8), ("K8", 8), ("K9", 9), ("K9", 9)]
"""(id, delay) in the table when the plan is made."""

AFTER = [("K5", 5), ("K6", 6), ("K7", 7), ("K8", 8), ("K9", 9), ("K9", 10)]
"""The same when it is done; the row that changed meanwhile is left alone."""

QUARANTINED = [("K7", 7), ("K8", 8), ("K8", 8)]
EFFECTS = [(5, "inserted"), (6, "updated"), (7, "moved"), (8, "moved"), (8, "moved")]
"""(number of the action, what became of a row)."""

RESTORED = [("K6", 66), ("K7", 7), ("K7", 7), ("K8", 8), ("K8", 8), ("K8", 8), ("K9", 9), ("K9", 10)]
"""(id, delay) when all that is taken back; K6 was changed since."""

RESTORING = [(0, "inserted"), (1, "inserted"), (2, "inserted"), (4, "deleted")]
"""(number of the action of the undo, what became of a row)."""

OPENED_AT = datetime(2013, 1, 2, tzinfo=UTC)
_MIRROR = "flights→mirror"


class Archive:
    """The original records, as the window's archive has them."""

    def records(self, point: str, positions: Sequence[tuple[int, int]]) -> Iterable[SourceRecord]:
        return [_original(offset) for _, offset in positions]

    def removed(self, point: str) -> str | None:
        return None

    def partition_count(self, point: str) -> int:
        return PARTITIONS

    def known_keys(self, point: str) -> KnownKeys | None:
        return None


def do_freeze(settings: CaseSettings) -> str:
    """Freeze the plan of the case's window; return its id, or nothing when there is nothing left to plan."""
    request = FreezeRequest(
        pipeline=pipeline(settings), window=window(settings), findings=findings(settings), window_keys=1_000
    )
    frozen = freeze_plan(settings.journal, request, _sources(settings))
    return frozen.plan.id if frozen.plan else ""


def do_approve(settings: CaseSettings) -> str:
    """Answer for the plan; return its state."""
    answer = Answer(sha256=settings.sha256, decision=Decision.APPROVED, by="oncall", at=datetime.now(UTC))
    return record_answer(settings.journal, settings.plan, answer, pipeline(settings).approval).state.value


def do_compensate(settings: CaseSettings) -> str:
    """Run the plan as a task does: under the plan's own name, which a retry of the task has too, or under another."""
    replay.MARKER_TOPIC = settings.marker_topic
    targets = targets_of(pipeline(settings), settings.connections())
    options = RunOptions(holder=settings.holder or f"plan {settings.plan}", lease_seconds=settings.lease_seconds)
    receipts = run_plan(settings.journal, settings.plan, targets, options=options)
    return str(len(receipts))


def do_supersede(settings: CaseSettings) -> str:
    """Freeze the plan of a later revision, which ends the one before. Its runner is gone, and the one that ends it may
    be killed too: no runner waits for a lease, the epoch alone decides who is the last."""
    attempt = partial(Attempt, holder="a later revision", lease_seconds=0.0)
    mock.patch.object(supersede, "Attempt", attempt).start()
    return do_freeze(settings)


def do_undo(settings: CaseSettings) -> str:
    """Freeze the plan that undoes the one that is done; return its id, or nothing when that one wrote no row."""
    request = UndoRequest(plan=settings.plan, pipeline=pipeline(settings))
    undo = freeze_undo(settings.journal, request, _sources(settings))
    return undo.plan.id if undo.plan else ""


PHASES = {
    "freeze": do_freeze,
    "approve": do_approve,
    "compensate": do_compensate,
    # The very first one at this Kafka: the topic of the markers is made.
    "first": do_compensate,
    # Taken up again when the marker has expired: what was written is looked for in the topic itself.
    "marker lost": do_compensate,
    # A later revision of the window, when its plan was killed between its first commit and the journal.
    "supersede": do_supersede,
    # A plan of tables alone, which is done, is taken back: that is planned, and then carried out.
    "undo": do_undo,
    "restore": do_compensate,
    # The same for a plan that writes to an Iceberg table and to a dataset of files.
    "datasets freeze": do_freeze,
    "datasets": do_compensate,
    "datasets undo": do_undo,
    "datasets restore": do_compensate,
    # And for records that are made of a ledger's rows, and as reversals, in formats with a schema.
    **{
        f"{name}{step}": do
        for name in ("avro", "protobuf", "connect")
        for step, do in ((" freeze", do_freeze), ("", do_compensate))
    },
}
"""The phases of plans' lives; `tests/crash/plan/phase_start.py` brings a case to where each begins."""

WRITES = {
    "undo": Writes.TABLE,
    "restore": Writes.TABLE,
    **dict.fromkeys(("datasets freeze", "datasets", "datasets undo", "datasets restore"), Writes.DATASETS),
    **{
        f"{name}{step}": writes
        for name, writes in (("avro", Writes.AVRO), ("protobuf", Writes.PROTOBUF), ("connect", Writes.CONNECT))
        for step in (" freeze", "")
    },
}
"""What the plan of a phase writes to, if not to a topic and a table."""

FROZEN = tuple(name for name in PHASES if name.endswith("freeze"))
"""Phases that begin without a plan."""
DONE = ("undo", "restore", "datasets undo", "datasets restore")
"""Phases that begin when the plan is done."""
UNDONE = ("restore", "datasets restore")
"""And when its undoing is frozen and approved."""

FREEZING = (*FROZEN, "supersede", "undo", "datasets undo")
"""Phases that keep a transaction of the journal open while they fetch payloads and put them into the storage."""


def _sources(settings: CaseSettings) -> FreezeSources:
    return FreezeSources(storage=settings.storage, records=Archive(), connections=settings.connections())


def window(settings: CaseSettings) -> Window:
    """Return the window of a case."""
    return Window(
        pipeline=settings.pipeline,
        number=1,
        revision=settings.revision,
        start=None,
        end=OPENED_AT + timedelta(days=1),
        opened_at=OPENED_AT,
        ranges={},
    )


def findings(settings: CaseSettings) -> list[Finding]:
    """Return what the window found; of tables alone, where there is no topic to write to."""
    if settings.writes in MADE:
        return [_finding(hop, verdict, number) for hop, verdict, of_it in produced.found() for number in of_it]
    missing: list[tuple[str, Verdict, Iterable[int]]] = [(_MIRROR, Verdict.MISSING, range(5))]
    stores = {Writes.DATASETS: lakes.STORES}.get(Writes(settings.writes), ("warehouse",))
    of_rows: list[tuple[str, Verdict, Iterable[int]]] = [
        (f"flights→{store}", verdict, numbers)
        for store in stores
        for verdict, numbers in ((Verdict.MISSING, [5]), (Verdict.MISMATCHED, [6]), (Verdict.DUPLICATE, [7, 8, 9]))
    ]
    wanted = [*(missing if settings.writes == Writes.TOPIC_AND_TABLE else []), *of_rows]
    return [_finding(hop, verdict, number) for hop, verdict, of_it in wanted for number in of_it]


def pipeline(settings: CaseSettings) -> Pipeline:
    """Return the pipeline of a case."""

    def store(name: str, table: str) -> TablePoint:
        return TablePoint(name=name, kind=PointKind.STORE, connection="pg", table=table, key=("id",), time="loaded_at")

    return Pipeline(
        name=settings.pipeline,
        points={
            "flights": TopicPoint(name="flights", connection="kafka", topic=settings.topic, key=("$.id",)),
            "mirror": store("mirror", "dw.mirror"),
            "warehouse": store("warehouse", "dw.departures"),
            **(lakes.points() if settings.writes == Writes.DATASETS else {}),
            **(produced.points(settings) if settings.writes in MADE else {}),
        },
        hops=produced.hops(settings) if settings.writes in MADE else _hops(settings),
        compare={"delay": "int"},
        limits=Limits(actions=100, share=1.0, records_per_second=CHUNK_ACTIONS),
        approval=Approval(above_actions=0),
    )


def _hops(settings: CaseSettings) -> tuple[Hop, ...]:
    report = Remedy.REPORT
    mirrored = Hop(
        source="flights",
        target="mirror",
        remedies=Remedies(missing=Remedy.REDELIVER, duplicate=report, mismatched=report),
    )
    stores = ("warehouse", *(lakes.STORES if settings.writes == Writes.DATASETS else ()))
    return (mirrored, *map(_repaired, stores))


def _repaired(store: str) -> Hop:
    return Hop(
        source="flights",
        target=store,
        remedies=Remedies(missing=Remedy.UPSERT, duplicate=Remedy.QUARANTINE, mismatched=Remedy.UPSERT),
        leave=("loaded_at",),  # each run leaves the same rows
    )


def _original(number: int) -> SourceRecord:
    return SourceRecord(
        partition=7 if number == 4 else number % PARTITIONS,
        offset=number,
        key=f"K{number}".encode(),
        value=json.dumps({"id": f"K{number}", "delay": number}).encode(),
        headers=(("trace", f"t{number}".encode()),),
        timestamp_ms=BORN_MS + number,
    )


def _finding(hop: str, verdict: Verdict, number: int) -> Finding:
    original: Mapping[str, Any] = {"partition": _original(number).partition, "offset": number}
    return Finding(
        hop=hop,
        key=f"K{number}",
        key_hash=f"{number:032x}",
        verdict=verdict,
        cause=Cause.NOT_IN_SOURCE,
        evidence={
            "source": [original],
            "source_copies": 1,
            "target_copies": sum(key == f"K{number}" for key, _ in BEFORE),
            "values": {"delay": str(number)},
        },
    )
