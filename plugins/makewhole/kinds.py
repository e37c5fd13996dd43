"""Know the kinds of systems that keep the tables of points: what reads and writes those that a connection reaches.

A new kind is a class of connections and one of their tables, registered here.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from makewhole.model.closing import ClosingContext
from makewhole.model.connection import Connection, PostgresConnection
from makewhole.model.errors import RefusedError
from makewhole.model.points import TablePoint
from makewhole.postgres.connect import server_parameters
from makewhole.postgres.postgres_tables import PostgresTables
from makewhole.tables.reading import OpenTable, TableSession
from makewhole.tables.tables import Tables


@dataclass(frozen=True, kw_only=True)
class TableKind:
    """A kind of table. `server` returns, of a connection, what two of them have in common that lead to the same tables;
    none of it is a secret."""

    tables: Callable[[Any], Tables]
    server: Callable[[Any], object]


_KINDS: dict[type[Connection], TableKind] = {
    PostgresConnection: TableKind(tables=PostgresTables, server=server_parameters)
}


def register(connections: type[Connection], kind: TableKind) -> None:
    """Let a kind read and write the tables that connections of a class reach."""
    _KINDS[connections] = kind


def keeps_tables(connection: Connection) -> bool:
    """Return whether a connection leads to a system that keeps tables."""
    return type(connection) in _KINDS


def tables_of(connection: Connection) -> Tables:
    """Return the tables that a connection reaches.

    Raises:
        RefusedError: it leads to a system that keeps none.
    """
    return _kind_of(connection).tables(connection)


def server_of(connection: Connection) -> object:
    """Return what two connections have in common that lead to the same tables, as JSON types. Raises as `tables_of`."""
    return _kind_of(connection).server(connection)


def _kind_of(connection: Connection) -> TableKind:
    if not keeps_tables(connection):
        raise RefusedError(f"connection {connection.id} leads to no system that keeps tables; name another one")
    return _KINDS[type(connection)]


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
