"""Fetches what each planned action will write, and what it will write over: read now, frozen next."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

import pyarrow as pa

from makewhole.compensation.payloads import Payload
from makewhole.compensation.plan import Refusal, Step
from makewhole.compute.decode import ValueShape, decode_values
from makewhole.model.connection import Connection, PostgresConnection
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Hop, Pipeline, Remedy, Semantics, TablePoint, TopicPoint
from makewhole.model.verdict import Verdict
from makewhole.postgres.connect import Session, connect
from makewhole.postgres.ledger import ledger_record
from makewhole.postgres.quarantine import require_quarantine_possible
from makewhole.postgres.tables import Row, Table, describe_table, rows_of_key

_LINEAGE = "makewhole-"
_HEADER: dict[str, pa.DataType] = {"key": pa.string(), "value": pa.binary()}
_RECORD = pa.schema(
    {"key": pa.binary(), "value": pa.binary(), "headers": pa.list_(pa.struct(list(_HEADER.items())))}.items()
)


class PayloadFrom(StrEnum):
    """Where what an action writes was read: a snapshot's archive, a broker that still had it, or a table upstream."""

    ARCHIVE = "archive"
    BROKER = "broker"
    LEDGER = "ledger"


@dataclass(frozen=True, kw_only=True)
class SourceRecord:
    """A record as it stands in the log. `timestamp_ms` None: it carries none. `kept_in` is where it was read."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int | None
    kept_in: PayloadFrom = PayloadFrom.ARCHIVE


class PayloadSource(Protocol):
    """Original records by position, from the archive of the window (or wherever they still are)."""

    def records(self, point: str, positions: Sequence[tuple[int, int]]) -> Iterable[SourceRecord]:
        """The records of a topic point at these (partition, offset), in any order; those not found are left out."""
        ...


class Fetcher:
    """Turns steps into (step, payload); keeps one session per database. Use as a context manager."""

    def __init__(self, pipeline: Pipeline, records: PayloadSource, connections: Mapping[str, Connection]) -> None:
        self._pipeline, self._records, self._connections = pipeline, records, connections
        self._hops = {hop.name: hop for hop in pipeline.hops}
        self._stack = ExitStack()
        self._sessions: dict[str, Session] = {}
        self._tables: dict[str, Table] = {}
        self._originals: dict[tuple[str, tuple[int, int]], SourceRecord] = {}

    def __enter__(self) -> "Fetcher":
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def fetch(self, steps: Sequence[Step]) -> tuple[list[tuple[Step, Payload]], list[Refusal]]:
        """Every step that can be done, in order, and a refusal for every one that cannot."""
        self._load_originals(steps)
        fetched, refusals = [], []
        for step in steps:
            try:
                fetched.append(self._fetch(step))
            except RefusedError as error:
                refusals.append(Refusal(hop=step.finding.hop, key_hash=step.finding.key_hash, reason=str(error)))
        return fetched, refusals

    def _fetch(self, step: Step) -> tuple[Step, Payload]:
        match step.action.remedy:
            case Remedy.REDELIVER:
                payload = self._redeliver(step)
            case Remedy.PRODUCE:
                payload = self._produce(step)
            case Remedy.UPSERT:
                payload = self._upsert(step)
            case _:
                payload = self._quarantine(step)
        seen = self._payload_from(step) | {name: payload.extra[name] for name in ("origin",) if name in payload.extra}
        if "rows" in payload.extra:
            seen["rows"] = [row["ctid"] for row in payload.extra["rows"]]
        return replace(step, action=replace(step.action, before={**step.action.before, **seen})), payload

    def _payload_from(self, step: Step) -> dict[str, Any]:
        """Said of every action that writes something; one that moves rows aside has no payload."""
        if step.action.remedy is Remedy.QUARANTINE:
            return {}
        kept_in = PayloadFrom.LEDGER if step.origin is None else self._original(step).kept_in
        return {"payload_from": kept_in.value}

    def _redeliver(self, step: Step) -> Payload:
        record = self._original(step)
        return Payload(
            key=record.key,
            value=record.value,
            headers=tuple(header for header in record.headers if not header[0].startswith(_LINEAGE)),
            timestamp_ms=record.timestamp_ms,
            partition=record.partition,
            extra={"origin": self._origin(step)},
        )

    def _produce(self, step: Step) -> Payload:
        hop = self._hops[step.action.hop]
        point, session, table = self._table(hop.source)
        found = ledger_record(session, table, point, step.action.key, hop.semantics)
        if found is None:
            raise RefusedError("erased: the ledger has no row of this key any more")
        return Payload(key=found.key, value=found.value, timestamp_ms=found.timestamp_ms, extra={"origin": "ledger"})

    def _upsert(self, step: Step) -> Payload:
        hop = self._hops[step.action.hop]
        text, origin = self._value(step, hop)
        point, session, table = self._table(hop.target)
        named = _names(text) | set(point.key)
        columns = [name for name in table.writable if name in named]
        absent = [name for name in self._pipeline.compare if name in table.columns and name not in columns]
        if absent:
            raise RefusedError(f"unfit: the record's value has no field for column {', '.join(absent)}")
        before = rows_of_key(session, table, point, step.action.key, is_exact=False)
        _require_as_judged(step, before, has_version=point.version is not None)
        return Payload(
            key=step.action.key.encode(),
            value=text,
            extra={"origin": origin, "columns": columns, "rows": _images(before if _is_mismatched(step) else [])},
        )

    def _quarantine(self, step: Step) -> Payload:
        hop = self._hops[step.action.hop]
        point, session, table = self._table(hop.target)
        require_quarantine_possible(session, table)
        is_upsert = hop.semantics is Semantics.UPSERT
        rows = rows_of_key(session, table, point, step.action.key, is_latest_first=is_upsert)
        keeps = 1 if step.finding.verdict is Verdict.DUPLICATE else 0
        if len(rows) <= keeps:
            raise RefusedError(f"stale: the key has {len(rows)} rows now; there is nothing to move aside")
        return Payload(key=step.action.key.encode(), extra={"keeps": keeps, "rows": _images(rows)})

    def _value(self, step: Step, hop: Hop) -> tuple[bytes, str]:
        """The upstream value as it is, and where it is from."""
        if isinstance(self._pipeline.points[hop.source], TopicPoint):
            value = self._original(step).value
            if value is None:
                raise RefusedError("unfit: the latest version is a tombstone; upsert writes rows and deletes none")
            return value, self._origin(step)
        point, session, table = self._table(hop.source)
        found = ledger_record(session, table, point, step.action.key, hop.semantics)
        if found is None:
            raise RefusedError("erased: the source table has no row of this key any more")
        return found.value or b"", "ledger"

    def _original(self, step: Step) -> SourceRecord:
        found = self._originals.get((self._hops[step.action.hop].source, step.origin or (-1, -1)))
        if found is None:
            raise RefusedError("the original record is in no archive of this window")
        point = self._pipeline.points[self._hops[step.action.hop].source]
        assert isinstance(point, TopicPoint)
        if business_key(point, found) != step.action.key:
            raise RefusedError(
                "stale: another record is at the original's offset now; the log was cut off or made again"
            )
        return found

    def _origin(self, step: Step) -> str:
        point = self._pipeline.points[self._hops[step.action.hop].source]
        assert isinstance(point, TopicPoint) and step.origin is not None
        return f"{point.topic}/{step.origin[0]}/{step.origin[1]}"

    def _load_originals(self, steps: Sequence[Step]) -> None:
        wanted: dict[str, set[tuple[int, int]]] = {}
        for step in steps:
            if step.origin is not None:
                wanted.setdefault(self._hops[step.action.hop].source, set()).add(step.origin)
        for point, positions in wanted.items():
            for record in self._records.records(point, sorted(positions)):
                self._originals[point, (record.partition, record.offset)] = record

    def _table(self, name: str) -> tuple[TablePoint, Session, Table]:
        point = self._pipeline.points[name]
        assert isinstance(point, TablePoint)
        if point.connection not in self._sessions:
            connection = self._connections[point.connection]
            assert isinstance(connection, PostgresConnection)
            self._sessions[point.connection] = self._stack.enter_context(connect(connection))
        session = self._sessions[point.connection]
        if name not in self._tables:
            self._tables[name] = describe_table(session, point)
        return point, session, self._tables[name]


def business_key(point: TopicPoint, record: SourceRecord) -> str | None:
    """The key of a record, as snapshots know it; None where it has none."""
    headers = [{"key": name, "value": value} for name, value in record.headers]
    row: dict[str, list[Any]] = {"key": [record.key], "value": [record.value], "headers": [headers]}
    shape = ValueShape(key=point.key, compare={}, keeps_tombstones=True)
    key: str | None = decode_values(pa.RecordBatch.from_pydict(row, schema=_RECORD), shape)["key"].item()
    return key


def _names(text: bytes) -> set[str]:
    """The field names of a JSON object. The text itself goes to the database, which reads numbers exactly."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise RefusedError("unfit: the record's value is not JSON") from None
    if not isinstance(value, dict):
        raise RefusedError("unfit: the record's value is not a JSON object")
    return set(value)


def _require_as_judged(step: Step, before: Sequence[Row], *, has_version: bool) -> None:
    """The store must still be what the finding says of it."""
    if _is_mismatched(step):
        if not before:
            raise RefusedError("erased: the row of this key is gone")
        if len(before) > 1:
            raise RefusedError("stale: the key has several rows now; move the extra ones aside first")
    elif before and not has_version:
        raise RefusedError("stale: a row of this key is there now")


def _is_mismatched(step: Step) -> bool:
    return step.finding.verdict is Verdict.MISMATCHED


def _images(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [{"table_oid": row.table_oid, "ctid": row.ctid, "text": row.text} for row in rows]
