"""List the prepared transactions that hold locks on a table, by PostgreSQL's catalogue: nothing is written for that."""

from makewhole.sql import PgConnection, records, statements_of
from makewhole.tables.in_doubt import TransactionInDoubt

_run = statements_of("in_doubt")


def transactions_in_doubt(session: PgConnection, table: str) -> tuple[TransactionInDoubt, ...]:
    """Return the prepared transactions that hold locks on a table (its name quoted, as `regclass` reads it), the oldest
    first. They are read from the server's memory as it is now, whatever the snapshot of the session's transaction."""
    return tuple(records(TransactionInDoubt, _run(session, "transactions_in_doubt", table=table)))


def writers_in_doubt(session: PgConnection, table: str) -> tuple[TransactionInDoubt, ...]:
    """Return those of them that wrote to the table."""
    return tuple(item for item in transactions_in_doubt(session, table) if item.is_writing)
