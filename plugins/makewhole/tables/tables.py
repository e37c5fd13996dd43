"""Name what the tables of a connection can do, whatever system keeps them. A kind of table is one such class."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from makewhole.model.delivery.claims import TableClaim
from makewhole.model.delivery.weaknesses import Weakness
from makewhole.model.errors import Problem
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import TablePoint
from makewhole.tables.columns import TableColumns
from makewhole.tables.in_doubt import KeysInDoubt
from makewhole.tables.progress import ProgressRows, SinkCommit, SinkGroup
from makewhole.tables.reading import TableReader, TableSession, TableView
from makewhole.tables.rows import RowOutside
from makewhole.tables.shape import TableShape, TimeBounds
from makewhole.tables.writing import ChunkForecaster, TableWriter


class Ability(StrEnum):
    """Abilities that not every kind of table has. A missing one is refused where a pipeline asks for it."""

    LEDGER = "be a ledger"
    """Tell which rows were there for certain at an earlier moment, and give rows as records."""
    PROGRESS = "keep a sink's progress"
    """Hold, with the rows of a sink, how far it has come in its topic."""
    FILE_PROGRESS = "say by its files how far its sink is"
    """Hold the positions of the last records that what writes it has brought."""
    ERASED = "name erased keys"
    """Say by a column, or by another table, which keys were deleted on purpose."""
    REPAIRED = "be repaired"
    """Take chunks of rows that are written, moved aside and put back."""


class Tables(Protocol):
    """The tables that a connection reaches."""

    @property
    def system(self) -> str:
        """The name of the system, for messages: `PostgreSQL`."""
        ...

    @property
    def abilities(self) -> frozenset[Ability]: ...

    def describe_columns(self, shapes: Iterable[TableShape]) -> tuple[Mapping[str, TableColumns], Sequence[Problem]]:
        """Return the columns of tables by point, and the tables and columns that do not exist; those tables are left
        out.

        Raises:
            TransientError: the system does not answer.
        """
        ...

    def changed_since(self, shape: TableShape, seen: str) -> Problem | None:
        """Return why a table is not the one that a window before read (`seen`: what its view saw): it is gone, renamed,
        or another one has its name, and the file does not say that this is intended. None: it is; or one that is built
        again and swapped counts as the same store.

        Raises:
            TransientError: the system does not answer.
        """
        ...

    def session(self, purpose: str) -> AbstractContextManager[TableSession]:
        """Open a session. `purpose` is what it is for, with its tables: an error names it.

        Raises:
            TransientError: the system cannot be reached, or went away.
            PermanentError: it refuses a request.
        """
        ...

    def hold_view(self, shape: TableShape) -> AbstractContextManager[TableView]:
        """Hold one view of a table's data open while readers work.

        Raises:
            ConfigurationError: the table or a column does not exist.
            TransientError: the system does not answer.
        """
        ...

    def reader(self, shape: TableShape, view: str | None = None) -> TableReader:
        """Return a reader of a table under a view that is held; None: of the rows as they are now, the look-up that
        confirms an absence."""
        ...

    def lags_behind(self, moment: datetime) -> str | None:
        """Return why rows that were committed before a moment may not be there yet, as in a copy that lags behind the
        system that is written to; None: they are.

        Raises:
            TransientError: the system does not answer.
        """
        ...

    def estimate_rows(self, point: TablePoint, bounds: TimeBounds | None) -> int:
        """Return about how many rows a table has inside the bounds, without reading them.

        Raises:
            TransientError: the system does not answer.
            PermanentError: the table or a column does not exist, or may not be read.
        """
        ...

    def seen_now(self) -> str:
        """Return what says later which rows were there now."""
        ...

    def keys_not_seen(
        self, shape: TableShape, keys: Sequence[str], seen: str, every_before: datetime | None = None
    ) -> list[str]:
        """Return those of the keys of which no row (as it is now) was certainly there when `seen` was read. With
        `every_before` also those with a row that was not and whose time is before that moment, or not known: their
        latest version may be that row."""
        ...

    def keys_in_doubt(self, shape: TableShape, keys: Sequence[str]) -> KeysInDoubt:
        """Return those of the keys of which a row may have been changed, deleted or locked by a transaction in doubt;
        none where the system has no such transactions. Nothing is written for that.

        Raises:
            TransientError: the system does not answer.
        """
        ...

    def rows_outside(self, shape: TableShape, keys: Sequence[str]) -> Mapping[str, Sequence[RowOutside]]:
        """Return, by key, rows that the table does not have and its system still has, in files that were taken out of
        it or never came into it; the first of each key. None where a row that is gone leaves no trace.

        Raises:
            RefusedError: it cannot be looked for.
            TransientError: the system does not answer.
        """
        ...

    def erased_keys(self, point: TablePoint, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that were erased from a store; none where no table and no column says so.

        Raises:
            ConfigurationError: the table or the column that `erased` names does not exist.
            TransientError: the system does not answer.
        """
        ...

    def read_progress(
        self, store: TablePoint, progress: SinkProgress, topic: str, partitions: Sequence[int]
    ) -> dict[int, ProgressRows]:
        """Return what a sink's own progress has of some partitions of a topic, as of one moment. Partitions without a
        row are left out.

        Raises:
            TransientError: the system does not answer.
            PermanentError: it refuses: the table is not what it was when a window was opened.
        """
        ...

    def sink_commit(self, store: TablePoint, sink: SinkGroup) -> SinkCommit:
        """Return the newest commit of Iceberg's Kafka Connect sink in the table of a store.

        Raises:
            TransientError: the system does not answer.
            PermanentError: it keeps no tables of Iceberg, or what the sink wrote there cannot be read.
        """
        ...

    def weaknesses(self, shape: TableShape, claim: TableClaim) -> Sequence[Weakness]:
        """Return what weakens what is claimed of a table: settings of its system, and of the table itself.

        Raises:
            TransientError: the system does not answer.
            PermanentError: it refuses, or there is no such table.
        """
        ...

    def writer(self, point: TablePoint, purpose: str) -> AbstractContextManager[TableWriter]:
        """Open a writer; what it keeps beside the table of a point is made where it is not there yet.

        Raises:
            TransientError: the system cannot be reached.
        """
        ...

    def forecaster(self, point: TablePoint) -> AbstractContextManager[ChunkForecaster]:
        """Open what forecasts chunks for the table of a point, and cannot write.

        Raises:
            TransientError: the system cannot be reached.
        """
        ...
