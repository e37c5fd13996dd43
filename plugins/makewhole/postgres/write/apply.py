"""One chunk at a PostgreSQL target: the rows and the receipt in one transaction, refusals recorded, nothing guessed."""

from collections.abc import Sequence
from typing import cast

from makewhole.model.pipeline import TablePoint
from makewhole.postgres.tables import describe_table
from makewhole.postgres.write.chunk import OpenChunk
from makewhole.postgres.write.halving import RowItem, Way, divided
from makewhole.postgres.write.quarantine import QuarantineRows, move_aside
from makewhole.postgres.write.quarantine_many import move_aside_many
from makewhole.postgres.write.receipts import ChunkId, ReceiptRow, begin_chunk, put_receipt
from makewhole.postgres.write.restore import RestoreRow, restore
from makewhole.postgres.write.restore_many import restore_many
from makewhole.postgres.write.upsert import upsert
from makewhole.postgres.write.upsert_many import upsert_many
from makewhole.postgres.write.upsert_row import UpsertRow
from makewhole.sql import PgConnection


def apply_chunk(connection: PgConnection, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem]) -> ReceiptRow:
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
        refused = divided(_open(connection, point, chunk, items), items, _WRITING)
        return put_receipt(connection, chunk, len(items) - len(refused), refused)


def _open(connection: PgConnection, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem]) -> OpenChunk:
    """The table locked, and then read from the catalogue again: it may have been altered while the lock was awaited."""
    lock = "keep_table" if all(isinstance(item, QuarantineRows) for item in items) else "lock_table"
    table = describe_table(connection, point)
    OpenChunk(session=connection, table=table, point=point, id=chunk).run(lock)
    return OpenChunk(session=connection, table=describe_table(connection, point), point=point, id=chunk)


def _many(chunk: OpenChunk, items: Sequence[RowItem]) -> dict[int, str]:
    """Items of one kind."""
    match items[0]:
        case UpsertRow():
            return upsert_many(chunk, cast(Sequence[UpsertRow], items))
        case QuarantineRows():
            return move_aside_many(chunk, cast(Sequence[QuarantineRows], items))
        case RestoreRow():
            return restore_many(chunk, cast(Sequence[RestoreRow], items))


def _one(chunk: OpenChunk, item: RowItem) -> str | None:
    match item:
        case UpsertRow():
            return upsert(chunk, item)
        case QuarantineRows():
            return move_aside(chunk, item)
        case RestoreRow():
            restore(chunk, item)
            return None


_WRITING = Way(many=_many, one=_one)
