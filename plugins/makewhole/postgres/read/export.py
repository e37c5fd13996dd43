"""Read a table for a window by parallel COPY under one exported snapshot.

Rows are read in COPY's binary format, those of few keys as text. A part whose rows are not as many as
PostgreSQL says it sent is a failed read.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl
import psycopg2
import psycopg2.errors
from psycopg2 import sql

from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import TransientError
from makewhole.model.window import TimeSlice
from makewhole.postgres.connect import connect
from makewhole.postgres.in_doubt import writers_in_doubt
from makewhole.postgres.read.copy_binary.rows import copy_binary_rows
from makewhole.postgres.read.copy_text import copy_text_rows
from makewhole.postgres.read.export_parts import ExportPart, part_condition, plan_parts
from makewhole.postgres.read.expressions import column_types, live_condition, regclass_text
from makewhole.postgres.read.key_conditions import has_key_index, key_conditions
from makewhole.postgres.read.relations import has_places, rows_of
from makewhole.postgres.read.slices import count_new_rows, count_rows, count_rows_and_ahead, has_time_index, size_bytes
from makewhole.postgres.same_rows import mark_of, why_not_same
from makewhole.sql import PgConnection
from makewhole.tables.in_doubt import TransactionInDoubt, together
from makewhole.tables.reading import ReadBefore, ReadPlan, UnreadableFile
from makewhole.tables.shape import RowsAhead, TableShape, TimeBounds

_FEW_KEYS = 20_000


@dataclass(frozen=True, kw_only=True)
class HeldView:
    """A view of a table's data that a session holds open, while others read it by its `snapshot`: a name for
    PostgreSQL's SET TRANSACTION SNAPSHOT. `seen` is its transaction snapshot (`pg_snapshot`)."""

    session: PgConnection
    shape: TableShape
    snapshot: str
    seen: str

    def leave_out(self, files: Sequence[UnreadableFile]) -> None:
        """Do nothing: no file of the table is read."""

    def plan(self, bounds: TimeBounds | None, parts: int) -> ReadPlan:
        return ReadPlan(view=self.snapshot, seen=self.seen, parts=plan_parts(self.session, self.shape, bounds, parts))

    @property
    def has_places(self) -> bool:
        return has_places(self.session, self.shape.point)

    @property
    def size_bytes(self) -> int:
        return size_bytes(self.session, self.shape.point)

    @property
    def has_time_index(self) -> bool:
        return has_time_index(self.session, self.shape.point)

    @property
    def has_key_index(self) -> bool:
        return has_key_index(self.session, self.shape)

    @property
    def reads_keys_by_parts(self) -> bool:
        return False

    def count_rows(self, slices: Sequence[TimeSlice]) -> dict[int, int]:
        return count_rows(self.session, self.shape.point, slices)

    def count_rows_and_ahead(self, slices: Sequence[TimeSlice]) -> tuple[dict[int, int], RowsAhead]:
        return count_rows_and_ahead(self.session, self.shape.point, slices)

    def count_new_rows(self, of: TimeSlice, seen: str) -> int:
        return count_new_rows(self.session, self.shape.point, of, seen)

    def mark(self, bounds: TimeBounds | None) -> Any:  # noqa: ARG002 - of a table that is read under any bounds
        return mark_of(self.session, self.shape) if self.has_places else None

    def why_not_same(self, bounds: TimeBounds | None, before: ReadBefore) -> str | None:
        if not self.has_places:
            return "it is a view, whose rows do not say when they came"
        return why_not_same(self.session, self.shape, bounds, before)


@contextmanager
def hold_view(connection: PostgresConnection, shape: TableShape) -> Iterator[HeldView]:
    """Export one snapshot of the table and hold it open while the readers work.

    Raises:
        ConfigurationError: the table or a column does not exist.
        TransientError: the server does not answer.
    """
    with connect(connection, f"planning the reading of {shape.described}") as session:
        _set_snapshot(session)
        with session.cursor() as cursor:
            cursor.execute("select pg_export_snapshot(), pg_current_snapshot()::text")
            ((snapshot, pg_snapshot),) = cursor.fetchall()
        column_types(session, shape)
        yield HeldView(session=session, shape=shape, snapshot=snapshot, seen=pg_snapshot)


def _set_snapshot(session: PgConnection, snapshot: str | None = None) -> None:
    """Give the transaction one view of the data: that of an exported snapshot when it is given."""
    with session.cursor() as cursor:
        cursor.execute("set transaction isolation level repeatable read")
        if snapshot is not None:
            try:
                cursor.execute("set transaction snapshot %s", (snapshot,))
            except (psycopg2.errors.InvalidParameterValue, psycopg2.errors.UndefinedObject) as error:
                raise TransientError("the session that held the view of the data is gone; read again") from error
        # The session that holds the snapshot sits idle while the readers work.
        cursor.execute("set local idle_in_transaction_session_timeout = 0")


class ExportReader:
    """A reader of rows as frames for `makewhole.compute.normalise.table_frame`.

    `counted` is the number of rows that the database says it sent; complete when all frames were taken.
    """

    def __init__(self, connection: PostgresConnection, shape: TableShape, snapshot: str | None) -> None:
        self._connection, self._shape, self._snapshot = connection, shape, snapshot
        self.counted = 0
        self.in_doubt: Sequence[TransactionInDoubt] = ()
        self.unreadable: Sequence[UnreadableFile] = ()

    def part(self, bounds: TimeBounds | None, part: ExportPart) -> Generator[pl.DataFrame, None, None]:
        """Read the rows of a part of the table.

        Raises:
            TransientError: the connection broke, or fewer rows arrived than were sent.
        """
        with connect(self._connection, f"reading {self._shape.described}") as session:
            _set_snapshot(session, self._snapshot)
            types = column_types(session, self._shape)
            rows = self._rows(session, part_condition(self._shape, bounds, part))
            self.counted += yield from copy_binary_rows(session, self._shape, types, rows)

    def keys(self, keys: Sequence[str], since: str | None = None) -> Iterator[pl.DataFrame]:
        """Read every row with one of these business keys, whatever its time.

        Raises:
            TransientError: as `part`.
        """
        assert since is None, "an index leads to the rows: none was read by parts"
        if not keys:
            return
        with connect(self._connection, f"reading {self._shape.described}") as session:
            # Before the view of the data is taken: what is committed between the two would be in neither.
            name = regclass_text(self._shape.point)
            before = writers_in_doubt(session, self._connection, name)
            session.rollback()
            _set_snapshot(session, self._snapshot)
            types = column_types(session, self._shape)
            # What reads binary rows is compiled, and takes half a second to load.
            copy_rows = copy_text_rows if len(keys) <= _FEW_KEYS else copy_binary_rows
            for condition in key_conditions(self._shape, types, keys):
                self.counted += yield from copy_rows(session, self._shape, types, self._rows(session, condition))
            self.in_doubt = together(before, writers_in_doubt(session, self._connection, name))

    def keys_in_part(self, keys: pl.DataFrame, part: ExportPart) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        raise AssertionError("the view does not read keys by parts")

    def _rows(self, session: PgConnection, condition: sql.Composable) -> sql.Composable:
        point = self._shape.point
        return sql.SQL("from {} where {} and {}").format(rows_of(session, point), condition, live_condition(point))
