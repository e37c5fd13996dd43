"""Find out what a table is, whatever the connection, the schema or the point is called that names it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from psycopg2 import errors as pg_errors

from makewhole.model.points import TablePoint
from makewhole.postgres.read.expressions import regclass_text
from makewhole.sql import PgConnection, load_queries


@dataclass(frozen=True, kw_only=True)
class ServerIdentity:
    """Identify a database by the number and the timeline of its server's data, when the server was started,
    whether it follows another one (a standby has the rows of its primary), and the number of the database in it.

    `data` None: the server does not say it.
    """

    data: str | None
    started: str
    is_standby: bool
    database: int


@dataclass(frozen=True, kw_only=True)
class TableIdentity:
    """A table of a database, by its number in the catalogue."""

    server: ServerIdentity
    table: int


def read_identity(session: PgConnection, server: ServerIdentity, point: TablePoint) -> TableIdentity:
    """Return what the table of a point is; the table exists."""
    with session.cursor() as cursor:
        cursor.execute(load_queries("target")["identity_of_table"], {"table": regclass_text(point)})
        [(table,)] = cursor.fetchall()
    return TableIdentity(server=server, table=table)


def read_server(session: PgConnection) -> ServerIdentity:
    """Return what the database of a session is."""
    queries = load_queries("target")
    with session.cursor() as cursor:
        cursor.execute("savepoint identity")
        try:
            cursor.execute(queries["identity_of_data"])
            [(data,)] = cursor.fetchall()
        except (pg_errors.InsufficientPrivilege, pg_errors.UndefinedFunction, pg_errors.FeatureNotSupported):
            data = None
        cursor.execute("rollback to savepoint identity")
        cursor.execute(queries["identity_of_server"])
        [(started, is_standby, database)] = cursor.fetchall()
    return ServerIdentity(data=data, started=started, is_standby=is_standby, database=database)


def identity_texts(tables: Mapping[str, TableIdentity]) -> dict[str, str]:
    """Return a text for each table (by point) that two points have in common if they are one table.

    Servers whose data are a copy of one another's have one number: those that are started beside each other, and follow
    none, differ by their starts.
    """
    primaries = {(one.server.data, one.server.started) for one in tables.values() if not one.server.is_standby}
    copies = {data for data, number in Counter(data for data, _ in primaries).items() if number > 1 or data is None}
    return {name: _text(one, copies) for name, one in tables.items()}


def _text(one: TableIdentity, copies: set[str | None]) -> str:
    server = one.server
    beside = f"@{server.started}" if server.data in copies and not server.is_standby else ""
    return f"postgresql:{server.data or ''}{beside}/{server.database}/{one.table}"
