"""Give a worker its topic, journal and target database, used again and again, with a new plan for each case."""

import itertools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg2
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from psycopg2.extensions import parse_dsn

from tests.crash.plan.case_settings import CaseSettings
from tests.crash.plan.produced import LEDGER_TABLE
from tests.crash.plan.scenario import PARTITIONS
from tests.crash.runners.processes import Run, Runners
from tests.crash.runners.runner import Instruction
from tests.crash.servers.postgres_proxy import PostgresProxy
from tests.crash.windows.stages import Stages
from tests.world.consumer import Record
from tests.world.sql import Parameters, Rows, execute
from tests.world.topics import make_topic

_TIMEOUT_SECONDS = 30.0
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_TARGET_TABLES = (
    "create schema dw;"
    "create table dw.departures (id text, delay int, loaded_at timestamptz);"
    "create table dw.mirror (id text, delay int, loaded_at timestamptz);"
    f"{LEDGER_TABLE}"
)


@dataclass(kw_only=True, eq=False)
class Case:
    """One plan, and the runs of it. `starts` are the topic's ends before anything was written."""

    phase: str
    settings: CaseSettings
    starts: dict[int, int]
    runs: list[Run] = field(default_factory=list)


class CrashWorld:
    """One worker's own: nothing in it is shared with another worker but the servers. Its sessions stay open."""

    def __init__(
        self,
        *,
        bootstrap: str,
        proxied_bootstrap: str,
        journal: str,
        target: str,
        proxy: PostgresProxy,
        folder: Path,
        stages: Stages,
    ) -> None:
        self.name = f"crash-{uuid.uuid4().hex[:6]}"
        self.proxy = proxy
        self.port = int(bootstrap.rpartition(":")[2])
        self.databases = tuple(parse_dsn(dsn)["dbname"] for dsn in (journal, target))
        self._settings = CaseSettings(
            bootstrap=bootstrap,
            client_id=self.name,
            journal=journal,
            target=target,
            topic=self.name,
            storage=str(folder / "storage"),
            lake=str(folder / "lake"),
            pipeline="",
        )
        self.kept_stages: dict[str, Any] = {}
        self.through_kafkas_proxy = {"bootstrap": proxied_bootstrap}
        self._stages = stages
        self._numbers = itertools.count()
        self.admin, self._consumer = _clients(bootstrap, self.name)
        make_topic(self.admin, self.name, PARTITIONS)
        self._journal, self._target = (
            psycopg2.connect(dsn, application_name="enumeration") for dsn in (journal, target)
        )
        self._journal.autocommit = self._target.autocommit = True
        self.sql(_TARGET_TABLES)
        (folder / "reports").mkdir()
        self.runners = Runners(folder / "reports")

    def close(self) -> None:
        """End runners, clients and sessions."""
        self.runners.close()
        self._consumer.close()
        self._journal.close()
        self._target.close()

    def sql(self, statement: str, parameters: Parameters = None) -> Rows:
        """Run plain SQL at the target."""
        return execute(self._target, statement, parameters)

    def journal_sql(self, statement: str, parameters: Parameters = None) -> Rows:
        """Run plain SQL in the journal."""
        return execute(self._journal, statement, parameters)

    def next_settings(self) -> CaseSettings:
        """Return a pipeline, and with it a plan, that no case has had before; the journal forgets what earlier cases
        sent into the topic, whose keys are the same."""
        self.journal_sql("delete from makewhole.replayed_position")
        return replace(self._settings, pipeline=f"{self.name}-{next(self._numbers)}")

    def settings_at(self, phase: str) -> CaseSettings:
        """Return those of a window where this phase begins; journal and files are as they are there."""
        return self._stages.restore(self, self._settings, phase)

    def through_postgres_proxy(self, case: Case) -> dict[str, str]:
        """Return the settings of a case whose connections to PostgreSQL go through the proxy."""
        databases = {"journal": case.settings.journal, "target": case.settings.target}
        return {name: _by_port(dsn, self.proxy.port) for name, dsn in databases.items()}

    def start(self, case: Case, *, through: Mapping[str, Any] | None = None, **instruction: Any) -> Run:
        """Set a runner to work on the case; `through` are settings that differ from the case's."""
        settings = replace(case.settings, application="makewhole", **(through or {}))
        run = self.run(instruction.pop("phase", case.phase), settings, **instruction)
        case.runs.append(run)
        return run

    def run(self, phase: str, settings: CaseSettings, **instruction: Any) -> Run:
        """Have a runner do the work of a phase."""
        control = str(self.proxy.control)
        fields = {**instruction, "settings": asdict(settings), "folder": self.runners.folder}
        return self.runners.start(Instruction(phase=phase, proxy_control=control, **fields))

    def delete_groups(self, groups: Sequence[str]) -> list[str]:
        """Delete consumer groups with what they have committed; return those that there were."""
        asked = self.admin.delete_consumer_groups(list(groups), request_timeout=_TIMEOUT_SECONDS) if groups else {}
        deleted = []
        for group, answer in asked.items():
            try:
                answer.result(_TIMEOUT_SECONDS)
                deleted.append(group)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    raise
        return deleted

    def ends(self, *, is_stable: bool = False) -> dict[int, int]:
        """Return the topic's ends by partition: all of it, or up to where no transaction is open."""
        wanted = {TopicPartition(self.name, number): _LATEST for number in range(PARTITIONS)}
        isolation = IsolationLevel.READ_COMMITTED if is_stable else IsolationLevel.READ_UNCOMMITTED
        answers = self.admin.list_offsets(wanted, isolation_level=isolation, request_timeout=_TIMEOUT_SECONDS)
        return {asked.partition: answer.result(_TIMEOUT_SECONDS).offset for asked, answer in answers.items()}

    def committed(self, starts: Mapping[int, int]) -> list[Record]:
        """Read what a read_committed consumer sees from there on."""
        self._consumer.assign([TopicPartition(self.name, number, start) for number, start in starts.items()])
        records, ended = [], 0
        while ended < len(starts):
            message = self._consumer.poll(_TIMEOUT_SECONDS)
            assert message is not None, "the topic cannot be read"
            if message.error():
                ended += 1
            else:
                records.append(Record.of(message))
        self._consumer.unassign()
        return records


def _clients(bootstrap: str, name: str) -> tuple[AdminClient, Consumer]:
    shared: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
    reading = {
        "group.id": name,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 5,
    }
    return AdminClient(shared), Consumer(shared | reading)


def _by_port(dsn: str, port: int) -> str:
    """Return the same database by way of the proxy, whose framing knows no encryption."""
    own = parse_dsn(dsn)["port"]
    return dsn.replace(f":{own}/", f":{port}/") + "?sslmode=disable&gssencmode=disable"
