"""One session at a people's database, set up so that a row has one text form and no row is hidden."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import psycopg2
from psycopg2 import errors as pg_errors

from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import PermanentError, TransientError
from makewhole.postgres.server_errors import describe as describe
from makewhole.postgres.server_errors import is_transient, remedy
from makewhole.postgres_session import DsnPlace, open_session, parameters_of
from makewhole.sql import PgConnection

_SESSION = {
    # A row's JSON text is compared between sessions: what its rendering depends on is pinned.
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    # Rows that a policy hides would be taken for lost: let the server raise instead.
    "row_security": "off",
    # A chunk waits for a busy table, but not for ever.
    "lock_timeout": "15s",
    # A runner that is stopped in mid-transaction must not hold its locks for ever.
    "idle_in_transaction_session_timeout": "60s",
}

_OF_THE_SERVER = ("host", "hostaddr", "port", "dbname", "user", "options", "service")


def server_parameters(target: PostgresConnection) -> dict[str, str]:
    """Return the parameters of a connection by which two of them lead to the same rows; none of them is a secret."""
    given = parameters_of(target.dsn, _place(target))
    return {name: given[name] for name in _OF_THE_SERVER if name in given}


def _place(target: PostgresConnection) -> DsnPlace:
    return DsnPlace(
        file="connections",
        path=target.id,
        silent=f"the PostgreSQL of connection {target.id} does not answer; check that it runs and that the connection "
        "names it",
    )


@contextmanager
def connect(target: PostgresConnection, purpose: str = "") -> Iterator[PgConnection]:
    """A connection that commits when the block ends, rolls back when it raises, and is closed.

    `with connection:` inside the block makes a transaction of its own. `set local …` overrides the session's
    settings (no lock waits over 15 s, no idle transaction over 60 s, no statement over the connection's limit).
    `purpose` is what the session is for, with its tables: an error names it ("reading shop.orders"). An error of
    another session that is open beside this one goes on to where that one was opened.

    Raises:
        ConfigurationError: the connection cannot be used, or the server refuses the session.
        TransientError: the server cannot be reached, went away, or a lock was not free in time.
        PermanentError: the server refuses a statement; its words are left out, they can quote a row.
    """
    connection = open_session(target.dsn, _place(target), application_name="makewhole", client_encoding="UTF8")
    try:
        _settle(connection, target)
        yield connection
        connection.commit()
    except psycopg2.Error as error:
        if error.cursor is not None and error.cursor.connection is not connection:
            raise
        doing = f", while {purpose}" if purpose else ""
        if is_transient(error, is_closed=bool(connection.closed)):
            raise TransientError(_transient_message(target, error, doing)) from error
        # Not chained: the server's message and detail can quote keys and values.
        raise PermanentError(
            f"connection {target.id}: PostgreSQL refused a statement: {describe(error)}{doing}. "
            f"{remedy(error, None if connection.closed else connection.info.user)}"
        ) from None
    finally:
        connection.close()


def _transient_message(target: PostgresConnection, error: psycopg2.Error, doing: str) -> str:
    if isinstance(error, pg_errors.LockNotAvailable):
        return f"connection {target.id}: a lock was not free in time{doing}; another session is writing, try again"
    if isinstance(error, pg_errors.QueryCanceled):
        return (
            f"connection {target.id}: the server ended a statement ({describe(error)}){doing}; where it took longer "
            "than its time limit, give the pipeline file a longer one (`time_limits`), otherwise try again"
        )
    return f"connection {target.id}: the session with PostgreSQL broke ({describe(error)}){doing}; try again"


def _settle(connection: PgConnection, target: PostgresConnection) -> None:
    """Session settings, in one round trip, outside of a transaction: a rollback would take them back."""
    settings = dict(_SESSION)
    if "statement_timeout" not in parameters_of(target.dsn, _place(target)).get("options", ""):
        settings["statement_timeout"] = f"{target.statement_seconds * 1000:.0f}"
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(
            f"select {', '.join(['set_config(%s, %s, false)'] * len(settings))}",
            [*chain.from_iterable(settings.items())],
        )
    connection.autocommit = False
