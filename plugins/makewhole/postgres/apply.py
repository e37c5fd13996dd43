"""One chunk at a PostgreSQL target: the rows and the receipt in one transaction, refusals recorded, nothing guessed."""

from collections.abc import Mapping, Sequence

import psycopg2
from psycopg2 import errors as pg_errors

from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import TablePoint
from makewhole.postgres.chunk import OpenChunk
from makewhole.postgres.connect import Session, describe
from makewhole.postgres.quarantine import QuarantineRows, move_aside
from makewhole.postgres.receipts import ChunkId, ReceiptRow, begin_chunk, put_receipt
from makewhole.postgres.tables import describe_table
from makewhole.postgres.upsert import UpsertRow, upsert

Item = UpsertRow | QuarantineRows


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
    lock = "lock_table" if any(isinstance(item, UpsertRow) for item in items) else "keep_table"
    table = describe_table(connection, point)
    OpenChunk(session=connection, table=table, point=point, id=chunk).run(lock)
    return OpenChunk(session=connection, table=describe_table(connection, point), point=point, id=chunk)


def _apply(chunk: OpenChunk, items: Sequence[Item]) -> Mapping[int, str]:
    reasons = {item.seq: _attempt(chunk, item) for item in items}
    return {seq: reason for seq, reason in reasons.items() if reason is not None}


def _attempt(chunk: OpenChunk, item: Item) -> str | None:
    """Run one item in a savepoint. What the data cannot do is a refusal; what the server cannot do is raised."""
    with chunk.session.cursor() as cursor:
        cursor.execute("savepoint item")
        try:
            reason = upsert(chunk, item) if isinstance(item, UpsertRow) else move_aside(chunk, item)
        except (psycopg2.DataError, psycopg2.IntegrityError, pg_errors.RaiseException) as error:
            reason = f"unfit: the table does not take it: {describe(error)}"
        except RefusedError as error:
            reason = str(error)
        cursor.execute("release savepoint item" if reason is None else "rollback to savepoint item")
    return reason
