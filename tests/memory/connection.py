"""Connect to a server of tables in memory, and have it run requests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from typing import Concatenate, ParamSpec, TypeVar

from makewhole.model.connection import Connection
from makewhole.model.errors import TransientError
from tests.memory.rows import Database

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")
_NEEDED = ("host", "port", "password", "schema")


@dataclass(frozen=True, kw_only=True)
class MemoryConnection(Connection):
    """A connection to a database of a server of tables in memory."""

    host: str
    port: int
    database: str
    authkey: str = field(repr=False)

    def ask(
        self,
        request: Callable[Concatenate[Database, Parameters], Answer],
        *parameters: Parameters.args,
        **named: Parameters.kwargs,
    ) -> Answer:
        """Have the server run a request on the database; it names a function that both sides can import.

        Raises:
            TransientError: the server does not answer.
            Exception: what the request raised.
        """
        try:
            with Client((self.host, self.port), authkey=self.authkey.encode()) as line:
                line.send((self.database, request, parameters, named))
                is_done, answer = line.recv()
        except (OSError, EOFError, AuthenticationError) as error:
            raise TransientError(f"the server of connection {self.id} does not answer") from error
        if not is_done:
            raise answer
        ready: Answer = answer
        return ready


def read_connection(connection_id: str, fields: Mapping[str, object], extra: Mapping[str, object]) -> MemoryConnection:
    """Return the connection that an Airflow connection describes: `schema` is the database, `password` what the server
    asks for.

    Raises:
        ValueError: a field is missing, or the port is no number.
    """
    missing = [name for name in _NEEDED if not fields.get(name)]
    if missing or extra:
        raise ValueError(f"has no {' and no '.join(missing)}" if missing else "has an extra, which is not used")
    if not str(fields["port"]).isdecimal():
        raise ValueError("has a port that is no number")
    return MemoryConnection(
        id=connection_id,
        host=str(fields["host"]),
        port=int(str(fields["port"])),
        database=str(fields["schema"]),
        authkey=str(fields["password"]),
    )


def server_of(connection: MemoryConnection) -> object:
    """Return what two connections have in common that lead to the same tables."""
    return [connection.host, connection.port, connection.database]
