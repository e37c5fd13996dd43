"""Read the rows of a query by COPY as CSV, every value rendered by PostgreSQL.

Every value is quoted, so that NULL (nothing) differs from the empty string.
"""

import os
import threading
from collections.abc import Generator, Iterator, Mapping
from typing import IO, Any

import polars as pl
import pyarrow as pa
import pyarrow.csv as pcsv
from psycopg2 import sql

from makewhole.compute.versions import versions_of_table
from makewhole.model.errors import PermanentError
from makewhole.postgres.read.copy_end import CopyEnd
from makewhole.postgres.read.expressions import select_list
from makewhole.sql import PgConnection
from makewhole.tables.shape import TableShape

_BLOCK_BYTES = 16 << 20


def copy_text_rows(
    session: PgConnection, shape: TableShape, types: Mapping[str, str], rows: sql.Composable
) -> Generator[pl.DataFrame, None, int]:
    """Yield the rows of a query that goes on with `rows` (`from …`); return how many the database says it sent.

    Raises:
        TransientError: the connection broke, or fewer rows arrived than were sent.
        PermanentError: a text is not UTF-8, or too long.
    """
    copy = sql.SQL("copy (select {} {}) to stdout with (format csv, force_quote *)").format(
        select_list(shape, types), rows
    )
    read_end, write_end = os.pipe()
    sender = _Sender(session, copy.as_string(session), write_end)
    arrived = 0
    try:
        with os.fdopen(read_end, "rb") as stream:
            sender.start()
            for batch in _parse_csv(stream, shape):
                frame = pl.from_arrow(batch)
                assert isinstance(frame, pl.DataFrame)
                arrived += len(frame)
                yield frame.with_columns(versions_of_table(frame["version"]))
    finally:
        sender.join()
    CopyEnd(
        table=shape.point.table, sent_rows=sender.sent_rows, arrived_rows=arrived, problem=sender.problem
    ).require_whole(session)
    return sender.sent_rows


def _parse_csv(stream: IO[Any], shape: TableShape) -> Iterator[pa.RecordBatch]:
    names = ["key", "place", "time_us", "version", *(f"c:{name}" for name in shape.compare), "excluded_by"]
    types = {name: pa.int64() if name == "time_us" else pa.string() for name in names}
    try:
        yield from pcsv.open_csv(
            stream,
            read_options=pcsv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False, column_names=names),
            parse_options=pcsv.ParseOptions(newlines_in_values=True),
            convert_options=pcsv.ConvertOptions(
                column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV file" not in str(error):
            # Not chained: Arrow's message quotes the row.
            raise PermanentError(
                "the rows that PostgreSQL sent cannot be read: a value is not valid UTF-8 or over 16 MiB; mend the "
                "value, or take its column out of `compare`"
            ) from None


class _Sender(threading.Thread):
    """A thread in which COPY writes into a pipe, so that parsing goes on meanwhile."""

    def __init__(self, session: PgConnection, statement: str, write_end: int) -> None:
        super().__init__(daemon=True)
        self._session, self._statement, self._write_end = session, statement, write_end
        self.sent_rows = 0
        self.problem: Exception | None = None

    def run(self) -> None:
        try:
            with os.fdopen(self._write_end, "wb") as stream, self._session.cursor() as cursor:
                cursor.copy_expert(self._statement, stream, size=1 << 20)
                self.sent_rows = cursor.rowcount
        except Exception as error:  # whatever it is: rows that did not come would be rows that are not there
            self.problem = error
