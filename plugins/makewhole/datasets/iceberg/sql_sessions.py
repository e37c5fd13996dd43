"""Have no session of a catalogue in PostgreSQL hold its locks, or wait for a lock or a server, for ever."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyiceberg.catalog import URI, Catalog
from sqlalchemy import Connection, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError

from makewhole.model.errors import ConfigurationError
from makewhole.postgres_session import DsnPlace, connection_defaults, refusal

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


def limit_transactions(catalog: Catalog, connection_id: str) -> Catalog:
    """Return a catalogue whose transactions in PostgreSQL are limited, each by itself: a session may be shared by a
    pool of connections. Sessions that its server refuses are mistakes of the connection."""
    engine: Any = getattr(catalog, "engine", None)
    if engine is not None and engine.dialect.name == "postgresql":
        event.listen(engine, "begin", _limit)
    if engine is not None and engine.dialect.driver == "psycopg2":
        dsn = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        place = DsnPlace(file="connections", path=connection_id, silent="")
        event.listen(engine, "handle_error", partial(_refused, dsn, place))
    return catalog


def _refused(dsn: str, place: DsnPlace, context: ExceptionContext) -> ConfigurationError | None:
    """Return the error to raise in the place of one of a session that could not be opened; None: that one."""
    is_of_opening = context.connection is None and not context.is_pre_ping
    return refusal(dsn, place, context.original_exception) if is_of_opening else None


def _limit(connection: Connection) -> None:
    limits = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _OF_TRANSACTIONS.items())
    connection.exec_driver_sql(f"select {limits}")


def is_lock_in_vain(error: Exception) -> bool:
    """Return whether a lock was not free in time."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "pgcode", None) == _LOCK_NOT_AVAILABLE
