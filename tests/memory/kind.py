"""Tables in memory as a kind of table: what reads and writes those that a connection reaches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime

from makewhole.kinds import TableKind
from makewhole.model.delivery.claims import TableClaim
from makewhole.model.delivery.weaknesses import Weakness
from makewhole.model.errors import Problem, RefusedError
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import TablePoint
from makewhole.tables.columns import TableColumns
from makewhole.tables.in_doubt import KeysInDoubt
from makewhole.tables.progress import ProgressRows, SinkCommit, SinkGroup, refuse_sink
from makewhole.tables.rows import RowOutside
from makewhole.tables.shape import TableShape, TimeBounds
from makewhole.tables.tables import Ability
from tests.memory.columns import describe_columns
from tests.memory.connection import MemoryConnection, read_connection, server_of
from tests.memory.reading import MemorySession, refuse_ledger
from tests.memory.views import HeldCopy, MemoryReader, hold_view, rows_of_part
from tests.memory.writing import MemoryForecaster, MemoryWriter


@dataclass(frozen=True)
class MemoryTables:
    """The tables of a database in memory (`Tables`)."""

    connection: MemoryConnection

    system = "memory"
    abilities = frozenset({Ability.REPAIRED})

    def describe_columns(self, shapes: Iterable[TableShape]) -> tuple[Mapping[str, TableColumns], Sequence[Problem]]:
        return self.connection.ask(describe_columns, list(shapes))

    def changed_since(self, shape: TableShape, seen: str) -> Problem | None:
        return None

    @contextmanager
    def session(self, purpose: str) -> Iterator[MemorySession]:
        yield MemorySession(connection=self.connection)

    def hold_view(self, shape: TableShape) -> AbstractContextManager[HeldCopy]:
        return hold_view(self.connection, shape)

    def reader(self, shape: TableShape, view: str | None = None) -> MemoryReader:
        return MemoryReader(self.connection, shape, view)

    def lags_behind(self, moment: datetime) -> str | None:
        return None

    def estimate_rows(self, point: TablePoint, bounds: TimeBounds | None) -> int:
        shape = TableShape(point=point, compare={}, filters={})
        return len(self.connection.ask(rows_of_part, shape, None, bounds, (0, 1)))

    def seen_now(self) -> str:
        refuse_ledger()

    def keys_not_seen(
        self, shape: TableShape, keys: Sequence[str], seen: str, every_before: datetime | None = None
    ) -> list[str]:
        refuse_ledger()

    def keys_in_doubt(self, shape: TableShape, keys: Sequence[str]) -> KeysInDoubt:
        return KeysInDoubt()

    def rows_outside(self, shape: TableShape, keys: Sequence[str]) -> Mapping[str, Sequence[RowOutside]]:
        return {}

    def erased_keys(self, point: TablePoint, keys: Iterable[str]) -> set[str]:
        return set()

    def sink_commit(self, store: TablePoint, sink: SinkGroup) -> SinkCommit:
        refuse_sink(store, sink)

    def read_progress(
        self, store: TablePoint, progress: SinkProgress, topic: str, partitions: Sequence[int]
    ) -> dict[int, ProgressRows]:
        raise RefusedError("tables in memory keep no sink's progress")

    def weaknesses(self, shape: TableShape, claim: TableClaim) -> Sequence[Weakness]:
        return ()

    @contextmanager
    def writer(self, point: TablePoint, purpose: str) -> Iterator[MemoryWriter]:
        yield MemoryWriter(connection=self.connection)

    @contextmanager
    def forecaster(self, point: TablePoint) -> Iterator[MemoryForecaster]:
        yield MemoryForecaster(connection=self.connection)


KIND = TableKind(connections=MemoryConnection, read_connection=read_connection, tables=MemoryTables, server=server_of)
