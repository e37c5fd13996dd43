"""Run an operation on all items of a chunk at once, halve them where that fails, and do the last few one by one.

What one row cannot do is one refusal, not a failure of the chunk. The operation is the caller's: `apply` writes,
`dry_run` only judges.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import psycopg2
from psycopg2 import errors as pg_errors

from makewhole.model.errors import RefusedError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.postgres.connect import describe
from makewhole.postgres.write.array_parameter import CannotRunTogether
from makewhole.postgres.write.chunk import TableChunk
from makewhole.postgres.write.unfit_columns import unfit_columns
from makewhole.sql import PgCursor
from makewhole.tables.items import RowItem, UpsertRow

_FEW = 8
_MANY_BYTES = 8 << 20
# Classes of SQLSTATE that no row causes: fewer rows would fail as well. But where a statement took too long (57014) or
# too much memory (53200), half of it may succeed.
_SERVER_ERRORS = ("08", "25", "40", "53", "55", "57", "58", "XX")
_SIZE_ERRORS = ("53200", "57014")
# What a statement names is not there, or a right is missing: no row causes that. But the type of a compared column
# that cannot be read as its declared type at all is one of these, too.
_STATEMENT_ERRORS = ("42",)
_CAUSED_BY_TYPES = (pg_errors.CannotCoerce, pg_errors.UndefinedFunction)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation on items: `many` of one kind at once gives the refusals by action number, `one` gives its own.

    Both may raise RefusedError, and `many` CannotRunTogether; what they wrote is taken back then.
    """

    many: Callable[[TableChunk, Sequence[RowItem]], Mapping[int, Refusal]]
    one: Callable[[TableChunk, RowItem], Refusal | None]


def run_with_halving(chunk: TableChunk, items: Sequence[RowItem], operation: Operation) -> dict[int, Refusal]:
    """Run the operation on all items in order, neighbours of one kind together. Returns refusals by action number."""
    refused: dict[int, Refusal] = {}
    for _, group in groupby(items, key=type):
        refused |= _run_or_halve(chunk, list(group), operation)
    return refused


def _run_or_halve(chunk: TableChunk, items: Sequence[RowItem], operation: Operation) -> dict[int, Refusal]:
    """Run items of one kind at once, or else each half by itself: one bad row slows the few around it, not the chunk.

    The order is kept: an item that runs alone runs after everything before it.
    """
    if len(items) > _FEW:
        fits = sum(item.size_bytes for item in items) <= _MANY_BYTES
        refused = _run_together(chunk, items, operation) if fits else None
        if refused is not None:
            return dict(refused)
        half = len(items) // 2
        return {**_run_or_halve(chunk, items[:half], operation), **_run_or_halve(chunk, items[half:], operation)}
    answers = {item.seq: run_alone(chunk, item, operation) for item in items}
    return {seq: refusal for seq, refusal in answers.items() if refusal is not None}


def _run_together(chunk: TableChunk, items: Sequence[RowItem], operation: Operation) -> Mapping[int, Refusal] | None:
    """Run items at once in a savepoint. Returns the refusals, or None when that failed and nothing was done."""
    with chunk.session.cursor() as cursor:
        cursor.execute("savepoint attempt")
        try:
            refused = operation.many(chunk, items)
        except (CannotRunTogether, RefusedError):
            refused = None
        except psycopg2.Error as error:
            if chunk.session.closed or not _is_caused_by_rows(error):
                raise
            refused = None
        _end_savepoint(cursor, is_kept=refused is not None)
    return refused


def run_alone(chunk: TableChunk, item: RowItem, operation: Operation) -> Refusal | None:
    """Run one item in a savepoint. Returns a refusal where the data are the cause; where the server is, it raises.

    Where others may write, a row that is not unique may be one that they inserted meanwhile: it is looked at once more.
    """
    try:
        return _try_alone(chunk, item, operation)
    except pg_errors.UniqueViolation as error:
        if chunk.is_table_locked:
            return _unfit(error)
    try:
        return _try_alone(chunk, item, operation)
    except pg_errors.UniqueViolation as error:
        return _unfit(error)


def _try_alone(chunk: TableChunk, item: RowItem, operation: Operation) -> Refusal | None:
    failed: psycopg2.Error | None = None
    with chunk.session.cursor() as cursor:
        cursor.execute("savepoint attempt")
        try:
            refusal = operation.one(chunk, item)
        except pg_errors.UniqueViolation:
            _end_savepoint(cursor, is_kept=False)
            raise
        except psycopg2.Error as error:
            if chunk.session.closed or not _is_caused_by_one_row(error):
                raise
            failed, refusal = error, None
        except RefusedError as error:
            refusal = error.refusal
        _end_savepoint(cursor, is_kept=failed is None and refusal is None)
    if failed is None:
        return refusal
    if isinstance(failed, psycopg2.DataError) and isinstance(item, UpsertRow):
        return _unfit(failed, unfit_columns(chunk, item))
    return _unfit(failed)


def _unfit(error: psycopg2.Error, columns: Sequence[str] = ()) -> Refusal:
    return Refusal(RefusalCode.UNFIT, f"the table does not take it: {describe(error, columns)}")


def _end_savepoint(cursor: PgCursor, *, is_kept: bool) -> None:
    cursor.execute(("" if is_kept else "rollback to savepoint attempt; ") + "release savepoint attempt")


def _is_caused_by_rows(error: psycopg2.Error) -> bool:
    code = error.pgcode or ""
    return bool(code) and (code in _SIZE_ERRORS or not code.startswith(_SERVER_ERRORS))


def _is_caused_by_one_row(error: psycopg2.Error) -> bool:
    """Return whether a row that runs alone is the cause. A trigger may raise any SQLSTATE, and an index, a rule or a
    limit of the server may refuse it, so that what can have another cause is listed."""
    code = error.pgcode or ""
    if isinstance(error, (psycopg2.DataError, *_CAUSED_BY_TYPES)):
        return True
    return _is_caused_by_rows(error) and code not in _SIZE_ERRORS and not code.startswith(_STATEMENT_ERRORS)
