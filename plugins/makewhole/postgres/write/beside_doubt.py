"""Write the items of a chunk beside prepared transactions that hold locks on its table: what one of them may hold is
refused, and not waited for.

Where a unique index keeps a key from having two rows, the write itself shows whether a key is held: it waits for the
transaction that inserted it, or that changed its row. Where none does, nothing shows it, and no new row is written
beside a transaction in doubt that wrote to the table.
"""

from collections.abc import Sequence

from psycopg2 import errors as pg_errors

from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal
from makewhole.postgres.in_doubt import transactions_in_doubt
from makewhole.postgres.table import Table
from makewhole.postgres.write.chunk import TableChunk
from makewhole.postgres.write.halving import Operation, run_alone, run_with_halving
from makewhole.sql import PgConnection
from makewhole.tables.in_doubt import TransactionInDoubt, refusal_by_doubt
from makewhole.tables.items import RowItem

_WAIT = "500ms"
_HELD_MOST = 20
"""Items that are waited for in a chunk; when so many were held, the others are refused without trying."""

InDoubt = Sequence[TransactionInDoubt]


def in_doubt_on(session: PgConnection, table: Table) -> tuple[TransactionInDoubt, ...]:
    """Return the prepared transactions that hold locks on a table, the oldest first."""
    schema, name = (part.replace('"', '""') for part in (table.schema, table.name))
    return transactions_in_doubt(session, f'"{schema}"."{name}"')


def refuse_new_rows(table: Table, point: TablePoint, items: Sequence[RowItem], in_doubt: InDoubt) -> dict[int, Refusal]:
    """Return the refusals of the items that may insert a row, by action number, where no unique index would show that a
    transaction in doubt holds their key."""
    writers = [transaction for transaction in in_doubt if transaction.is_writing]
    if not writers or table.has_one_row_per(point):
        return {}
    refusal = refusal_by_doubt("the key", writers)
    return {item.seq: refusal for item in items if item.may_insert}


def run_beside_doubt(
    chunk: TableChunk, items: Sequence[RowItem], operation: Operation, in_doubt: InDoubt
) -> dict[int, Refusal]:
    """Run the operation on all items in order. Returns the refusals by action number.

    All are tried at once; where a lock is not free, one by one, each without the wait of an ordinary chunk.
    """
    if not in_doubt:
        return run_with_halving(chunk, items, operation)
    with chunk.session.cursor() as cursor:
        cursor.execute("select set_config('lock_timeout', %s, true)", (_WAIT,))
        cursor.execute("savepoint beside_doubt")
        try:
            refused = run_with_halving(chunk, items, operation)
        except pg_errors.LockNotAvailable:
            cursor.execute("rollback to savepoint beside_doubt; release savepoint beside_doubt")
            return _one_by_one(chunk, items, operation, in_doubt)
        cursor.execute("release savepoint beside_doubt")
    return refused


def _one_by_one(
    chunk: TableChunk, items: Sequence[RowItem], operation: Operation, in_doubt: InDoubt
) -> dict[int, Refusal]:
    refused, held = dict[int, Refusal](), refusal_by_doubt("the key, or its row,", in_doubt)
    left = _HELD_MOST
    for item in items:
        refusal = _run_or_refuse(chunk, item, operation, held) if left else held
        if refusal is not None:
            refused[item.seq] = refusal
        left -= refusal is held and left > 0
    return refused


def _run_or_refuse(chunk: TableChunk, item: RowItem, operation: Operation, held: Refusal) -> Refusal | None:
    with chunk.session.cursor() as cursor:
        cursor.execute("savepoint beside_doubt")
        try:
            refusal = run_alone(chunk, item, operation)
        except pg_errors.LockNotAvailable:
            cursor.execute("rollback to savepoint beside_doubt; release savepoint beside_doubt")
            return held
        cursor.execute("release savepoint beside_doubt")
    return refusal
