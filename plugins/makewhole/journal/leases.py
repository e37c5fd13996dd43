"""Leases: one runner at a time per resource, and an epoch that fences whoever was there before."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg2

from makewhole.journal.database import open_connection
from makewhole.model.closing import ClosingContext
from makewhole.model.errors import LeaseLostError, TransientError
from makewhole.sql import PgConnection, load_queries


@dataclass(frozen=True, kw_only=True)
class Lease:
    """What a runner holds. The journal's clock decides when it expires."""

    resource: str
    holder: str
    epoch: int
    seconds: float


@contextmanager
def transaction(dsn: str, *, idle_seconds: float = 5.0) -> Iterator[PgConnection]:
    """One transaction at the journal that cannot be held open by a process that is stopped in the middle of it: after
    `idle_seconds` without a statement the server ends it, and whoever waits for its locks goes on.

    Raises:
        TransientError: the journal is away, or ended this session.
    """
    with JournalSession(dsn) as kept, kept.transaction(idle_seconds=idle_seconds) as connection:
        yield connection


class JournalSession(ClosingContext):
    """One connection to the journal for many short transactions, opened when it is first needed. A context manager.

    Between transactions it holds nothing, so that it may stay open as long as a runner works.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: PgConnection | None = None

    def close(self) -> None:
        """End the connection. Safe to call twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def transaction(self, *, idle_seconds: float = 5.0) -> Iterator[PgConnection]:
        """As `session`. A connection that broke while nothing was done with it is made anew.

        Raises:
            TransientError: the journal is away, or ended this session.
        """
        try:
            connection = self._begun(idle_seconds)
            with connection:
                yield connection
        except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
            self.close()
            raise TransientError("the session with the journal's PostgreSQL broke; try again") from error

    def _begun(self, idle_seconds: float) -> PgConnection:
        """The connection, in a new transaction."""
        if self._connection is not None:
            try:
                return _limit_idle(self._connection, idle_seconds)
            except (psycopg2.OperationalError, psycopg2.InterfaceError):
                self.close()
        self._connection = open_connection(self._dsn)
        return _limit_idle(self._connection, idle_seconds)


def _limit_idle(connection: PgConnection, idle_seconds: float) -> PgConnection:
    with connection.cursor() as cursor:
        cursor.execute(load_queries("lease")["limit_idle"], {"milliseconds": int(idle_seconds * 1000)})
    return connection


def acquire(connection: PgConnection, resource: str, holder: str, seconds: float) -> Lease:
    """Take the lease. Under the same `holder` it is taken over at once: the old runner is fenced by the epoch.

    Raises:
        TransientError: somebody else holds it; the message says who and until when.
    """
    parameters = {"resource": resource, "holder": holder, "seconds": seconds}
    with connection.cursor() as cursor:
        cursor.execute(load_queries("lease")["acquire_lease"], parameters)
        row = cursor.fetchone()
        if row is not None:
            return Lease(resource=resource, holder=holder, epoch=row[0], seconds=seconds)
        cursor.execute(load_queries("lease")["lease_of"], parameters)
        other = cursor.fetchone()
    who = f"{other[0]} until {other[2]:%H:%M:%S} UTC" if other else "somebody else"
    raise TransientError(f"{resource} is being worked on by {who}; wait for it to end, or try again after that")


def renew(connection: PgConnection, lease: Lease) -> None:
    """Hold on to the lease; its row stays locked until the transaction ends, so what is written with it is fenced.

    Raises:
        LeaseLostError: another runner took over.
    """
    with connection.cursor() as cursor:
        cursor.execute(load_queries("lease")["renew_lease"], _parameters(lease))
        if cursor.fetchone() is None:
            raise LeaseLostError(f"{lease.resource}: another runner took over from {lease.holder}; this one stops")


def release(connection: PgConnection, lease: Lease) -> None:
    """Let the next runner in at once. Harmless when the lease is lost already."""
    with connection.cursor() as cursor:
        cursor.execute(load_queries("lease")["release_lease"], _parameters(lease))


def _parameters(lease: Lease) -> dict[str, object]:
    return {"resource": lease.resource, "epoch": lease.epoch, "seconds": lease.seconds}
