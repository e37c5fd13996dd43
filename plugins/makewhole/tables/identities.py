"""Describe what a table is, whatever the connection, the schema or the point is called that names it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

PointPair = tuple[str, str]
"""The names of two points."""


@dataclass(frozen=True, kw_only=True)
class ServerIdentity:
    """Identify a database by the number and the timeline of its server's data, when the server was started,
    whether it follows another one (a standby has the rows of its primary), and the number of the database in it.

    `system` names what numbers them so: servers of two systems have nothing in common. `data` None: the server does not
    say it.
    """

    system: str
    data: str | None
    started: str
    is_standby: bool
    database: int

    @property
    def origin(self) -> "ServerOrigin":
        """The system and the data, which a standby has in common with its primary."""
        return self.system, self.data


ServerOrigin = tuple[str, str | None]
"""A system, and the number and the timeline of a server's data."""


@dataclass(frozen=True, kw_only=True)
class TableIdentity:
    """A table of a database, by its number in the catalogue. `rows_in`: the numbers of the tables that its rows lie in,
    its own among them; `is_row_by_row`: each is one row there, which those of a view that joins or sums up are not."""

    server: ServerIdentity
    table: int
    rows_in: frozenset[int] = frozenset()
    is_row_by_row: bool = True


def identity_texts(tables: Mapping[str, TableIdentity]) -> dict[str, str]:
    """Return a text for each table (by point) that two points have in common if they are one table.

    Servers whose data are a copy of one another's have one number: those that are started beside each other, and follow
    none, differ by their starts.
    """
    servers = [table.server for table in tables.values()]
    primaries = {(server.origin, server.started) for server in servers if not server.is_standby}
    numbers = Counter(origin for origin, _ in primaries)
    copies = {origin for origin, number in numbers.items() if number > 1 or origin[1] is None}
    return {name: _text(table, copies) for name, table in tables.items()}


def sharing_points(tables: Mapping[str, TableIdentity], keys: Mapping[str, Sequence[str]]) -> tuple[PointPair, ...]:
    """Return each two points whose tables are two and have rows in common: a table and its partition, child or view.

    `keys`: their key columns. Of a view whose rows are made of several it is known by the key alone that they are the
    other's.
    """
    return tuple(
        (name, other)
        for (name, first), (other, second) in combinations(tables.items(), 2)
        if first.server.origin == second.server.origin
        and first.server.database == second.server.database
        and first.table != second.table
        and first.rows_in & second.rows_in
        and ((first.is_row_by_row and second.is_row_by_row) or keys[name] == keys[other])
    )


def _text(table: TableIdentity, copies: set[ServerOrigin]) -> str:
    server = table.server
    beside = f"@{server.started}" if server.origin in copies and not server.is_standby else ""
    return f"{server.system}:{server.data or ''}{beside}/{server.database}/{table.table}"
