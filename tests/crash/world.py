"""Where cases happen: a topic, a journal and a target database that are used again and again, a fresh plan for each."""

import itertools
import uuid
from collections.abc import Mapping
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
from tests.crash.scenario import PARTITIONS, Place

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

    def next_place(self) -> Place:
        """A pipeline, and with it a plan, that nobody has had before."""
        return replace(self._place, pipeline=f"{self.name}-{next(self._numbers)}")

    def start(self, case: Case, *, through: Mapping[str, Any] | None = None, **order: Any) -> Run:
        """A runner at work on the case."""
        place = {**asdict(case.place), **(through or {})}
        order = {"phase": case.phase, **order, "place": place, "folder": self.runners.folder}
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
