"""Read the sources of payloads: original records by position, and tables by key."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, Self

import pyarrow as pa

from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.kafka.partitioner import KnownKeys
from makewhole.model.connection import Connection, PostgresConnection
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Pipeline, TablePoint, TopicPoint
from makewhole.model.plan import ErasedSince
from makewhole.postgres.connect import connect
from makewhole.postgres.read.erased import erased_in
from makewhole.postgres.tables import Table, describe_table
from makewhole.sql import PgConnection

_HEADER: dict[str, pa.DataType] = {"key": pa.string(), "value": pa.binary()}
_RECORD = pa.schema(
    {"key": pa.binary(), "value": pa.binary(), "headers": pa.list_(pa.struct(list(_HEADER.items())))}.items()
)
Position = tuple[int, int]
"""(partition, offset)."""


class PayloadFrom(StrEnum):
    """The source of a payload: a snapshot's archive, a broker that still had the record, a table upstream, or the
    template of a reversal."""

    ARCHIVE = "archive"
    BROKER = "broker"
    LEDGER = "ledger"
    TEMPLATE = "template"


@dataclass(frozen=True, kw_only=True)
class SourceRecord:
    """A record as it is in the log. `timestamp_ms` None: it has none. `kept_in`: where it was read."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int | None
    kept_in: PayloadFrom = PayloadFrom.ARCHIVE


class TombstoneSource(Protocol):
    """The topics that tell by tombstones which keys of a store were deleted on purpose."""

    def erased(self, store: TablePoint, keys: Iterable[str]) -> ErasedSince:
        """Return which of the keys were erased since the window was judged."""
        ...


class PayloadSource(Protocol):
    """Original records by position, from the archive of the window or wherever they still are, and what is known of the
    partitions of topics."""

    def records(self, point: str, positions: Sequence[Position]) -> Iterable[SourceRecord]:
        """Return the records of a topic point at these positions, in any order; those not found are left out."""
        ...

    def partition_count(self, point: str) -> int:
        """Return the number of partitions that a topic point has now."""
        ...

    def known_keys(self, point: str) -> KnownKeys | None:
        """Return keys that the producers of a topic point wrote last; None: none is known.

        Raises:
            CorruptionError: there are archives that should hold some, and they cannot be read.
        """
        ...


class Sources:
    """The sources of a plan's payloads, with one session per database. A context manager."""

    def __init__(
        self,
        pipeline: Pipeline,
        records: PayloadSource,
        connections: Mapping[str, Connection],
        tombstones: TombstoneSource | None = None,
    ) -> None:
        self.pipeline = pipeline
        self._records, self._connections, self._tombstones = records, connections, tombstones
        self._stack = ExitStack()
        self._sessions: dict[str, PgConnection] = {}
        self._tables: dict[str, Table] = {}
        self._loaded: dict[tuple[str, Position], SourceRecord] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def load(self, wanted: Mapping[str, Iterable[Position]]) -> None:
        """Read these records of topic points, with one call per point."""
        for point, positions in wanted.items():
            for record in self._records.records(point, sorted(set(positions))):
                self._loaded[point, (record.partition, record.offset)] = record

    def record(self, name: str, position: Position | None, key: str) -> SourceRecord:
        """Return a record that was loaded.

        Raises:
            RefusedError: it is nowhere any more, or is not of this business key.
        """
        if (name, position) not in self._loaded:
            raise RefusedError("the original record is in no archive of this window")
        found = self.find(name, position, key)
        if found is None:
            raise RefusedError(
                "stale: another record is at the original's offset now; the log was cut off or made again"
            )
        return found

    def partition_count(self, name: str) -> int:
        """Return the number of partitions that a topic point has now."""
        return self._records.partition_count(name)

    def known_keys(self, name: str) -> KnownKeys | None:
        """Return what `PayloadSource.known_keys` does."""
        return self._records.known_keys(name)

    def find(self, name: str, position: Position | None, key: str) -> SourceRecord | None:
        """Return a record that was loaded; None: it is nowhere any more, or is not of this business key."""
        found = self._loaded.get((name, position or (-1, -1)))
        point = self.pipeline.points[name]
        assert isinstance(point, TopicPoint)
        return found if found is not None and business_key(point, found) == key else None

    def table(self, name: str) -> tuple[TablePoint, PgConnection, Table]:
        """Return a table point, a session at its database and its description.

        Raises:
            RefusedError: the table is not there, or lacks a column.
        """
        point = self.pipeline.points[name]
        assert isinstance(point, TablePoint)
        if point.connection not in self._sessions:
            self._sessions[point.connection] = self._stack.enter_context(connect(self.postgres(point)))
        session = self._sessions[point.connection]
        if name not in self._tables:
            self._tables[name] = describe_table(session, point)
        return point, session, self._tables[name]

    def erased(self, name: str, keys: Iterable[str]) -> dict[str, str]:
        """Return those of the keys that a store names as erased on purpose, or of which that cannot be known; each with
        the reason not to write it."""
        point, wanted = self.pipeline.points[name], sorted(set(keys))
        if not isinstance(point, TablePoint) or point.erased is None:
            return {}
        if point.erased.topics:
            nobody = ErasedSince(not_known=f"nobody was told how to ask for the tombstones of {name}")
            found = nobody if self._tombstones is None else self._tombstones.erased(point, wanted)
            return found.reasons(name, wanted)
        _, session, _ = self.table(name)
        return dict.fromkeys(erased_in(session, point, wanted), f"erased: {name}: {point.erased.told_by}")

    def postgres(self, point: TablePoint) -> PostgresConnection:
        """Return the connection of a table."""
        connection = self._connections[point.connection]
        assert isinstance(connection, PostgresConnection)
        return connection


def business_key(point: TopicPoint, record: SourceRecord) -> str | None:
    """Return the business key of a record, as snapshots decode it; None: it has none."""
    key: str | None = decoded(
        record, ValueShape(key=point.key, key_layout=point.key_layout, compare={}, keeps_tombstones=True)
    )["key"]
    return key


def decoded(record: SourceRecord, shape: ValueShape) -> dict[str, Any]:
    """Decode one record as snapshots do; see `decode_values` for the fields."""
    headers = [{"key": name, "value": value} for name, value in record.headers]
    row: dict[str, list[Any]] = {"key": [record.key], "value": [record.value], "headers": [headers]}
    return decode_values(pa.RecordBatch.from_pydict(row, schema=_RECORD), shape).row(0, named=True)
