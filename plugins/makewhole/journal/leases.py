"""Acquire, renew and release leases: one runner at a time per resource, with an epoch that fences earlier runners."""

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
    """The lease of a runner on a resource. It expires by the journal's clock."""

    resource: str
    holder: str
    epoch: int
    seconds: float


@contextmanager
def transaction(dsn: str, *, idle_seconds: float = 5.0) -> Iterator[PgConnection]:
    """Run one transaction at the journal on a connection of its own.

    A process that is stopped in the middle of it cannot hold it open: after `idle_seconds` without a statement the
    server ends it, and whoever waits for its locks goes on.

    Raises:
        TransientError: the journal is away, or ended this session.
    """
    with JournalSession(dsn) as kept, kept.transaction(idle_seconds=idle_seconds) as journal:
        yield journal


class JournalSession(ClosingContext):
    """One connection to the journal for many short transactions, opened when it is first needed. A context manager.

    Between transactions it holds nothing, so that it may stay open as long as a runner works.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._journal: PgConnection | None = None

    def close(self) -> None:
        """End the connection. Safe to call twice."""
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()

    @contextmanager
    def transaction(self, *, idle_seconds: float = 5.0) -> Iterator[PgConnection]:
        """Run one transaction, as the function `transaction`. A connection that broke while idle is opened anew.

        Raises:
            TransientError: the journal is away, or ended this session.
        """
        try:
            journal = self._begin(idle_seconds)
            with journal:
                yield journal
        except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
            self.close()
            raise TransientError("the session with the journal's PostgreSQL broke; try again") from error

    def _begin(self, idle_seconds: float) -> PgConnection:
        """Begin a transaction, on a new connection where there is none or it broke."""
        if self._journal is not None:
            try:
                return _limit_idle(self._journal, idle_seconds)
            except (psycopg2.OperationalError, psycopg2.InterfaceError):
                self.close()
        self._journal = open_connection(self._dsn)
        return _limit_idle(self._journal, idle_seconds)


def _limit_idle(journal: PgConnection, idle_seconds: float) -> PgConnection:
    with journal.cursor() as cursor:
        cursor.execute(load_queries("lease")["limit_idle"], {"milliseconds": int(idle_seconds * 1000)})
    return journal


def acquire(journal: PgConnection, resource: str, holder: str, seconds: float) -> Lease:
    """Take the lease. Under the same `holder` it is taken over at once: the epoch fences the old runner.

    Raises:
        TransientError: somebody else holds it; the message says who and until when.
    """
    parameters = {"resource": resource, "holder": holder, "seconds": seconds}
    with journal.cursor() as cursor:
        cursor.execute(load_queries("lease")["acquire_lease"], parameters)
        row = cursor.fetchone()
        if row is not None:
            return Lease(resource=resource, holder=holder, epoch=row[0], seconds=seconds)
        cursor.execute(load_queries("lease")["lease_of"], parameters)
        other = cursor.fetchone()
    who = f"{other[0]} until {other[2]:%H:%M:%S} UTC" if other else "somebody else"
    raise TransientError(f"{resource} is being worked on by {who}; wait for it to end, or try again after that")


def renew(journal: PgConnection, lease: Lease) -> None:
    """Extend the lease; its row stays locked until the transaction ends, so what is written with it is fenced.

    Raises:
        LeaseLostError: another runner took over.
    """
    with journal.cursor() as cursor:
        cursor.execute(load_queries("lease")["renew_lease"], _parameters(lease))
        if cursor.fetchone() is None:
            raise LeaseLostError(f"{lease.resource}: another runner took over from {lease.holder}; this one stops")


def release(journal: PgConnection, lease: Lease) -> None:
    """Free the lease for the next runner at once. Harmless when the lease is lost already."""
    with journal.cursor() as cursor:
        cursor.execute(load_queries("lease")["release_lease"], _parameters(lease))


def _parameters(lease: Lease) -> dict[str, object]:
    return {"resource": lease.resource, "epoch": lease.epoch, "seconds": lease.seconds}
