"""Know the kinds of systems that keep the tables of points: what reads and writes those that a connection reaches.

A new kind is a class of connections and one of their tables (`makewhole.tables.tables.Tables`), registered by one entry
point (`makewhole.config.other_kinds`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from makewhole.config.clients.catalogues import server_of_catalogue
from makewhole.config.extras import installed_for
from makewhole.config.other_kinds import ReadConnection, installed_kinds
from makewhole.file_stores.open_store import FILE_CONNECTIONS
from makewhole.lazy_import import loaded_at_first_use
from makewhole.model.closing import ClosingContext
from makewhole.model.connection import (
    Connection,
    IcebergConnection,
    KafkaConnection,
    PostgresConnection,
    RegistryConnection,
)
from makewhole.model.errors import RefusedError
from makewhole.model.points import TablePoint
from makewhole.postgres.connect import server_parameters
from makewhole.postgres.postgres_tables import PostgresTables
from makewhole.tables.named.named_tables import NamedTables
from makewhole.tables.reading import OpenTable, TableSession
from makewhole.tables.tables import Tables

with loaded_at_first_use("makewhole.datasets.iceberg.iceberg_tables"):  # its library takes longer than all else here
    from makewhole.datasets.iceberg import iceberg_tables
with loaded_at_first_use("makewhole.datasets.files.file_tables"):
    from makewhole.datasets.files import file_tables


@dataclass(frozen=True, kw_only=True)
class TableKind:
    """A kind of table, with the class of its connections and what reads one. `server` returns, of a connection, what
    two of them have in common that lead to the same tables, as JSON types; none of it is a secret."""

    connections: type[Connection]
    read_connection: ReadConnection
    tables: Callable[[Any], Tables]
    server: Callable[[Any], object]


def tables_of(connection: Connection) -> Tables:
    """Return the tables that a connection reaches.

    Raises:
        RefusedError: it leads to a system that keeps none.
    """
    if isinstance(connection, PostgresConnection):
        return NamedTables(PostgresTables(connection))
    if isinstance(connection, IcebergConnection):
        with installed_for(f"connection {connection.id} to Iceberg tables"):
            return NamedTables(iceberg_tables.IcebergTables(connection))
    if isinstance(connection, FILE_CONNECTIONS):
        return NamedTables(file_tables.FileTables(connection))
    return NamedTables(_installed(connection).tables(connection))


def modules_of(connections: Iterable[Connection]) -> Sequence[str]:
    """Return the modules, of libraries that take long to load, by which the tables are read that connections reach.
    They start no threads: who loads them may be forked."""
    of_kind = (connection for connection in connections if isinstance(connection, IcebergConnection))
    return tuple(dict.fromkeys(module for connection in of_kind for module in _iceberg_modules(connection)))


def _iceberg_modules(connection: IcebergConnection) -> Iterator[str]:
    yield "pyiceberg.io.pyarrow"
    if connection.properties.get("type") == "sql":
        yield "pyiceberg.catalog.sql"
    if connection.properties.get("uri", "").startswith("postgresql"):
        yield "sqlalchemy.dialects.postgresql"


def server_of(connection: Connection) -> object:
    """Return what two connections have in common that lead to the same server, as JSON types.

    Raises:
        RefusedError: it is of no kind that is known here.
    """
    if isinstance(connection, PostgresConnection):
        return server_parameters(connection)
    if isinstance(connection, IcebergConnection):
        return server_of_catalogue(connection)
    if isinstance(connection, FILE_CONNECTIONS):
        return file_tables.server_of_files(connection)
    if isinstance(connection, KafkaConnection):
        return sorted(part.strip() for part in connection.bootstrap.split(","))
    if isinstance(connection, RegistryConnection):
        return connection.url
    return _installed(connection).server(connection)


def _installed(connection: Connection) -> TableKind:
    for kind in installed_kinds().values():
        if kind.connections is type(connection):
            table_kind: TableKind = kind
            return table_kind
    raise RefusedError(f"connection {connection.id} leads to no system that keeps tables; name another one")


class OpenTables(ClosingContext):
    """The tables of points, open for reading, with one session a connection. A context manager.

    `purpose` is what the sessions are for; `{}` in it stands for the first table of each.
    """

    def __init__(self, connections: Mapping[str, Connection], purpose: str) -> None:
        self._connections, self._purpose, self._stack = connections, purpose, ExitStack()
        self._sessions: dict[str, TableSession] = {}
        self._tables: dict[TablePoint, OpenTable] = {}

    def of(self, point: TablePoint) -> OpenTable:
        """Return the table of a point; it is opened once.

        Raises:
            RefusedError: there is no such table, or it lacks a column that the point names.
            TransientError: the system does not answer.
        """
        if point not in self._tables:
            self._tables[point] = self.session(point).open_table(point)
        return self._tables[point]

    def session(self, point: TablePoint) -> TableSession:
        """Return the session at the system of a point.

        Raises:
            TransientError: the system does not answer.
        """
        if point.connection not in self._sessions:
            session = tables_of(self._connections[point.connection]).session(self._purpose.format(point.table))
            self._sessions[point.connection] = self._stack.enter_context(session)
        return self._sessions[point.connection]

    def close(self) -> None:
        """End the sessions."""
        self._stack.close()
