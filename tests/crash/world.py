"""Where cases happen: a topic, a journal and a target database that are used again and again, a fresh plan for each."""

import itertools
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg2
from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from psycopg2.extensions import parse_dsn

from tests.crash.postgres_proxy import PostgresProxy
from tests.crash.runner import Order
from tests.crash.runners import Run, Runners
from tests.crash.scenario import BEFORE, OPENED_AT, PARTITIONS, Place, do_approve, do_freeze, findings

_TIMEOUT_SECONDS = 30.0
_TARGET_TABLES = (
    "create schema dw;"
    "create table dw.departures (id text, delay int, loaded_at timestamptz);"
    "create table dw.mirror (id text, delay int, loaded_at timestamptz)"
)


@dataclass(kw_only=True, eq=False)
class Case:
    """One plan and what happens to it. `starts` are the topic's ends before anything was written."""

    phase: str
    place: Place
    starts: dict[int, int]
    runs: list[Run] = field(default_factory=list)


class World:
    """One worker's own: nothing in it is shared with another worker but the servers."""

    def __init__(
        self, *, bootstrap: str, proxied_bootstrap: str, journal: str, target: str, proxy: PostgresProxy, folder: Path
    ) -> None:
        self.name = f"crash-{uuid.uuid4().hex[:6]}"
        self.proxy = proxy
        self.port = int(bootstrap.rpartition(":")[2])
        self.databases = tuple(parse_dsn(dsn)["dbname"] for dsn in (journal, target))
        self._place = Place(
            bootstrap=bootstrap,
            client_id=self.name,
            journal=journal,
            target=target,
            topic=self.name,
            storage=str(folder / "storage"),
            pipeline="",
        )
        self.through_kafkas_proxy = {"bootstrap": proxied_bootstrap}
        self.through_postgres_proxy = {"journal": _by_port(journal, proxy.port), "target": _by_port(target, proxy.port)}
        self._numbers = itertools.count()
        self.admin, self._consumer = _clients(bootstrap, self.name)
        self._make_topic()
        self._journal, self._target = (
            psycopg2.connect(dsn, application_name="enumeration") for dsn in (journal, target)
        )
        self._journal.autocommit = self._target.autocommit = True
        self.sql(_TARGET_TABLES)
        (folder / "reports").mkdir()
        self.runners = Runners(folder / "reports")

    def close(self) -> None:
        self.runners.close()
        self._consumer.close()
        self._journal.close()
        self._target.close()

    def sql(self, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        """At the target."""
        return _run(self._target, statement, parameters)

    def journal_sql(self, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        return _run(self._journal, statement, parameters)

    @contextmanager
    def fresh(self, phase: str) -> Iterator[Case]:
        """Everything as it is before this phase of a plan's life begins; what still runs at the end is killed."""
        case = self._fresh(phase)
        try:
            yield case
        finally:
            for run in case.runs:
                run.kill()

    def _fresh(self, phase: str) -> Case:
        number = next(self._numbers)
        place = replace(self._place, pipeline=f"{self.name}-{number}")
        self.proxy.forget()
        self._reset(place)
        if phase != "freeze":
            place = self._frozen(place)
        if phase not in ("freeze", "approve"):
            do_approve(place)
        if phase == "first":
            place = replace(place, marker_topic=f"{self.name}-markers-{number}")
        case = Case(phase=phase, place=place, starts=self.ends())
        if phase == "marker lost":
            self._lose_marker(case)
        return case

    def _frozen(self, place: Place) -> Place:
        """With a plan; a row of it is changed right afterwards."""
        plan = do_freeze(place)
        ((sha256,),) = self.journal_sql("select sha256 from makewhole.plan where id = %s", [plan])
        self.sql("update dw.departures set delay = 10 where id = 'K9' and ctid = '(0,8)'")
        return replace(place, plan=plan, sha256=sha256)

    def _lose_marker(self, case: Case) -> None:
        """Killed when the first chunk was committed and the journal did not know; then the marker expires."""
        self.start(case, name="after producer: commit_transaction", how="kill").wait("ended")
        group = case.place.identity
        self.admin.delete_consumer_groups([group])[group].result(_TIMEOUT_SECONDS)

    def start(self, case: Case, *, through: Mapping[str, Any] | None = None, **order: Any) -> Run:
        """A runner at work on the case."""
        place = {**asdict(case.place), **(through or {})}
        order |= {"phase": case.phase, "place": place, "folder": self.runners.folder}
        run = self.runners.start(Order(saboteur=str(self.proxy.control), **order))
        case.runs.append(run)
        return run

    def ends(self, *, is_stable: bool = False) -> dict[int, int]:
        """The topic's ends by partition: all of it, or up to where no transaction is open."""
        wanted = {TopicPartition(self.name, number): OffsetSpec.latest() for number in range(PARTITIONS)}
        isolation = IsolationLevel.READ_COMMITTED if is_stable else IsolationLevel.READ_UNCOMMITTED
        answers = self.admin.list_offsets(wanted, isolation_level=isolation, request_timeout=_TIMEOUT_SECONDS)
        return {place.partition: answer.result(_TIMEOUT_SECONDS).offset for place, answer in answers.items()}

    def committed(self, starts: dict[int, int]) -> list[Any]:
        """What a read_committed consumer sees from there on."""
        self._consumer.assign([TopicPartition(self.name, number, start) for number, start in starts.items()])
        found, ended = [], 0
        while ended < len(starts):
            message = self._consumer.poll(_TIMEOUT_SECONDS)
            assert message is not None, "the topic cannot be read"
            if message.error():
                ended += 1
            else:
                found.append(message)
        self._consumer.unassign()
        return found

    def _reset(self, place: Place) -> None:
        shutil.rmtree(place.storage, ignore_errors=True)
        self.sql("drop schema if exists makewhole cascade; truncate dw.departures")
        self.sql("insert into dw.departures (id, delay) values " + ", ".join(["%s"] * len(BEFORE)), BEFORE)
        self.journal_sql(
            "insert into makewhole.window (pipeline, number, revision, opened_at, end_time, request, configuration) "
            "values (%s, 1, 1, %s, '2013-01-03', 'test', '{}')",
            [place.pipeline, OPENED_AT],
        )
        rows = [(place.pipeline, item.hop, item.key, item.key_hash, item.verdict.value) for item in findings()]
        self.journal_sql(
            "insert into makewhole.finding (pipeline, number, revision, hop, key, key_hash, verdict, cause, evidence) "
            "select pipeline, 1, 1, hop, key, key_hash, verdict, 'not_in_source', '{}' from (values "
            + ", ".join(["%s"] * len(rows))
            + ") as f (pipeline, hop, key, key_hash, verdict)",
            rows,
        )

    def _make_topic(self) -> None:
        wanted = NewTopic(self.name, PARTITIONS, 1, config={"retention.ms": "-1"})
        self.admin.create_topics([wanted])[self.name].result(_TIMEOUT_SECONDS)


def _clients(bootstrap: str, name: str) -> tuple[AdminClient, Consumer]:
    shared = {"bootstrap.servers": bootstrap, "log_level": 0}
    reading = {
        "group.id": name,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 5,
    }
    return AdminClient(shared), Consumer(shared | reading)


def _by_port(dsn: str, port: int) -> str:
    """The same database by way of the proxy, whose framing knows no encryption."""
    own = parse_dsn(dsn)["port"]
    return dsn.replace(f":{own}/", f":{port}/") + "?sslmode=disable&gssencmode=disable"


def _run(connection: Any, statement: str, parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []
