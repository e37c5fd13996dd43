"""List the prepared transactions that hold locks on a table, by PostgreSQL's catalogue: nothing is written for that.

A standby shows no prepared transactions, nor the locks that they hold. It does know of each transaction of its primary
whether it has ended, and a prepared one has not.
"""

import time

from makewhole.model.connection import PostgresConnection
from makewhole.postgres.connect import connect
from makewhole.sql import PgConnection, records, statements_of
from makewhole.tables.in_doubt import TransactionInDoubt

_run = statements_of("in_doubt")
_OF_FILES = {"is_file": False, "is_unreadable": False, "keys": None}
"""Fields that files have, as a prepared transaction has them."""
_ENDING_SECONDS, _LOOK_AGAIN_SECONDS = 2.0, 0.1


def transactions_in_doubt(session: PgConnection, table: str) -> tuple[TransactionInDoubt, ...]:
    """Return the prepared transactions that hold locks on a table (its name quoted, as `regclass` reads it), the oldest
    first. They are read from the server's memory as it is now, whatever the snapshot of the session's transaction."""
    rows = _run(session, "transactions_in_doubt", table=table)
    return tuple(records(TransactionInDoubt, rows, **_OF_FILES))


def writers_in_doubt(
    session: PgConnection, connection: PostgresConnection, table: str
) -> tuple[TransactionInDoubt, ...]:
    """Return those of them that wrote to the table; at a standby, the one that has not ended at its primary, if any.
    `connection`: of the session."""
    (standby,) = _run(session, "hides_prepared")
    if standby.may_hide:
        return in_progress_at_primary(connection)
    return tuple(item for item in transactions_in_doubt(session, table) if item.is_writing)


def in_progress_at_primary(connection: PostgresConnection) -> tuple[TransactionInDoubt, ...]:
    """Return the oldest transaction that is in progress at the primary of a standby, unless all that are now end within
    two seconds: others are for the settle time, as they are at a primary."""
    with connect(connection, "looking for transactions that have not ended at its primary") as session:
        deadline, following = time.monotonic() + _ENDING_SECONDS, None
        while True:
            (now,) = _run(session, "in_progress")
            session.rollback()  # the next question is asked of another snapshot
            following = now.following if following is None else following
            if now.oldest >= following:
                return ()
            if time.monotonic() >= deadline:
                return (TransactionInDoubt(gid=str(now.oldest), owner="?", prepared=None),)
            time.sleep(_LOOK_AGAIN_SECONDS)
