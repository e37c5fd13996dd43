"""Find where the journal is: by its URI in the environment, or by a connection of Airflow's."""

import os

from makewhole.config.connection_text import find_connection, variable_of
from makewhole.model.connection import PostgresConnection
from makewhole.postgres_session import DsnPlace

VARIABLE = "MAKEWHOLE_JOURNAL_DSN"
CONNECTION_VARIABLE = "MAKEWHOLE_JOURNAL_CONN_ID"
_CONNECTION = "makewhole_journal"


def journal_connection() -> str:
    """Return the id of the connection that counts where `MAKEWHOLE_JOURNAL_DSN` is not set."""
    return os.environ.get(CONNECTION_VARIABLE, "").strip() or _CONNECTION


def is_configured() -> bool:
    """Return whether the environment says where the journal is, well or not.

    Raises:
        ConfigurationError: the file of connections cannot be read.
    """
    return bool(os.environ.get(VARIABLE) or find_connection(journal_connection()).described)


def journal_place() -> DsnPlace:
    """Return what says where the journal is."""
    name = journal_connection()
    text = None if os.environ.get(VARIABLE) else find_connection(name)
    path = VARIABLE if text is None or not text.described else text.path
    return DsnPlace(
        file="environment" if text is None else text.file,
        path=path,
        silent="the journal's PostgreSQL does not answer; check that it runs (`makewhole status`) "
        f"and that {path} names it",
    )


def journal_dsn() -> str:
    """Return the journal's PostgreSQL URI: the variable `MAKEWHOLE_JOURNAL_DSN`, or else the connection
    `makewhole_journal`, for which `MAKEWHOLE_JOURNAL_CONN_ID` may have another name.

    Raises:
        ConfigurationError: neither is there, or the connection is none to a PostgreSQL.
    """
    if dsn := os.environ.get(VARIABLE):
        return dsn
    name = journal_connection()
    if not is_configured():
        raise journal_place().problem(
            f"is not set, and there is no connection {name}",
            "Set it to the PostgreSQL URI of the journal, or add the connection to Airflow "
            f"(`airflow connections add {name} --conn-type postgres …`; here: {variable_of(name)}), or start the local "
            "stack with `makewhole up`",
        )
    from makewhole.config.connections import from_environment

    connection = from_environment(name)
    if not isinstance(connection, PostgresConnection):
        raise journal_place().problem("is no connection to a PostgreSQL", "Give it the type `postgres`")
    return connection.dsn
