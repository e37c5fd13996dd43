"""Read the durable state of a case from the servers: all that is left when a process is gone. Fingerprint it.

A recovery is a new process: whatever it does is a function of what it reads, and it can only read what is durable. So
two crashes that leave the same state have the same future, and it is enough to enumerate that once. What is read here
is every row that belongs to the case, whole, in every table of ours in both databases and in the tables that are
repaired; the committed records, the marker and the transaction in Kafka; the files of the plan. Left out is only what
differs from case to case without anybody asking for it, see `durable_state`.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from makewhole.kafka.wire.transaction_protocol import DescribeTransactionsRequest
from tests.crash.plan.case_settings import MADE, CaseSettings, Writes
from tests.crash.plan.produced import read_value
from tests.crash.runners.file_calls import FILE_STEPS
from tests.crash.runners.storage_calls import STORE_STEPS
from tests.crash.servers.world import Case, CrashWorld
from tests.crash.states import window_state
from tests.crash.states.durable_state import Durable, Record, Rows
from tests.crash.states.lake_state import read_lakes
from tests.crash.windows import window_scenario
from tests.lab import raw
from tests.world.consumer import Record as ReadRecord
from tests.world.sql import Rows as SqlRows

_DEADLINE_SECONDS = 60.0
_CARRIED_OUT_SECONDS = 5.0
_NO_TRANSACTIONAL_ID = 105
_OURS = "application_name = 'makewhole' and datname in (%s, %s)"


_ROWS = "its rows are in the fingerprint"
_ASKED = "asked for nothing durable"
COVERED = {
    **{
        f"journal: makewhole.{table}": _ROWS
        for table in (
            "plan",
            "planned_action",
            "action",
            "approval",
            "chunk",
            "replayed_position",
            "observation",
            "lease",
            "finding",
            "accepted_now",
            "hop_result",
            "window",
            "window_range",
            "lane",
            "removal",
            "certificate",
            "gate_report",
            "snapshot",
            "incident",
            "handover",
            "key_run",
            "key_merge",
            "slice_count",
            "step_failure",
            "acceptance",
            "accepted_finding",
            "continuation",
            "publication",
            "published_window",
            "finding_now",
            "erasure",
            "erased_plan",
        )
    },
    **{
        f"target: {table}": _ROWS
        for table in (
            "dw.departures",
            "dw.mirror",
            "dw.outbox",
            "makewhole.receipt",
            "makewhole.quarantine",
            "makewhole.effect",
            "makewhole.fence",
        )
    },
    **{
        f"target: pg_{table}": "the catalogue: it changes only by making the tables above"
        for table in (
            "class",
            "namespace",
            "attribute",
            "constraint",
            "trigger",
            "inherits",
            "index",
            "opclass",
            "type",
            "database",
            "depend",
            "rewrite",
            "cast",
            "collation",
            "enum",
            "partition_tree",
            "settings",
            "control_system",
        )
    },
    "target: pg_stat_bgwriter": "when the server was started, and the tables that are read never change",
    **{
        f"target: pg_{view}": "transactions that are prepared, and a standby's primary: here is none of them"
        for view in ("prepared_xacts", "locks", "stat_wal_receiver")
    },
    **{
        f"catalog: {table}": "its tables are read by another program"
        for table in ("iceberg_tables", "iceberg_namespace_properties")
    },
    **{f"catalog: pg_{table}": "the catalogue of the database" for table in ("catalog", "class", "namespace", "type")},
    **dict.fromkeys(FILE_STEPS, "lakes"),
    **dict.fromkeys(STORE_STEPS, "files"),
    "storage: open": "the payload file: its digest is in the plan",
    "storage: makedirs": "files",
    "storage: put_file": "files",
    "storage: mv": "files",
    "admin: list_topics": "the topics: they never change",
    "admin: describe_configs": "the topics: they never change",
    "raw: DescribeConfigsRequest": "the topics: they never change",
    "consumer: committed": "marker",
    "admin: create_topics": "marker topic",
    **{
        f"raw: {name}": "records, transaction"
        for name in ("LogEndsRequest", "PartitionFetchRequest", "LeaderEpochEndRequest")
    },
    **{f"raw: {name}": _ASKED for name in ("connect", "ApiVersionRequest", "TopicMetadataRequest")},
    **{
        f"raw: {name}": "who reads a topic: no group but the plan's own, which is the marker"
        for name in ("ListGroupsRequest", "CommittedOffsetsRequest")
    },
    "producer: list_topics": "the topics: they never change",
    "producer: init_transactions": "transaction",
    "producer: send_offsets_to_transaction": "transaction",
    "producer: commit_transaction": "transaction, marker, records",
    "producer: produce": "transaction",
    **{f"producer: {name}": _ASKED for name in ("begin_transaction", "poll", "flush", "purge")},
    **{f"consumer: {name}": _ASKED for name in ("consumer_group_metadata", "close")},
}
"""Everything that a runner touches, and where the fingerprint has it."""


def settle(world: CrashWorld) -> None:
    """Wait until the server has noticed that the sessions of dead runners are dead: their transactions are undone."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while world.journal_sql(f"select 1 from pg_stat_activity where {_OURS} limit 1", world.databases):
        assert time.monotonic() < deadline, "a session of a dead runner does not end"
        time.sleep(0.002)


def read(world: CrashWorld, case: Case) -> Durable:
    """Read the state as it is now; the case's own names are replaced by words."""
    if case.phase in window_scenario.PHASES:
        return window_state.read(world, case)
    settings = case.settings
    transaction = _transaction(world, settings.identity)
    held_back = _held_back(world, is_waiting=transaction != "open")
    committed = world.committed(case.starts)
    journal = _tables(world.journal_sql, conditions_of_journal(world), settings.pipeline)
    return Durable(
        journal={**journal, "replayed_position": _positions(journal["replayed_position"], committed)},
        target=_tables(world.sql, _target_tables(world), settings.pipeline),
        records=tuple(_record(message, settings) for message in committed),
        marker=_marker(world, settings),
        has_marker_topic=settings.marker_topic in world.admin.list_topics(timeout=_DEADLINE_SECONDS).topics,
        transaction=transaction,
        held_back=held_back,
        written=tuple(number for number, end in sorted(world.ends().items()) if end > case.starts[number]),
        files=_files(Path(settings.storage)),
        lakes=read_lakes(settings) if settings.writes == Writes.DATASETS else None,
        names=[
            (name, token)
            for name, token in (
                (settings.plan, "<plan>"),
                (settings.storage, "<storage>"),
                (settings.marker_topic, "<marker topic>"),
                (settings.pipeline, "<pipeline>"),
                (settings.topic, "<topic>"),
            )
            if name
        ],
    )


def _positions(noted: Rows, committed: Iterable[ReadRecord]) -> Rows:
    """Return the positions that were noted, each with whether a committed record of its action stands there."""
    at = {
        (record.partition, record.offset): int(dict(record.headers).get("makewhole-seq") or b"-1")
        for record in committed
    }
    return [
        {
            **row,
            "offsets": [
                "a record" if at.get((row["partition"], offset)) == seq else "no record"
                for seq, offset in zip(row["seqs"], row["offsets"], strict=True)
            ],
        }
        for row in noted
    ]


def conditions_of_journal(world: CrashWorld) -> dict[str, str]:
    """Return every table of the journal that can hold something of a pipeline, with the condition that finds it."""
    rows = world.journal_sql(
        "select table_name, array_agg(column_name::text) from information_schema.columns "
        "where table_schema = 'makewhole' group by table_name order by table_name"
    )
    conditions = {}
    for name, columns in rows:
        if "pipeline" in columns:
            conditions[f"makewhole.{name}"] = "t.pipeline = %(pipeline)s"
        elif "plan" in columns:
            conditions[f"makewhole.{name}"] = "t.plan in (select id from makewhole.plan where pipeline = %(pipeline)s)"
    return conditions | {
        "makewhole.lease": "substr(t.resource, 6) in (select id from makewhole.plan where pipeline = %(pipeline)s)"
    }


def _target_tables(world: CrashWorld) -> dict[str, str]:
    rows = world.sql("select schemaname || '.' || tablename from pg_tables where schemaname in ('makewhole', 'dw')")
    return {row[0]: "true" for row in sorted(rows)}


def _tables(
    run: Callable[[str, Mapping[str, Any]], SqlRows], tables: Mapping[str, str], pipeline: str
) -> dict[str, Rows]:
    """Read all rows of all tables in one statement: one moment. Moments become words: whether they are set, or
    passed."""
    pieces = [
        f"select '{name.split('.')[1]}', to_jsonb(t)::text from {name} as t where {condition}"
        for name, condition in tables.items()
    ]
    by_table: dict[str, Rows] = {name.split(".")[1]: [] for name in tables}
    for name, text in run(" union all ".join(pieces) + " order by 1, 2", {"pipeline": pipeline}):
        by_table[name].append({column: _moment(column, value) for column, value in json.loads(text).items()})
    return by_table


def _moment(column: str, value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.+]+", value):
        return value
    if column == "expires_at":
        return "held" if _is_ahead(value) else "free"
    return "a moment"


def _is_ahead(moment: str) -> bool:
    return datetime.fromisoformat(moment) > datetime.now(UTC)


def _marker(world: CrashWorld, settings: CaseSettings) -> int:
    wanted = ConsumerGroupTopicPartitions(settings.identity, [TopicPartition(settings.marker_topic, 0)])
    (answer,) = world.admin.list_consumer_group_offsets([wanted]).values()
    return int(answer.result(_DEADLINE_SECONDS).topic_partitions[0].offset)


def _transaction(world: CrashWorld, identity: str) -> str:
    """Ask the coordinator. What is decided is carried out by the brokers, with or without a runner: that is waited
    for."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < deadline:
        (described,) = raw.send(world.port, DescribeTransactionsRequest([identity])).transactions
        error, _, state, *_ = described
        if error == _NO_TRANSACTIONAL_ID:
            return "none"
        assert error == 0, f"the coordinator does not report {identity} (error {error})"
        if not state.startswith("Prepare"):
            return "open" if state == "Ongoing" else "idle"
        time.sleep(0.002)
    raise AssertionError(f"the transaction of {identity} does not end")


def _held_back(world: CrashWorld, *, is_waiting: bool) -> int:
    """Return how many records stand behind an open transaction; where none is open, once what was decided is carried
    out."""
    deadline = time.monotonic() + _CARRIED_OUT_SECONDS
    while True:
        stable, ends = sum(world.ends(is_stable=True).values()), sum(world.ends().values())
        if stable == ends or not is_waiting or time.monotonic() > deadline:
            return ends - stable
        time.sleep(0.002)


def _record(record: ReadRecord, settings: CaseSettings) -> Record:
    assert record.value is not None
    return Record(
        partition=record.partition,
        key=record.key_text,
        value=read_value(settings, record.value) if settings.writes in MADE else record.value.decode(),
        timestamp_ms=record.timestamp_ms,
        headers=tuple((name, (value or b"").decode()) for name, value in record.headers),
    )


def _files(storage: Path) -> tuple[str, ...]:
    """Return the files of the case: the folder is emptied before each. What a runner left half written is left out."""
    files = (path for path in storage.rglob("*") if path.is_file())
    return tuple(sorted(path.name for path in files if path.suffix != ".partial"))
