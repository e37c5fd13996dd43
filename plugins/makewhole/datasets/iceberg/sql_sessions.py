"""Have no session of a catalogue in PostgreSQL hold its locks, or wait for a lock or a server, for ever."""

from collections.abc import Mapping
from typing import Any

from pyiceberg.catalog import URI, Catalog
from sqlalchemy import Connection, event, make_url
from sqlalchemy.exc import DBAPIError

from makewhole.postgres_session import connection_defaults

_OF_TRANSACTIONS = {
    # A commit waits for another one, but not for ever.
    "lock_timeout": "15s",
    # A runner that is stopped in the middle of a commit must not hold the table for ever.
    "idle_in_transaction_session_timeout": "60s",
}

_LOCK_NOT_AVAILABLE = "55P03"


def patient_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return a catalogue's properties, with the limits of its connections where it is in PostgreSQL."""
    uri = properties.get(URI, "")
    if not uri.startswith("postgresql"):
        return dict(properties)
    url = make_url(uri)
    limits = {name: str(value) for name, value in connection_defaults(url.query).items()}
    return {**properties, URI: url.update_query_dict(limits).render_as_string(hide_password=False)}


def limit_transactions(catalog: Catalog) -> Catalog:
    """Return a catalogue whose transactions in PostgreSQL are limited, each by itself: a session may be shared by a
    pool of connections."""
    engine: Any = getattr(catalog, "engine", None)
    if engine is not None and engine.dialect.name == "postgresql":
        event.listen(engine, "begin", _limit)
    return catalog


def _limit(connection: Connection) -> None:
    limits = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _OF_TRANSACTIONS.items())
    connection.exec_driver_sql(f"select {limits}")


def is_lock_in_vain(error: Exception) -> bool:
    """Return whether a lock was not free in time."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "pgcode", None) == _LOCK_NOT_AVAILABLE
