"""List the prepared transactions that hold locks on a table, by PostgreSQL's catalogue: nothing is written for that."""

from makewhole.sql import PgConnection, records, statements_of
from makewhole.tables.in_doubt import TransactionInDoubt

_run = statements_of("in_doubt")
_OF_FILES = {"is_file": False, "is_unreadable": False, "keys": None}
"""Fields that files have, as a prepared transaction has them."""


def transactions_in_doubt(session: PgConnection, table: str) -> tuple[TransactionInDoubt, ...]:
    """Return the prepared transactions that hold locks on a table (its name quoted, as `regclass` reads it), the oldest
    first. They are read from the server's memory as it is now, whatever the snapshot of the session's transaction."""
    rows = _run(session, "transactions_in_doubt", table=table)
    return tuple(records(TransactionInDoubt, rows, **_OF_FILES))


def writers_in_doubt(session: PgConnection, table: str) -> tuple[TransactionInDoubt, ...]:
    """Return those of them that wrote to the table."""
    return tuple(item for item in transactions_in_doubt(session, table) if item.is_writing)
