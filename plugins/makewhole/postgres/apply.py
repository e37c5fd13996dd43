"""One chunk at a PostgreSQL target: the rows and the receipt in one transaction, refusals recorded, nothing guessed."""

from collections.abc import Callable, Mapping, Sequence

import psycopg2
from psycopg2 import errors as pg_errors

from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import TablePoint
from makewhole.postgres.connect import Session, describe
from makewhole.postgres.quarantine import QuarantineRows, move_aside
from makewhole.postgres.receipts import ChunkId, ReceiptRow, begin_chunk, put_receipt
from makewhole.postgres.tables import Table, describe_table, statement
from makewhole.postgres.upsert import UpsertRow, upsert

Item = UpsertRow | QuarantineRows


def apply_chunk(connection: Session, point: TablePoint, chunk: ChunkId, items: Sequence[Item]) -> ReceiptRow:
    """Apply the items in order and leave the receipt; a chunk that has one is left as it is.

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
        table = describe_table(connection, point)
        if any(isinstance(item, UpsertRow) for item in items):
            with connection.cursor() as cursor:
                cursor.execute(statement("lock_table", table=table.identifier))
        refused = _apply(connection, table, point, items)
        return put_receipt(connection, chunk, len(items) - len(refused), refused)


def _apply(connection: Session, table: Table, point: TablePoint, items: Sequence[Item]) -> Mapping[int, str]:
    refused = {}
    for item in items:
        if isinstance(item, UpsertRow):
            reason = _attempt(connection, lambda item=item: upsert(connection, table, point, item))  # type: ignore[misc]
        else:
            reason = _attempt(connection, lambda item=item: move_aside(connection, table, point, item))  # type: ignore[misc]
        if reason is not None:
            refused[item.seq] = reason
    return refused


def _attempt(connection: Session, work: Callable[[], str | None]) -> str | None:
    """Run one item in a savepoint. What the data cannot do is a refusal; what the server cannot do is raised."""
    with connection.cursor() as cursor:
        cursor.execute("savepoint item")
        try:
            reason = work()
        except (psycopg2.DataError, psycopg2.IntegrityError, pg_errors.RaiseException) as error:
            reason = f"unfit: the table does not take it: {describe(error)}"
        except RefusedError as error:
            reason = str(error)
        cursor.execute("release savepoint item" if reason is None else "rollback to savepoint item")
    return reason
