"""Apply one chunk to a PostgreSQL table: rows, effects and the receipt in one transaction, refusals in the receipt."""

from collections.abc import Sequence
from typing import cast

from makewhole.model.pipeline import TablePoint
from makewhole.postgres.tables import describe_table
from makewhole.postgres.write.chunk import TableChunk
from makewhole.postgres.write.halving import Operation, RowItem, run_with_halving
from makewhole.postgres.write.quarantine import QuarantineRows, move_aside, move_aside_many
from makewhole.postgres.write.receipts import ChunkId, ReceiptRow, begin_chunk, put_receipt
from makewhole.postgres.write.restore import RestoreRow, restore
from makewhole.postgres.write.restore_many import restore_many
from makewhole.postgres.write.upsert import upsert
from makewhole.postgres.write.upsert_many import upsert_many
from makewhole.postgres.write.upsert_row import UpsertRow
from makewhole.sql import PgConnection


def apply_chunk(session: PgConnection, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem]) -> ReceiptRow:
    """Apply the items in order and leave their effects and the receipt; a chunk that has one is left as it is.

    Each item succeeds or is refused by itself (its savepoint is undone); the reasons are in the receipt.

    Raises:
        LeaseLostError: a newer runner has been here.
        RefusedError: the table is gone or lost a column that the point names.
        TransientError: by way of `connect`: a lock was not free, the server went away.
    """
    with session:
        done = begin_chunk(session, chunk)
        if done is not None:
            return done
        refused = run_with_halving(_open_chunk(session, point, chunk, items), items, _WRITE)
        return put_receipt(session, chunk, len(items) - len(refused), refused)


def _open_chunk(session: PgConnection, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem]) -> TableChunk:
    """Lock the table, then read it from the catalogue again: it may have been altered while the lock was awaited."""
    lock = "keep_table" if all(isinstance(item, QuarantineRows) for item in items) else "lock_table"
    table = describe_table(session, point)
    TableChunk(session=session, table=table, point=point, id=chunk).run(lock)
    return TableChunk(session=session, table=describe_table(session, point), point=point, id=chunk)


def _write_many(chunk: TableChunk, items: Sequence[RowItem]) -> dict[int, str]:
    """Write items of one kind. Returns the refusals by action number."""
    match items[0]:
        case UpsertRow():
            return upsert_many(chunk, cast(Sequence[UpsertRow], items))
        case QuarantineRows():
            return move_aside_many(chunk, cast(Sequence[QuarantineRows], items))
        case RestoreRow():
            return restore_many(chunk, cast(Sequence[RestoreRow], items))


def _write_one(chunk: TableChunk, item: RowItem) -> str | None:
    match item:
        case UpsertRow():
            return upsert(chunk, item)
        case QuarantineRows():
            return move_aside(chunk, item)
        case RestoreRow():
            restore(chunk, item)
            return None


_WRITE = Operation(many=_write_many, one=_write_one)
