"""Read a table for a window by parallel COPY under one exported snapshot.

Rows are read in COPY's binary format, those of few keys as text. A part whose rows are not as many as
PostgreSQL says it sent is a failed read.
"""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import polars as pl
import psycopg2
import psycopg2.errors
from psycopg2 import sql

from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import TransientError
from makewhole.model.pipeline import KeyType
from makewhole.postgres.connect import connect
from makewhole.postgres.key_columns import INTEGERS, bare, is_native, kinds_of
from makewhole.postgres.read.copy_binary.rows import copy_binary_rows
from makewhole.postgres.read.copy_text import copy_text_rows
from makewhole.postgres.read.export_parts import ExportPart, part_condition, plan_parts
from makewhole.postgres.read.expressions import (
    TableShape,
    TimeBounds,
    column_types,
    key_expression,
    live_condition,
    table_identifier,
)
from makewhole.sql import PgConnection

_TEXT_TYPES = ("text", "character varying")
# Only the spelling that PostgreSQL itself writes: `007` must not find the row of 7, whose key is another.
_INT = re.compile(r"0|-?[1-9][0-9]{0,18}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CANONICAL = {
    KeyType.BIGINT: _INT,
    KeyType.DECIMAL: re.compile(r"-?(0|[1-9][0-9]*)([.][0-9]*[1-9])?"),
    KeyType.DATE: re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    KeyType.TIMESTAMP: re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.][0-9]{6}Z"),
}
"""Types whose canonical texts a column of the type reads, so that its index helps."""
_KEYS_PER_STATEMENT = 20_000


@dataclass(frozen=True, kw_only=True)
class ExportPlan:
    """A consistent view for all readers and the parts to read.

    `snapshot` is for PostgreSQL's SET TRANSACTION SNAPSHOT; `pg_snapshot` tells later which rows it saw.
    """

    snapshot: str
    pg_snapshot: str
    parts: tuple[ExportPart, ...]


@dataclass(frozen=True, kw_only=True)
class HeldView:
    """A view of a table's data that a session holds open, while others read it by its `snapshot`."""

    session: PgConnection
    shape: TableShape
    snapshot: str
    pg_snapshot: str

    def plan(self, bounds: TimeBounds | None, parts: int) -> ExportPlan:
        """Return the plan for reading the rows inside the bounds, in at most so many parts."""
        return ExportPlan(
            snapshot=self.snapshot,
            pg_snapshot=self.pg_snapshot,
            parts=plan_parts(self.session, self.shape, bounds, parts),
        )


@contextmanager
def hold_view(connection: PostgresConnection, shape: TableShape) -> Iterator[HeldView]:
    """Export one snapshot of the table and hold it open while the readers work.

    Raises:
        ConfigurationError: the table or a column does not exist.
        TransientError: the server does not answer.
    """
    with connect(connection) as session:
        _set_snapshot(session)
        with session.cursor() as cursor:
            cursor.execute("select pg_export_snapshot(), pg_current_snapshot()::text")
            ((snapshot, pg_snapshot),) = cursor.fetchall()
        column_types(session, shape)
        yield HeldView(session=session, shape=shape, snapshot=snapshot, pg_snapshot=pg_snapshot)


@contextmanager
def export_snapshot(
    connection: PostgresConnection, shape: TableShape, bounds: TimeBounds | None, parts: int
) -> Iterator[ExportPlan]:
    """Hold a view of the table open, and plan the reading of the rows inside the bounds; raises as `hold_view`."""
    with hold_view(connection, shape) as view:
        yield view.plan(bounds, parts)


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

    def part(self, bounds: TimeBounds | None, part: ExportPart) -> Generator[pl.DataFrame, None, None]:
        """Read the rows of a part of the table.

        Raises:
            TransientError: the connection broke, or fewer rows arrived than were sent.
        """
        with connect(self._connection) as session:
            _set_snapshot(session, self._snapshot)
            types = column_types(session, self._shape)
            rows = self._rows(part_condition(self._shape, bounds, part))
            self.counted += yield from copy_binary_rows(session, self._shape, types, rows)

    def keys(self, keys: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Read every row with one of these business keys, whatever its time.

        Raises:
            TransientError: as `part`.
        """
        if not keys:
            return
        with connect(self._connection) as session:
            _set_snapshot(session, self._snapshot)
            types = column_types(session, self._shape)
            # What reads binary rows is compiled, and takes half a second to load.
            copy_rows = copy_text_rows if len(keys) <= _KEYS_PER_STATEMENT else copy_binary_rows
            for start in range(0, len(keys), _KEYS_PER_STATEMENT):
                some = self._rows(key_condition(self._shape, types, keys[start : start + _KEYS_PER_STATEMENT]))
                self.counted += yield from copy_rows(session, self._shape, types, some)

    def _rows(self, condition: sql.Composable) -> sql.Composable:
        point = self._shape.point
        return sql.SQL("from {} t where {} and {}").format(table_identifier(point), condition, live_condition(point))


def read_keys(connection: PostgresConnection, shape: TableShape, keys: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Read every row with one of these business keys as it is now: the look-up that confirms an absence."""
    return ExportReader(connection, shape, None).keys(keys)


def key_condition(shape: TableShape, types: Mapping[str, str], keys: Sequence[str]) -> sql.Composable:
    """Return the condition for rows with one of these keys, in the column's own type where that lets an index help."""
    point = shape.point
    kind = bare(types[point.key[0]]) if len(point.key) == 1 else "several"
    typed = kinds_of(point.key_layout, len(point.key))[0]
    column = sql.SQL("t.{}").format(sql.Identifier(point.key[0]))
    usable = [key for key in keys if "\x00" not in key]
    if kind in INTEGERS:
        numbers = [int(key) for key in usable if _INT.fullmatch(key)]
        fitting = [number for number in numbers if -(2**63) <= number < 2**63]
        return sql.SQL("{} = any({}::bigint[])").format(column, sql.Literal(fitting))
    if kind == "uuid":
        return sql.SQL("{} = any({}::uuid[])").format(
            column, sql.Literal([key for key in usable if _UUID.fullmatch(key)])
        )
    if kind in _TEXT_TYPES and typed is KeyType.STRING:
        return sql.SQL("{} = any({}::text[])").format(column, sql.Literal(usable))
    if typed in _CANONICAL and is_native(kind, typed):
        fitting_texts = [key for key in usable if _CANONICAL[typed].fullmatch(key)]
        return sql.SQL("{} = any({}::{}[])").format(column, sql.Literal(fitting_texts), sql.SQL(kind))
    return sql.SQL("{} = any({}::text[])").format(key_expression(point, types), sql.Literal(usable))
