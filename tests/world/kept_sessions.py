"""Keep sessions with PostgreSQL for the next one who asks, as a pooler between a service and its server does.

A window asks for some twenty sessions, each a process of the server that knows no catalogue yet: a seventh of what the
windows of a test cost. What a session has set, locked or prepared is discarded before it is given again.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import connection

Asked = tuple[Any, ...]
"""The connection string and the other parameters of a session; sessions with the same ones are alike."""


class KeptSession(connection):
    """A session that goes back to its pool when it is closed."""

    pool: "SessionPool | None" = None
    asked: Asked = ()

    def close(self) -> None:
        """Discard what the session has, and give it back; end it where that fails."""
        if self.pool is not None and not self.closed:
            with suppress(psycopg2.Error):
                self.rollback()
                self.set_session(isolation_level="default", readonly="default", deferrable="default", autocommit=True)
                with self.cursor() as cursor:
                    cursor.execute("discard all")
                self.autocommit = False
                self.pool.give_back(self)
                return
        super().close()


class SessionPool:
    """Hold idle sessions by their parameters."""

    def __init__(self) -> None:
        self._connect = psycopg2.connect
        self._idle: defaultdict[Asked, list[KeptSession]] = defaultdict(list)
        self._is_open = True

    def connect(self, dsn: str | None = None, **asked: Any) -> Any:
        """Stand for `psycopg2.connect`."""
        if dsn is None or "connection_factory" in asked:
            return self._connect(dsn, **asked)
        key = (dsn, *sorted(asked.items()))
        while self._idle[key]:
            session = self._idle[key].pop()
            if not session.closed:
                return session
        made: KeptSession = self._connect(dsn, connection_factory=KeptSession, **asked)
        made.pool, made.asked = self, key
        return made

    def give_back(self, session: KeptSession) -> None:
        """Keep a session for its next use; end it when the pool has ended."""
        if self._is_open:
            self._idle[session.asked].append(session)
        else:
            session.pool = None
            session.close()

    def end(self) -> None:
        """End all sessions; those in use end when they are closed."""
        self._is_open = False
        for sessions in self._idle.values():
            for session in sessions:
                session.pool = None
                session.close()
        self._idle.clear()


@contextmanager
def kept_sessions() -> Iterator[None]:
    """Keep the sessions of this process meanwhile."""
    pool = SessionPool()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg2, "connect", pool.connect)
        yield
    pool.end()
