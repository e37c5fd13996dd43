"""Iceberg tables as a kind of table: what reads and writes those that a catalogue knows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from makewhole.datasets.iceberg.catalog import translated
from makewhole.datasets.iceberg.delivery import weak_properties
from makewhole.datasets.iceberg.describe import SYSTEM, changed_since, describe_columns, existing, table_of
from makewhole.datasets.iceberg.left_out.gone_files import reading_lists
from makewhole.datasets.iceberg.open_table import IcebergSession
from makewhole.datasets.iceberg.outside import rows_outside
from makewhole.datasets.iceberg.predicates import inside
from makewhole.datasets.iceberg.reading import HeldSnapshot, IcebergReader, Snapshotted
from makewhole.datasets.iceberg.sink_commits import sink_commit
from makewhole.datasets.iceberg.write.writing import IcebergForecaster, IcebergWriter
from makewhole.datasets.never_there import DatasetTables
from makewhole.model.connection import IcebergConnection
from makewhole.model.delivery.claims import TableClaim
from makewhole.model.delivery.weaknesses import Weakness
from makewhole.model.errors import Problem
from makewhole.model.points import TablePoint
from makewhole.tables.columns import TableColumns
from makewhole.tables.in_doubt import KeysInDoubt
from makewhole.tables.progress import SinkCommit, SinkGroup
from makewhole.tables.rows import RowOutside
from makewhole.tables.shape import TableShape, TimeBounds


@dataclass(frozen=True)
class IcebergTables(DatasetTables):
    """The tables of a catalogue (`Tables`)."""

    connection: IcebergConnection

    system = SYSTEM

    def describe_columns(self, shapes: Iterable[TableShape]) -> tuple[Mapping[str, TableColumns], Sequence[Problem]]:
        return describe_columns(self.connection, shapes)

    def changed_since(self, shape: TableShape, seen: str) -> Problem | None:
        return changed_since(self.connection, shape.point, seen)

    @contextmanager
    def session(self, purpose: str) -> Iterator[IcebergSession]:
        yield IcebergSession(connection=self.connection)

    @contextmanager
    def hold_view(self, shape: TableShape) -> Iterator[HeldSnapshot]:
        existing(self.connection, shape)
        yield HeldSnapshot(source=Snapshotted.of(self.connection, shape.point), shape=shape)

    def reader(self, shape: TableShape, view: str | None = None) -> IcebergReader:
        return IcebergReader(self.connection, shape, view)

    def estimate_rows(self, point: TablePoint, bounds: TimeBounds | None) -> int:
        source = Snapshotted.of(self.connection, point)
        return sum(listed.file.record_count for listed in source.files(inside(source.schema, point, bounds)))

    def keys_in_doubt(self, shape: TableShape, keys: Sequence[str]) -> KeysInDoubt:
        return KeysInDoubt()

    def rows_outside(self, shape: TableShape, keys: Sequence[str]) -> Mapping[str, Sequence[RowOutside]]:
        return rows_outside(Snapshotted.of(self.connection, shape.point), shape.point, keys)

    def weaknesses(self, shape: TableShape, claim: TableClaim) -> Sequence[Weakness]:
        table = table_of(self.connection, shape.point)
        of_table = weak_properties(shape.point.table, table.properties, claim)
        return [*of_table, *super().weaknesses(shape, claim)]

    def sink_commit(self, store: TablePoint, sink: SinkGroup) -> SinkCommit:
        with translated(f"{store.table} at connection {self.connection.id}"):
            table = table_of(self.connection, store)
            with reading_lists(table, store.table):
                return sink_commit(table, sink)

    @contextmanager
    def writer(self, point: TablePoint, purpose: str) -> Iterator[IcebergWriter]:
        yield IcebergWriter(self.connection)

    @contextmanager
    def forecaster(self, point: TablePoint) -> Iterator[IcebergForecaster]:
        yield IcebergForecaster(connection=self.connection)
