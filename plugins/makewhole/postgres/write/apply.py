"""Apply one chunk to a PostgreSQL table: rows, effects and the receipt in one transaction, refusals in the receipt.

Where a unique index keeps a key from having two rows, others write the table meanwhile. Where none does, a chunk that
may insert locks the table (docs/adr/0026).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from psycopg2 import errors as pg_errors

from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal
from makewhole.postgres.table import Table, describe_table
from makewhole.postgres.write.beside_doubt import in_doubt_on, refuse_new_rows, run_beside_doubt
from makewhole.postgres.write.chunk import TableChunk
from makewhole.postgres.write.halving import Operation
from makewhole.postgres.write.quarantine import move_aside, move_aside_many
from makewhole.postgres.write.receipts import begin_chunk, put_receipt
from makewhole.postgres.write.restore import restore
from makewhole.postgres.write.restore_many import restore_many
from makewhole.postgres.write.upsert import upsert
from makewhole.postgres.write.upsert_many import upsert_many
from makewhole.sql import PgConnection
from makewhole.tables.items import QuarantineRows, RestoreRow, RowItem, UpsertRow
from makewhole.tables.receipts import ChunkId, ReceiptRow

SessionGuard = Callable[[PgConnection, Sequence[RowItem]], Mapping[int, Refusal]]
"""Return the refusals of items, by action number, as the transaction of their chunk sees them."""


def _refuse_none(session: PgConnection, items: Sequence[RowItem]) -> Mapping[int, Refusal]:  # noqa: ARG001
    return {}


def apply_chunk(
    session: PgConnection,
    point: TablePoint,
    chunk: ChunkId,
    items: Sequence[RowItem],
    guard: SessionGuard = _refuse_none,
) -> ReceiptRow:
    """Apply the items in order and leave their effects and the receipt; a chunk that has one is left as it is.

    `guard` is asked first, in the same transaction. Each item succeeds or is refused by itself (its savepoint is
    undone); the refusals are in the receipt.

    Raises:
        LeaseLostError: a newer runner has been here.
        RefusedError: the table is gone or lost a column that the point names.
        TransientError: by way of `connect`: a lock was not free, the server went away.
    """
    gives_up_at = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return _try_chunk(session, point, chunk, items, guard)
        except _NOT_FREE:  # everything was taken back, so others go on; the receipt shows whether it happened
            if session.closed or time.monotonic() + _PAUSE_SECONDS > gives_up_at:
                raise
        time.sleep(_PAUSE_SECONDS)


def _try_chunk(
    session: PgConnection, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], guard: SessionGuard
) -> ReceiptRow:
    with session:
        done = begin_chunk(session, chunk)
        if done is not None:
            return done
        table = describe_table(session, point)
        in_doubt = in_doubt_on(session, table)
        held = refuse_new_rows(table, point, items, in_doubt)
        opened = _open_chunk(session, point, chunk, [item for item in items if item.seq not in held])
        kept_out = {**held, **guard(session, items)}
        left = [item for item in items if item.seq not in kept_out]
        refused = {**kept_out, **run_beside_doubt(opened, left, _WRITE, in_doubt)}
        return put_receipt(session, chunk, len(items) - len(refused), refused)


def _open_chunk(session: PgConnection, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem]) -> TableChunk:
    """Lock the table, then read it from the catalogue again: it may have been altered while the lock was awaited.

    Raises:
        psycopg2.errors.LockNotAvailable: others hold it, or the unique index went away meanwhile.
    """
    table = describe_table(session, point)
    is_locked = locks_table(table, point, items)
    TableChunk(session=session, table=table, point=point, id=chunk).run("lock_table" if is_locked else "keep_table")
    table = describe_table(session, point)
    if locks_table(table, point, items) and not is_locked:
        raise pg_errors.LockNotAvailable("the unique index of the key went away")
    return TableChunk(session=session, table=table, point=point, id=chunk, is_table_locked=is_locked)


def locks_table(table: Table, point: TablePoint, items: Sequence[RowItem]) -> bool:
    """Return whether a chunk of these items makes other writers of the table wait until its end."""
    return not table.has_one_row_per(point) and any(item.may_insert for item in items)


def _write_many(chunk: TableChunk, items: Sequence[RowItem]) -> dict[int, Refusal]:
    """Write items of one kind. Returns the refusals by action number."""
    match items[0]:
        case UpsertRow():
            return upsert_many(chunk, cast(Sequence[UpsertRow], items))
        case QuarantineRows():
            return move_aside_many(chunk, cast(Sequence[QuarantineRows], items))
        case RestoreRow():
            return restore_many(chunk, cast(Sequence[RestoreRow], items))


def _write_one(chunk: TableChunk, item: RowItem) -> Refusal | None:
    match item:
        case UpsertRow():
            return upsert(chunk, item)
        case QuarantineRows():
            return move_aside(chunk, item)
        case RestoreRow():
            restore(chunk, item)
            return None


_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.5
_NOT_FREE = (pg_errors.LockNotAvailable, pg_errors.DeadlockDetected, pg_errors.SerializationFailure)
_WRITE = Operation(many=_write_many, one=_write_one)
