"""One chunk at a PostgreSQL target: the rows and the receipt in one transaction, refusals recorded, nothing guessed."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import cast

import psycopg2
from psycopg2 import errors as pg_errors
from psycopg2.extensions import cursor as PgCursor  # noqa: N812 - it is a class

from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import TablePoint
from makewhole.postgres.chunk import OpenChunk
from makewhole.postgres.connect import Session, describe
from makewhole.postgres.many import NotTogether
from makewhole.postgres.quarantine import QuarantineRows, move_aside
from makewhole.postgres.quarantine_many import move_aside_many
from makewhole.postgres.receipts import ChunkId, ReceiptRow, begin_chunk, put_receipt
from makewhole.postgres.restore import RestoreRow, restore
from makewhole.postgres.restore_many import restore_many
from makewhole.postgres.tables import describe_table
from makewhole.postgres.upsert import UpsertRow, upsert
from makewhole.postgres.upsert_many import upsert_many

Item = UpsertRow | QuarantineRows | RestoreRow

_FEW = 8
_MANY_BYTES = 8 << 20
# Classes of SQLSTATE that are no row's fault: fewer rows would fare no better. But of the statement that took too long
# (57014) and the one that took too much memory (53200), half may do.
_OF_THE_SERVER = ("08", "25", "40", "53", "55", "57", "58", "XX")
_OF_THE_SIZE = ("53200", "57014")


def apply_chunk(connection: Session, point: TablePoint, chunk: ChunkId, items: Sequence[Item]) -> ReceiptRow:
    """Apply the items in order and leave their effects and the receipt; a chunk that has one is left as it is.

    Each item succeeds or is refused by itself (its savepoint is undone); the reasons are in the receipt.

    Raises:
        LeaseLostError: a newer runner has been here.
        RefusedError: the table is gone or lost a column that the point names.
        TransientError: by way of `connect`: a lock was not free, the server went away.
    """
    with connection:
        done = begin_chunk(connection, chunk)
        if done is not None:
            return done
        refused = _apply(_open(connection, point, chunk, items), items)
        return put_receipt(connection, chunk, len(items) - len(refused), refused)


def _open(connection: Session, point: TablePoint, chunk: ChunkId, items: Sequence[Item]) -> OpenChunk:
    """The table locked, and then read from the catalogue again: it may have been altered while the lock was awaited."""
    lock = "keep_table" if all(isinstance(item, QuarantineRows) for item in items) else "lock_table"
    table = describe_table(connection, point)
    OpenChunk(session=connection, table=table, point=point, id=chunk).run(lock)
    return OpenChunk(session=connection, table=describe_table(connection, point), point=point, id=chunk)


def _apply(chunk: OpenChunk, items: Sequence[Item]) -> dict[int, str]:
    """The refusals, by action number. Neighbours of one kind are done together."""
    refused: dict[int, str] = {}
    for _, alike in groupby(items, key=type):
        refused |= _divide(chunk, list(alike))
    return refused


def _divide(chunk: OpenChunk, items: Sequence[Item]) -> dict[int, str]:
    """All at once, or else each half by itself: one bad row makes the few around it slow, not the chunk.

    In order all the same: what is done one by one comes after everything before it is done.
    """
    if len(items) > _FEW:
        refused = _together(chunk, items) if sum(item.size_bytes for item in items) <= _MANY_BYTES else None
        if refused is not None:
            return dict(refused)
        half = len(items) // 2
        return {**_divide(chunk, items[:half]), **_divide(chunk, items[half:])}
    reasons = {item.seq: _alone(chunk, item) for item in items}
    return {seq: reason for seq, reason in reasons.items() if reason is not None}


def _together(chunk: OpenChunk, items: Sequence[Item]) -> Mapping[int, str] | None:
    """The refusals; None when together they cannot be done, for whatever reason, and nothing is."""
    with chunk.session.cursor() as cursor:
        cursor.execute("savepoint attempt")
        try:
            refused = _many(chunk, items)
        except (NotTogether, RefusedError):
            refused = None
        except psycopg2.Error as error:
            if chunk.session.closed or not _is_of_the_rows(error):
                raise
            refused = None
        _end_savepoint(cursor, is_kept=refused is not None)
    return refused


def _many(chunk: OpenChunk, items: Sequence[Item]) -> dict[int, str]:
    """Items of one kind."""
    match items[0]:
        case UpsertRow():
            return upsert_many(chunk, cast(Sequence[UpsertRow], items))
        case QuarantineRows():
            return move_aside_many(chunk, cast(Sequence[QuarantineRows], items))
        case RestoreRow():
            return restore_many(chunk, cast(Sequence[RestoreRow], items))


def _alone(chunk: OpenChunk, item: Item) -> str | None:
    """Run one item in a savepoint. What the data cannot do is a refusal; what the server cannot do is raised."""
    with chunk.session.cursor() as cursor:
        cursor.execute("savepoint attempt")
        try:
            reason = _one(chunk, item)
        except (psycopg2.DataError, psycopg2.IntegrityError, pg_errors.RaiseException) as error:
            reason = f"unfit: the table does not take it: {describe(error)}"
        except RefusedError as error:
            reason = str(error)
        _end_savepoint(cursor, is_kept=reason is None)
    return reason


def _one(chunk: OpenChunk, item: Item) -> str | None:
    match item:
        case UpsertRow():
            return upsert(chunk, item)
        case QuarantineRows():
            return move_aside(chunk, item)
        case RestoreRow():
            restore(chunk, item)
            return None


def _end_savepoint(cursor: PgCursor, *, is_kept: bool) -> None:
    cursor.execute(("" if is_kept else "rollback to savepoint attempt; ") + "release savepoint attempt")


def _is_of_the_rows(error: psycopg2.Error) -> bool:
    code = error.pgcode or ""
    return bool(code) and (code in _OF_THE_SIZE or not code.startswith(_OF_THE_SERVER))
