"""Write and read the actions of plans by COPY, whose bytes a plan's hash covers."""

import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
from psycopg2 import sql

from makewhole.model.actions import Action, read_before
from makewhole.sql import CopyLines, PgConnection, load_queries

_BLOCK_BYTES = 1 << 20
_ROWS_OF_A_BATCH = 10_000
_ROWS_OF_A_PART = 100_000
_PARSED_BYTES = 64 << 20  # more than the longest line
_NAMES = pa.dictionary(pa.int32(), pa.string())
_TYPES: dict[str, pa.DataType] = {
    "seq": pa.int32(),
    "chunk": pa.int32(),
    "remedy": _NAMES,
    "hop": _NAMES,
    "target": _NAMES,
    "key": pa.string(),
    "key_hash": pa.string(),
    "before": pa.string(),
}
SCHEMA = pa.schema(_TYPES)
"""The columns of actions, one row each, ordered by `seq`; `before` is canonical JSON."""
_STORED = pa.schema([(name, pa.string() if name not in ("seq", "chunk") else pa.int32()) for name in SCHEMA.names])
_COPIED = dict(zip(_STORED.names, _STORED.types, strict=True))

ArrowColumn = Any
"""A chunked array of Arrow, which type checkers know too little of."""

_NUL = "\0"  # in no text that PostgreSQL holds
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def put_actions(journal: PgConnection, plan_id: str, actions: Iterable[bytes]) -> None:
    """Write the actions of a plan by their lines, in the caller's transaction."""
    prefix = f"{plan_id}\t".encode()
    lines = CopyLines(prefix + action for action in actions)
    with journal.cursor() as cursor:
        cursor.copy_expert(load_queries("plan")["copy_actions_in"], lines)


def copy_actions(journal: PgConnection, plan_id: str, listener: Callable[[bytes], object]) -> pa.Table:
    """Return the actions of a plan as columns of `SCHEMA`; the listener gets their stored bytes, in order."""
    statement = sql.SQL(load_queries("plan")["copy_actions_out"]).format(plan=sql.Literal(plan_id))
    reading, writing = os.pipe()
    with ThreadPoolExecutor(max_workers=1) as parser, journal.cursor() as cursor:
        columns = parser.submit(_columns, reading, listener)
        with os.fdopen(writing, "wb", buffering=_BLOCK_BYTES) as copied:
            cursor.copy_expert(statement, copied)
    return columns.result()


def copied_lines(journal: PgConnection, plan_id: str) -> Iterator[bytes]:
    """Yield the very bytes that a plan's hash is over, in order; they are in a file of this machine meanwhile."""
    statement = sql.SQL(load_queries("plan")["copy_actions_out"]).format(plan=sql.Literal(plan_id))
    with tempfile.TemporaryFile() as copied, journal.cursor() as cursor:
        cursor.copy_expert(statement, copied)
        copied.seek(0)
        yield from copied


def in_parts(actions: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of actions in order, so many at a time that what is made of a part is small; none gives one empty
    part."""
    yield from (actions.slice(first, _ROWS_OF_A_PART) for first in range(0, max(len(actions), 1), _ROWS_OF_A_PART))


def actions_in(table: pa.Table) -> tuple[Action, ...]:
    """Return rows of `SCHEMA` as actions."""
    return tuple(map(action_of, table.to_pylist()))


def action_of(row: dict[str, Any]) -> Action:
    """Return a row of `SCHEMA`, by the names of its columns, as an action."""
    return Action(before=read_before(row.pop("remedy"), row.pop("before")), **row)


class _TeeReader(io.RawIOBase):
    """A file that passes every block that is read to a listener, too."""

    def __init__(self, file: IO[bytes], listener: Callable[[bytes], object]) -> None:
        self._file, self._listener = file, listener
        self.size_bytes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self._listener(block)
        self.size_bytes += len(block)
        return block


def _columns(reading: int, listener: Callable[[bytes], object]) -> pa.Table:
    """Parse what comes out of a pipe; the listener gets all of its bytes, even where they are no table."""
    with os.fdopen(reading, "rb", buffering=_BLOCK_BYTES) as pipe:
        copied = _TeeReader(pipe, listener)
        try:
            return _parsed(copied)
        except pa.ArrowInvalid:
            if copied.size_bytes:
                raise
            return SCHEMA.empty_table()
        finally:
            while copied.read(_BLOCK_BYTES):
                pass


def _parsed(copied: _TeeReader) -> pa.Table:
    """Parse block by block into a file of this machine, and return its columns as they lie there: a page of it that
    is not looked at takes no memory."""
    reader = pcsv.open_csv(
        copied,  # type: ignore[arg-type]
        read_options=pcsv.ReadOptions(column_names=SCHEMA.names, block_size=_PARSED_BYTES),
        parse_options=pcsv.ParseOptions(delimiter="\t", quote_char=False, double_quote=False),
        convert_options=pcsv.ConvertOptions(column_types=_COPIED, strings_can_be_null=False),
    )
    with tempfile.NamedTemporaryFile(prefix="makewhole-actions-") as file:
        with pa.ipc.new_file(file.name, _STORED) as writer:
            for batch in reader:
                writer.write_table(_decoded(pa.Table.from_batches([batch])), max_chunksize=_ROWS_OF_A_BATCH)
        stored = pa.ipc.open_file(pa.memory_map(file.name)).read_all()
    pa.default_memory_pool().release_unused()  # the blocks that were parsed
    return pa.table([_as_named(stored.column(field.name), field.type) for field in SCHEMA], schema=SCHEMA)


def _decoded(copied: pa.Table) -> pa.Table:
    columns = [
        copied.column(field.name) if pa.types.is_integer(field.type) else _unescaped(copied.column(field.name))
        for field in _STORED
    ]
    return pa.table(columns, schema=_STORED)


def _as_named(column: ArrowColumn, wanted: pa.DataType) -> ArrowColumn:
    return column.dictionary_encode() if pa.types.is_dictionary(wanted) else column


def _unescaped(texts: ArrowColumn) -> ArrowColumn:
    """Undo the escapes of COPY. Pairs of backslashes are replaced first: what follows one is no escape."""
    if not pc.any(pc.match_substring(texts, "\\")).as_py():
        return texts
    texts = pc.replace_substring(texts, "\\\\", _NUL)
    for letter, character in _ESCAPED.items():
        texts = pc.replace_substring(texts, f"\\{letter}", character)
    return pc.replace_substring(texts, _NUL, "\\")
