"""Make and drop the databases of tests, all on one connection: to make one for each of them takes as long."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
from psycopg2 import sql

from makewhole.stack.postgres_server import DsnOf

_PATIENCE_SECONDS, _POLL_SECONDS = 1.0, 0.002


class Databases:
    """A session at a server, and the databases that it makes there."""

    def __init__(self, dsn_of: DsnOf) -> None:
        self._dsn_of = dsn_of
        self._session = psycopg2.connect(dsn_of("postgres"))
        self._session.autocommit = True

    @contextmanager
    def of_a_test(self, kind: str, *, template: str = "template1") -> Iterator[str]:
        """Make a database, as a copy of another one; yield its URI, and drop it with all that is connected to it."""
        name = f"{kind}_{uuid.uuid4().hex}"
        self._do("create database {} template {} strategy file_copy", name, template)
        yield self._dsn_of(name)
        self._end_sessions(name)
        self._do("drop database if exists {} with (force)", name)

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def _end_sessions(self, name: str) -> None:
        """End what is connected to it: `force` does so, too, and looks again after a tenth of a second only."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        with self._session.cursor() as cursor:
            while time.monotonic() < deadline:
                cursor.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
                if not cursor.rowcount:
                    return
                time.sleep(_POLL_SECONDS)

    def _do(self, statement: str, *names: str) -> None:
        with self._session.cursor() as cursor:
            cursor.execute(sql.SQL(statement).format(*(sql.Identifier(name) for name in names)))
