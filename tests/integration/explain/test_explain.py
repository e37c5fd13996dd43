"""Test `makewhole explain` on a real log, real tables and a real journal: every copy, verdict and action, in order."""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.compute.frames import VERDICTS
from makewhole.compute.keys import key_hash
from makewhole.journal import plan_progress, plans, windows
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.results import hop_results, snapshot_manifests
from makewhole.journal.results.hop_results import HopResult
from makewhole.kafka.offsets import describe_topic
from makewhole.lake.storage import Storage
from makewhole.lake.stored_verdicts import SEMANTICS
from makewhole.model.actions import Action, BeforeRedeliver
from makewhole.model.connection import KafkaConnection
from makewhole.model.plan import Plan, PlanState, Receipt
from makewhole.model.points import TopicPoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Cause, Finding, HopCounts, Verdict
from makewhole.model.window import PartitionRange, Window
from makewhole.sql import PgConnection
from makewhole.stack.kafka_server import KafkaServer
from makewhole.window.context import WindowContext, connections_of, find_pipeline
from makewhole_spark.snapshot.read_piece import TopicPiece, read_topic_piece
from tests.world.environment import enter, service_environment
from tests.world.pipeline_file import ledger, pipeline_file, store
from tests.world.pipeline_file import topic as topic_point
from tests.world.topics import delete_topics, left_open, make_topic
from tests.world.world import World

pytestmark = pytest.mark.integration

BORN = datetime(2013, 1, 1, 6, tzinfo=UTC)
PLAN = "journeys-1-0123456789ab"
TABLES = (
    "create schema ops; create schema dw;"
    "create table ops.outbox (id text primary key, delay int, secret text, at timestamptz);"
    "create table dw.departures (id text, delay int, secret text, loaded_at timestamptz);"
    "insert into ops.outbox values ('K1', 5, 'hush', '2013-01-01 06:00Z');"
    "insert into ops.outbox values ('K2', 7, 'hush', '2013-01-01 06:00Z');"
    "insert into dw.departures values ('K1', 5, 'hush', '2013-01-01 06:05Z')"
)


@dataclass(frozen=True, kw_only=True)
class Service:
    """The command line against servers of this test's own."""

    environment: Mapping[str, str]
    storage: Path

    def explain(self, *arguments: str, **changed: str) -> Result:
        return CliRunner().invoke(app, ["explain", *arguments], env={**self.environment, **changed})

    def document(self, key: str, **changed: str) -> dict[str, Any]:
        result = self.explain("journeys", key, "--json", **changed)
        assert result.exit_code == 0, result.output
        (line,) = result.stdout.splitlines()
        document: dict[str, Any] = json.loads(line)
        return document


@pytest.fixture
def world(kafka: KafkaServer, database: str, journal: str) -> World:
    return World(bootstrap=kafka.bootstrap, dsn=database, journal=journal)


@pytest.fixture
def topic(world: World) -> Iterator[str]:
    name = f"flights-{uuid.uuid4().hex[:8]}"
    make_topic(world.admin, name)
    yield name
    delete_topics(world.admin, [name])


@pytest.fixture
def service(world: World, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Window 1 of a pipeline: K1 was sent twice, K2 never reached the warehouse and was redelivered, K3 was aborted."""
    environment = {**service_environment(world, tmp_path, postgres="people"), "COLUMNS": "400"}
    enter(monkeypatch, environment)
    (tmp_path / "pipelines" / "flights.yaml").write_text(_file(topic))
    world.sql(TABLES)
    _records(world.bootstrap, topic)
    with connect() as session:
        _window(session)
    return Service(environment=environment, storage=tmp_path / "storage")


def _file(topic: str) -> str:
    return pipeline_file(
        "journeys",
        points={
            "outbox": ledger("people", "ops.outbox"),
            "flights": topic_point("log", topic),
            "warehouse": store("people", "dw.departures", time="loaded_at"),
        },
        hops=[{"from": "outbox", "to": "flights"}, {"from": "flights", "to": "warehouse"}],
        settings={"compare": "{delay: int}"},
        columns={},
    )


def _records(bootstrap: str, topic: str) -> None:
    """Offsets: 0 K1, 1 K2, 2 a replay of K1, then K3 in a transaction that is aborted, and its marker."""
    plain = Producer({"bootstrap.servers": bootstrap})
    headers: list[Any] = [None, None, [("makewhole-plan", PLAN.encode())]]
    for (key, delay), header in zip((("K1", 5), ("K2", 7), ("K1", 5)), headers, strict=True):
        value = json.dumps({"id": key, "delay": delay, "secret": "hush"})
        plain.produce(topic, value=value, timestamp=int(BORN.timestamp() * 1000), headers=header)
        plain.flush()
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    transactional.init_transactions(30)
    transactional.begin_transaction()
    transactional.produce(topic, value=json.dumps({"id": "K3", "delay": 1}), timestamp=int(BORN.timestamp() * 1000))
    transactional.flush()
    transactional.abort_transaction(30)
    assert not left_open(bootstrap, topic)


def _window(journal: PgConnection) -> None:
    pipeline = find_pipeline("journeys")
    point = pipeline.points["flights"]
    assert isinstance(point, TopicPoint)
    connections = connections_of(pipeline)
    log = connections["log"]
    assert isinstance(log, KafkaConnection)
    topic_id = describe_topic(log, point.topic).topic_id
    whole = PartitionRange(topic=point.topic, topic_id=topic_id, partition=0, lo=0, hi=5)
    window = Window(
        pipeline="journeys",
        number=1,
        revision=1,
        start=None,
        end=datetime(2013, 1, 2, tzinfo=UTC),
        opened_at=datetime.now(UTC),
        ranges={"flights": (whole,)},
    )
    windows.insert(journal, window, request="test", plan_only=False, configuration={})
    context = WindowContext(
        pipeline=pipeline, window=window, connections=connections, storage=Storage.from_environment()
    )
    read = read_topic_piece(TopicPiece(context=context, point=point, bucket_count=2, range=whole, window_lo=0))
    files: dict[str, list[str]] = {}
    for bucket, path in read.files:
        files.setdefault(bucket, []).append(path)
    snapshot_manifests.commit_snapshot(journal, window, "flights", {"files": files})
    _judge(journal, window, context.storage)
    _repair(journal, window)


def _judge(journal: PgConnection, window: Window, storage: Storage) -> None:
    """K1 matched, K2 missing in the warehouse."""
    rows = [("flights→warehouse", "00of1", key_hash("K1"), "matched", None, True)]
    verdicts = storage.write_parquet(f"{window.prefix}/flights-warehouse/verdicts", _frame(rows))
    files = {"verdicts_by_bucket": {"00of1": [verdicts]}, "summary": {"clean": 0}, SEMANTICS: "event"}
    result = HopResult(hop="flights→warehouse", counts=HopCounts(), digest="", files=files)
    finding = Finding(
        hop="flights→warehouse",
        key="K2",
        key_hash=key_hash("K2"),
        verdict=Verdict.MISSING,
        cause=Cause.COMMITTED_BEFORE_WRITTEN,
        evidence={"source_copies": 1},
    )
    for stage in (hop_results.RECONCILED, hop_results.VERIFIED):
        hop_results.commit_results(journal, window, stage, [result])
    window_findings.commit_findings(journal, window, [finding])
    window_findings.set_outcomes(journal, window, [JudgedFinding(finding=finding, outcome="repaired")])


def _frame(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=VERDICTS, orient="row")


def _repair(journal: PgConnection, window: Window) -> None:
    """A plan of two chunks; its first action was refused, so that K2 is the first of the second chunk."""
    actions = [
        Action(
            seq=seq,
            chunk=seq // 2,
            hop="flights→warehouse",
            target="flights",
            key=key,
            key_hash=hashed,
            before=BeforeRedeliver(place="kafka:flights"),
        )
        for seq, (key, hashed) in enumerate(
            (key, key_hash(key) if key == "K2" else f"{seq:032x}") for seq, key in enumerate(("A", "B", "K2", "C"))
        )
    ]
    plan = Plan(
        id=PLAN,
        pipeline="journeys",
        window=1,
        revision=1,
        sha256="0" * 64,
        payload_uri=None,
        counts={"redeliver": 4},
        state=PlanState.DONE,
    )
    plans.put_plan(journal, plans.StoredPlan(plan=plan, payload_sha256=None), map(Action.line, actions))
    now = datetime.now(UTC)
    plans.put_approval(journal, plan, decision="approved", by="ann", at=now, expires=None, seen={})
    for chunk, refused in enumerate(({0: Refusal(RefusalCode.OTHER, "too old")}, {})):
        receipt = Receipt(
            plan=PLAN, target="flights", chunk=chunk, actions=2 - len(refused), place=f"replay-{PLAN}@{chunk + 1}"
        )
        plan_progress.follow_receipt(journal, receipt, refused)


def test_a_key_is_shown_at_every_point_with_all_that_the_log_says_of_it(service: Service) -> None:
    outbox, flights, warehouse = service.document("K1")["points"]
    row = {"place": "(0,1)", "time": "2013-01-01T06:00:00+00:00", "values": {"delay": "5"}}
    assert outbox == {
        "point": "outbox",
        "kind": "ledger",
        "system": "table ops.outbox",
        "looked": ["the table as it is now"],
        "problems": [],
        "copies": [row],
    }
    assert warehouse["copies"] == [row | {"time": "2013-01-01T06:05:00+00:00"}]
    assert flights["looked"] == ["the snapshot of window 1"]
    first, second = flights["copies"]
    assert first == {
        "place": "0:0",
        "time": "2013-01-01T06:00:00+00:00",
        "values": {"delay": "5"},
        "window": 1,
        "revision": 1,
        "partition": 0,
        "offset": 0,
        "leader_epoch": 0,
        "producer_id": -1,
        "producer_epoch": -1,
        "sequence": -1,
        "is_transactional": False,
        "is_aborted": False,
        "replay_plan": None,
        "is_replay": False,
        "is_tombstone": False,
    }
    assert (second["offset"], second["replay_plan"], second["is_replay"]) == (2, PLAN, False)


def test_a_matched_key_has_its_verdict(service: Service) -> None:
    (judged,) = service.document("K1")["windows"]
    assert (judged["window"], judged["hop"]["to"], judged["verdict"]) == (1, "warehouse", "matched")
    assert judged["judged_at"] is not None


def test_a_repaired_key_shows_finding_plan_answer_receipt_and_outcome_in_order(service: Service) -> None:
    document = service.document("K2")
    events = [(event["kind"], event["where"], event["text"]) for event in document["events"]]
    assert sorted(event["time"] for event in document["events"]) == [event["time"] for event in document["events"]]
    assert events[:2] == [
        ("row", "outbox", "table ops.outbox (0,2)"),
        ("record", "flights", "partition 0 offset 1, leader epoch 0, no producer id"),
    ]
    assert sorted(events[2:]) == [
        ("decided", "flights", "approval approved by ann"),
        ("done", "flights", f"redeliver, chunk 1, receipt replay-{PLAN}@2"),
        (
            "judged",
            "flights→warehouse",
            "missing: committed_before_written, its loader, by group or its own progress, passed its record: the "
            "target lacks it",
        ),
        ("outcome", "flights→warehouse", "repaired"),
        ("planned", "flights", f"redeliver, action 2 of plan {PLAN}; the plan is done"),
    ]
    assert document["actions"][0]["outcome"] == "done"


def test_an_aborted_record_is_shown_with_its_producer(service: Service) -> None:
    (copy,) = service.document("K3")["points"][1]["copies"]
    assert (copy["is_aborted"], copy["is_transactional"], copy["sequence"]) == (True, True, 0)
    assert copy["producer_id"] >= 0


def test_people_read_a_table_and_values_are_compared_columns_only(service: Service) -> None:
    result = service.explain("journeys", "K1")
    assert result.exit_code == 0
    assert f"names plan {PLAN}, which did not replay it" in result.stdout
    assert "delay=5" in result.stdout
    assert "hush" not in result.stdout + json.dumps(service.document("K1"))


def test_an_unknown_key_says_where_it_was_looked_for(service: Service) -> None:
    result = service.explain("journeys", "K\x1b[31m9", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["known"] is False
    assert result.stderr.splitlines() == [
        "nothing is known of key K\\x1b[31m9 in journeys. Looked for in:",
        "  outbox (table ops.outbox): the table as it is now",
        "  flights (topic " + json.loads(result.stdout)["points"][1]["system"].removeprefix("topic ") + "): "
        "the snapshot of window 1",
        "  warehouse (table dw.departures): the table as it is now",
        "  the journal: findings and actions of every window",
        "Records that came after the last window are in no snapshot yet; `makewhole run` opens the next window.",
    ]


def test_what_cannot_be_looked_at_does_not_hide_the_rest(service: Service) -> None:
    away = json.dumps({"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "login": "x", "schema": "x"})
    for path in service.storage.rglob("keys/**/*.parquet"):
        path.unlink()
    document = service.document("K2", AIRFLOW_CONN_PEOPLE=away)
    outbox, flights, _ = document["points"]
    assert outbox["looked"] == []
    assert outbox["problems"][0].startswith("the PostgreSQL of connection people does not answer")
    assert flights["problems"][0].startswith("window 1: ")
    assert "is not there" in flights["problems"][0]
    assert [item["verdict"] for item in document["windows"]] == ["missing"]
    assert "not known: could not look" in service.explain("journeys", "K2", AIRFLOW_CONN_PEOPLE=away).stdout
