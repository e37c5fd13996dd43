"""Let a process die at a statement, as far as PostgreSQL sees it: its sessions end, and no statement follows.

What SIGKILL leaves is what the server has of the sessions of the dead: all that was committed, and nothing else. So
each point can be tried in one process, in a second, where a process of its own takes several.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import connection, cursor


class KilledError(BaseException):
    """The process is dead: no handler of errors may go on."""


@dataclass(kw_only=True, eq=False)
class Life:
    """What a process does at PostgreSQL: `steps` by name. It dies right before the step of this number (`dies_at`), or
    never."""

    dies_at: int | None = None
    steps: list[str] = field(default_factory=list)
    is_over: bool = False
    _sessions: list["DyingSession"] = field(default_factory=list)

    def step(self, name: str) -> None:
        """Note a step before it is done; end all sessions where it is the last point."""
        if not self.is_over and self.dies_at == len(self.steps):
            self.is_over = True
            for session in self._sessions:
                connection.close(session)
        if self.is_over:
            raise KilledError(name)
        self.steps.append(name)

    def session(self, *arguments: Any, **asked: Any) -> "DyingSession":
        """Stand for `psycopg2.connect`."""
        self.step("connect")
        made: DyingSession = _CONNECT(*arguments, connection_factory=DyingSession, **asked)
        made.life = self
        self._sessions.append(made)
        return made


_CONNECT = psycopg2.connect


class DyingSession(connection):
    """A session of a process that may die; of a dead one nothing reaches the server."""

    life: Life | None = None

    def cursor(self, *arguments: Any, **asked: Any) -> Any:
        base = asked.pop("cursor_factory", None) or cursor
        made = super().cursor(*arguments, cursor_factory=_dying(base), **asked)
        made.life = self.life
        return made

    def commit(self) -> None:
        """Commit; the process can die before it, and when it is done."""
        if self.life is not None:
            self.life.step("commit")
        super().commit()
        if self.life is not None:
            self.life.step("committed")

    def rollback(self) -> None:
        if self.life is None or not self.life.is_over:
            super().rollback()


@cache
def _dying(base: type[Any]) -> type[Any]:
    """Return a class of cursors whose statements are steps."""

    class Dying(base):  # type: ignore[misc]
        life: Life | None = None

        def execute(self, *arguments: Any, **more: Any) -> Any:
            if self.life is not None:
                self.life.step("statement")
            return super().execute(*arguments, **more)

        def copy_expert(self, *arguments: Any, **more: Any) -> Any:
            if self.life is not None:
                self.life.step("copy")
            return super().copy_expert(*arguments, **more)

    return Dying


@contextmanager
def living(dies_at: int | None = None) -> Iterator[Life]:
    """Have all sessions of this process be those of one that dies at a step."""
    life = Life(dies_at=dies_at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg2, "connect", life.session)
        yield life
