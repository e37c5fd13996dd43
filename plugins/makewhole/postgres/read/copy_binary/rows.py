"""Read the rows of a query by binary COPY as frames, the same as `copy_text` makes."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from psycopg2 import sql

from makewhole.compute.versions import VERSION, versions_of_table
from makewhole.model.errors import PermanentError, TransientError
from makewhole.native.arrays import Int32s
from makewhole.native.byte_strings import Blobs, Content
from makewhole.postgres.read.copy_binary import render
from makewhole.postgres.read.copy_binary.columns import FieldUse, SentColumn, plain_table, sent_columns
from makewhole.postgres.read.copy_binary.render import Fields
from makewhole.postgres.read.copy_binary.stream import CHUNK_BYTES, CopyStream
from makewhole.postgres.read.copy_binary.walk import BinaryRows, RowWalk
from makewhole.postgres.read.copy_end import CopyEnd
from makewhole.sql import PgConnection
from makewhole.tables.shape import TableShape

_MOST_TEXT_BYTES = 1 << 28  # a frame's column: places in it are of 32 bits, and a numeric can be long from few bytes


def copy_binary_rows(
    session: PgConnection,
    shape: TableShape,
    types: Mapping[str, str],
    rows: sql.Composable,
    chunk_bytes: int = CHUNK_BYTES,
) -> Generator[pl.DataFrame, None, int]:
    """Yield the rows of a query that goes on with `rows` (`from …`); return how many the database says it sent.

    Raises:
        TransientError: the connection broke, or fewer rows arrived than were sent.
        PermanentError: a text is not UTF-8.
    """
    table = plain_table(session, shape.point)
    columns = sent_columns(shape, types, is_plain=table is not None)
    selected = sql.SQL(", ").join(column.selected for column in columns)
    copy = sql.SQL("copy (select {} {}) to stdout with (format binary)").format(selected, rows)
    stream, walk = CopyStream(session, copy.as_string(session), chunk_bytes), RowWalk(len(columns))
    frames = _Frames(shape=shape, columns=columns, table=table)
    arrived = 0
    with closing(stream.chunks()) as chunks:
        for chunk in chunks:
            for frame in frames.of(walk.rows(chunk)):
                arrived += len(frame)
                yield frame
    CopyEnd(
        table=shape.point.table,
        sent_rows=stream.sent_rows,
        arrived_rows=arrived,
        problem=stream.problem,
        has_end=walk.is_ended,
    ).require_whole(session)
    return stream.sent_rows


@dataclass(frozen=True, kw_only=True)
class _Frames:
    """The making of frames for `makewhole.compute.normalise.table_frame`. `table` is the id of the one that all rows
    must lie in, if there is one."""

    shape: TableShape
    columns: Sequence[SentColumn]
    table: int | None

    def of(self, rows: BinaryRows) -> Iterator[pl.DataFrame]:
        """Yield the rows as frames: one, unless their texts are very long."""
        if not len(rows):
            return
        if len(rows) > 1 and self._text_bytes(rows) > _MOST_TEXT_BYTES:
            half = len(rows) // 2
            yield from self.of(rows.part(0, half))
            yield from self.of(rows.part(half, len(rows)))
            return
        yield self._frame(rows)

    def _text_bytes(self, rows: BinaryRows) -> int:
        """Return the room that the longest column of texts needs."""
        return max(
            (
                render.room_for(column.rule, rows.fields(at))
                for at, column in enumerate(self.columns)
                if column.use is FieldUse.RENDERED
            ),
            default=0,
        )

    def _frame(self, rows: BinaryRows) -> pl.DataFrame:
        try:
            made = {column.name: self._series(column, rows, at) for at, column in enumerate(self.columns)}
        except ValueError as error:
            # Not chained: the message could quote the row.
            raise PermanentError(
                f"what PostgreSQL sent of {self.shape.point.table} cannot be read: {error}; mend the value, or take "
                "its column out of `compare`"
            ) from None
        for name in ("time_us", "version"):
            made.setdefault(name, pl.repeat(None, len(rows), dtype=pl.Int64, eager=True))
        made["version"] = _versions(made["version"])
        made.setdefault("excluded_by", pl.repeat("", len(rows), dtype=pl.String, eager=True))
        names = ["key", "place", "time_us", "version", *(f"c:{name}" for name in self.shape.compare), "excluded_by"]
        return pl.DataFrame([made[name].alias(name) for name in names])

    def _series(self, column: SentColumn, rows: BinaryRows, at: int) -> pl.Series:
        fields = rows.fields(at)
        if column.use is FieldUse.TEXT:
            return _texts(rows.content, fields)
        if column.use is FieldUse.RENDERED:
            text, begins, sizes = render.render(column.rule, fields)
            return _views(Content(pa.py_buffer(text.data)), begins, sizes)
        numbers, is_valid = render.read_numbers(column.rule.kind, fields)
        if column.use is FieldUse.TABLE and ((numbers & 0xFFFFFFFF) != self.table).any():
            raise TransientError(f"{self.shape.point.table} got partitions while it was read; try again")
        mask: Any = None if is_valid.all() else ~is_valid
        return pl.Series(pl.from_arrow(pa.array(numbers, mask=mask)), dtype=pl.Int64)


def _versions(values: pl.Series) -> pl.Series:
    return versions_of_table(values) if values.dtype == pl.String else values.cast(VERSION)


def _texts(content: Content, fields: Fields) -> pl.Series:
    """Return texts as they were sent; a server whose encoding is SQL_ASCII sends any bytes."""
    starts, lengths = np.ascontiguousarray(fields.starts), np.ascontiguousarray(fields.lengths)
    blobs = Blobs(starts=starts, lengths=lengths)
    if not blobs.are_ascii(content):
        try:
            blobs.column(content).cast(pa.string())
        except pa.ArrowInvalid:
            raise ValueError("a text is not valid UTF-8") from None
    return _views(content, starts, lengths)


def _views(content: Content, starts: Int32s, lengths: Int32s) -> pl.Series:
    views = Blobs(starts=starts, lengths=lengths).views(content, pa.string_view())
    return pl.Series(pl.from_arrow(views), dtype=pl.String)
