"""Keep databases in the memory of this process, behind a server on loopback that other processes ask."""

import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from threading import Lock, Thread
from typing import Any, Concatenate, ParamSpec, TypeVar

from makewhole.model.closing import ClosingContext
from makewhole.tables.identities import ServerIdentity
from tests.memory.rows import Database

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")
_WAITING_MOST = 64


class MemoryServer(ClosingContext):
    """Runs requests on databases, one at a time. A context manager.

    A request works on a copy of its database, which takes the database's place when it is done: what a request that
    raises has done is not there.
    """

    def __init__(self) -> None:
        self._authkey, self._number = uuid.uuid4().hex, uuid.uuid4().hex
        self._started = datetime.now(UTC).isoformat()
        self._databases: dict[str, Database] = {}
        self._lock, self._is_closed = Lock(), False
        self._listener = Listener(("127.0.0.1", 0), backlog=_WAITING_MOST, authkey=self._authkey.encode())
        self._accepting = Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def _address(self) -> tuple[str, int]:
        """Where the server listens; the system chose the port."""
        host, port = self._listener.address[:2]
        return str(host), int(port)

    def fields(self, database: str) -> dict[str, Any]:
        """Return the fields of the Airflow connection to a database."""
        host, port = self._address
        return {"conn_type": "memory", "host": host, "port": port, "password": self._authkey, "schema": database}

    def described(self, database: str) -> str:
        """Return the Airflow connection to a database, as JSON."""
        return json.dumps(self.fields(database))

    def run(
        self,
        database: str,
        request: Callable[Concatenate[Database, Parameters], Answer],
        *parameters: Parameters.args,
        **named: Parameters.kwargs,
    ) -> Answer:
        """Run a request on a database, which is made by the first one."""
        with self._lock:
            current = self._databases.setdefault(database, Database(identity=self._identity(len(self._databases))))
            copy = deepcopy(current)
            answer = request(copy, *parameters, **named)
            self._databases[database] = copy
            return answer

    def close(self) -> None:
        """Answer no more."""
        if self._is_closed:
            return
        self._is_closed = True
        with suppress(OSError, EOFError):  # what accepts waits for a client
            Client(self._address, authkey=self._authkey.encode()).close()
        self._accepting.join()
        self._listener.close()

    def _identity(self, database: int) -> ServerIdentity:
        return ServerIdentity(
            system="memory", data=self._number, started=self._started, is_standby=False, database=database
        )

    def _accept(self) -> None:
        while not self._is_closed:
            with suppress(OSError, EOFError, AuthenticationError):  # of a client that went away, or lacks the key
                line = self._listener.accept()
                Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: "Connection[Any, Any]") -> None:
        with line, suppress(OSError, EOFError):
            database, request, parameters, named = line.recv()
            try:
                answer = (True, self.run(database, request, *parameters, **named))
            except Exception as error:  # whoever asked raises it
                answer = (False, error)
            line.send(answer)
