"""Find kinds of tables that are installed beside makewhole: those of the entry points `makewhole.kinds`.

The name of an entry point is the `conn_type` of connections, its object the kind (`makewhole.kinds.TableKind`).
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Protocol

from makewhole.model.connection import Connection

GROUP = "makewhole.kinds"


class ReadConnection(Protocol):
    """Make a connection of what Airflow knows of it: `host`, `port`, `login`, `password`, `schema`, and its `extra`."""

    def __call__(self, connection_id: str, fields: Mapping[str, object], extra: Mapping[str, object]) -> Connection:
        """Return the connection.

        Raises:
            ValueError: a field is missing or cannot be understood; its text says which, and never a value.
        """
        ...


class InstalledKind(Protocol):
    """A kind as connections are read for it."""

    @property
    def read_connection(self) -> ReadConnection: ...


@cache
def installed_kinds() -> Mapping[str, Any]:
    """Return the installed kinds by the `conn_type` of their connections."""
    return {kind.name: kind.load() for kind in entry_points(group=GROUP)}


def installed_kind(conn_type: str) -> InstalledKind | None:
    """Return the kind that reads connections of a type; None: none is installed."""
    kind: InstalledKind | None = installed_kinds().get(conn_type)
    return kind
