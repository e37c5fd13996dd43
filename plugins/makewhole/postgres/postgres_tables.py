"""The tables of a PostgreSQL database, as windows read them and plans repair them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime

from makewhole.model.connection import PostgresConnection
from makewhole.model.delivery.claims import TableClaim
from makewhole.model.delivery.weaknesses import Weakness
from makewhole.model.errors import Problem
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import TablePoint
from makewhole.postgres.chunks import PostgresForecaster, PostgresWriter, open_forecaster, open_writer
from makewhole.postgres.connect import connect
from makewhole.postgres.delivery.table import weaknesses
from makewhole.postgres.open_table import PostgresSession
from makewhole.postgres.read.erased import erased_keys
from makewhole.postgres.read.estimates import estimate_rows
from makewhole.postgres.read.export import ExportReader, HeldView, hold_view
from makewhole.postgres.read.key_columns import describe_columns
from makewhole.postgres.read.progress import read_progress_rows
from makewhole.postgres.read.rows_in_doubt import keys_in_doubt
from makewhole.postgres.read.standby import lags_behind
from makewhole.postgres.read.visibility import current_snapshot, keys_not_visible
from makewhole.tables.columns import TableColumns
from makewhole.tables.in_doubt import KeysInDoubt
from makewhole.tables.progress import ProgressRows, SinkCommit, SinkGroup, refuse_sink
from makewhole.tables.rows import RowOutside
from makewhole.tables.shape import TableShape, TimeBounds
from makewhole.tables.tables import Ability


@dataclass(frozen=True)
class PostgresTables:
    """The tables of a database (`Tables`)."""

    connection: PostgresConnection

    system = "PostgreSQL"
    abilities = frozenset(Ability)

    def describe_columns(self, shapes: Iterable[TableShape]) -> tuple[Mapping[str, TableColumns], Sequence[Problem]]:
        return describe_columns(self.connection, shapes)

    @contextmanager
    def session(self, purpose: str) -> Iterator[PostgresSession]:
        with connect(self.connection, purpose) as session:
            yield PostgresSession(session=session)

    def hold_view(self, shape: TableShape) -> AbstractContextManager[HeldView]:
        return hold_view(self.connection, shape)

    def reader(self, shape: TableShape, view: str | None = None) -> ExportReader:
        return ExportReader(self.connection, shape, view)

    def lags_behind(self, moment: datetime) -> str | None:
        return lags_behind(self.connection, moment)

    def estimate_rows(self, point: TablePoint, bounds: TimeBounds | None) -> int:
        with connect(self.connection, f"estimating the rows of {point.table}") as session:
            return estimate_rows(session, point, bounds)

    def changed_since(self, shape: TableShape, seen: str) -> Problem | None:  # noqa: ARG002 - swapped is the same
        return None

    def seen_now(self) -> str:
        return current_snapshot(self.connection)

    def keys_not_seen(
        self, shape: TableShape, keys: Sequence[str], seen: str, every_before: datetime | None = None
    ) -> list[str]:
        return keys_not_visible(self.connection, shape, keys, seen, every_before)

    def keys_in_doubt(self, shape: TableShape, keys: Sequence[str]) -> KeysInDoubt:
        return keys_in_doubt(self.connection, shape, keys)

    def rows_outside(self, shape: TableShape, keys: Sequence[str]) -> Mapping[str, Sequence[RowOutside]]:  # noqa: ARG002
        return {}

    def erased_keys(self, point: TablePoint, keys: Iterable[str]) -> set[str]:
        return erased_keys(self.connection, point, keys)

    def sink_commit(self, store: TablePoint, sink: SinkGroup) -> SinkCommit:
        refuse_sink(store, sink)

    def read_progress(
        self, store: TablePoint, progress: SinkProgress, topic: str, partitions: Sequence[int]
    ) -> dict[int, ProgressRows]:
        return read_progress_rows(self.connection, store, progress, topic, partitions)

    def weaknesses(self, shape: TableShape, claim: TableClaim) -> Sequence[Weakness]:
        return weaknesses(self.connection, shape, claim)

    def writer(self, point: TablePoint, purpose: str) -> AbstractContextManager[PostgresWriter]:  # noqa: ARG002
        return open_writer(self.connection, purpose)

    def forecaster(
        self,
        point: TablePoint,  # noqa: ARG002 - a connection has one place for all receipts
    ) -> AbstractContextManager[PostgresForecaster]:
        return open_forecaster(self.connection)
