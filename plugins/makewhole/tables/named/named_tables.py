"""Give the tables of any kind the names that a pipeline's file has for their columns.

What a kind of table reads and writes are the columns that the tables have. All else knows a column by the name under
which the file compares it. This is the one place between the two: every kind goes through it, and knows nothing of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from makewhole.model.delivery.claims import TableClaim
from makewhole.model.delivery.weaknesses import Weakness
from makewhole.model.errors import Problem
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import TablePoint
from makewhole.tables.columns import TableColumns
from makewhole.tables.in_doubt import KeysInDoubt
from makewhole.tables.named.named_reading import NamedReader, NamedSession
from makewhole.tables.named.named_writing import NamedForecaster, NamedWriter
from makewhole.tables.named.names import by_name, named_problem, shape_in_table
from makewhole.tables.progress import ProgressRows, SinkCommit, SinkGroup
from makewhole.tables.reading import TableReader, TableSession, TableView
from makewhole.tables.rows import RowOutside
from makewhole.tables.shape import TableShape, TimeBounds
from makewhole.tables.tables import Ability, Tables
from makewhole.tables.writing import ChunkForecaster, TableWriter


@dataclass(frozen=True)
class NamedTables:
    """The tables that a connection reaches, by the names of the file (`Tables`)."""

    tables: Tables

    @property
    def system(self) -> str:
        return self.tables.system

    @property
    def abilities(self) -> frozenset[Ability]:
        return self.tables.abilities

    def describe_columns(self, shapes: Iterable[TableShape]) -> tuple[Mapping[str, TableColumns], Sequence[Problem]]:
        asked = {shape.point.name: shape for shape in shapes}
        columns, problems = self.tables.describe_columns(shape_in_table(shape) for shape in asked.values())
        for shape in asked.values():
            problems = [named_problem(shape.point, problem) for problem in problems]
        return {name: _named_columns(asked[name].point, of_table) for name, of_table in columns.items()}, problems

    @contextmanager
    def session(self, purpose: str) -> Iterator[TableSession]:
        with self.tables.session(purpose) as session:
            yield NamedSession(session=session)

    def hold_view(self, shape: TableShape) -> AbstractContextManager[TableView]:
        return self.tables.hold_view(shape_in_table(shape))

    def reader(self, shape: TableShape, view: str | None = None) -> TableReader:
        reader = self.tables.reader(shape_in_table(shape), view)
        return NamedReader(shape=shape, reader=reader) if shape.point.columns else reader

    def lags_behind(self, moment: datetime) -> str | None:
        return self.tables.lags_behind(moment)

    def estimate_rows(self, point: TablePoint, bounds: TimeBounds | None) -> int:
        return self.tables.estimate_rows(point.in_table, bounds)

    def changed_since(self, shape: TableShape, seen: str) -> Problem | None:
        return self.tables.changed_since(shape_in_table(shape), seen)

    def seen_now(self) -> str:
        return self.tables.seen_now()

    def keys_not_seen(
        self, shape: TableShape, keys: Sequence[str], seen: str, every_before: datetime | None = None
    ) -> list[str]:
        return self.tables.keys_not_seen(shape_in_table(shape), keys, seen, every_before)

    def keys_in_doubt(self, shape: TableShape, keys: Sequence[str]) -> KeysInDoubt:
        return self.tables.keys_in_doubt(shape_in_table(shape), keys)

    def rows_outside(self, shape: TableShape, keys: Sequence[str]) -> Mapping[str, Sequence[RowOutside]]:
        return self.tables.rows_outside(shape_in_table(shape), keys)

    def erased_keys(self, point: TablePoint, keys: Iterable[str]) -> set[str]:
        return self.tables.erased_keys(point.in_table, keys)

    def read_progress(
        self, store: TablePoint, progress: SinkProgress, topic: str, partitions: Sequence[int]
    ) -> dict[int, ProgressRows]:
        return self.tables.read_progress(store, progress, topic, partitions)

    def sink_commit(self, store: TablePoint, sink: SinkGroup) -> SinkCommit:
        return self.tables.sink_commit(store, sink)

    def weaknesses(self, shape: TableShape, claim: TableClaim) -> Sequence[Weakness]:
        return self.tables.weaknesses(shape_in_table(shape), claim)

    @contextmanager
    def writer(self, point: TablePoint, purpose: str) -> Iterator[TableWriter]:
        with self.tables.writer(point.in_table, purpose) as writer:
            yield NamedWriter(writer=writer)

    @contextmanager
    def forecaster(self, point: TablePoint) -> Iterator[ChunkForecaster]:
        with self.tables.forecaster(point.in_table) as forecaster:
            yield NamedForecaster(forecaster=forecaster)


def _named_columns(point: TablePoint, columns: TableColumns) -> TableColumns:
    return replace(columns, ids=by_name(point, columns.ids), kinds=by_name(point, columns.kinds))
