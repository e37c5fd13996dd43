"""Hold the lease of a plan for one attempt at it, and guard every chunk by it."""

import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from makewhole.journal import leases, plans
from makewhole.journal.leases import JournalSession
from makewhole.journal.plans import StoredPlan
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.plan import PlanState
from makewhole.sql import PgConnection

LEASE_SECONDS = 30.0


def this_process() -> str:
    """Return a name that no other process has."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


class Attempt:
    """Works under a lease that it takes when it is entered and lets go when it is left. A context manager."""

    def __init__(
        self,
        journal: JournalSession,
        plan_id: str,
        *,
        holder: str | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        """`holder` None: this process alone."""
        self.journal = journal
        self.plan_id = plan_id
        self._holder, self._seconds = holder or this_process(), lease_seconds

    def __enter__(self) -> "Attempt":
        with self.journal.transaction() as journal:
            self._lease = leases.acquire(journal, f"plan {self.plan_id}", self._holder, self._seconds)
        return self

    def __exit__(self, *error: object) -> None:
        """Let the next runner in. When the journal is away the lease expires by itself."""
        with suppress(TransientError), self.journal.transaction() as journal:
            leases.release(journal, self._lease)

    @property
    def epoch(self) -> int:
        """Of the lease: what fences whoever held it before."""
        return self._lease.epoch

    @contextmanager
    def leased(self, *, idle_seconds: float = 5.0) -> Iterator[PgConnection]:
        """A transaction at the journal in which nobody else can take the lease.

        Raises:
            LeaseLostError: another runner took over.
        """
        with self.journal.transaction(idle_seconds=idle_seconds) as journal:
            leases.renew(journal, self._lease)
            yield journal

    def renew(self) -> None:
        """Hold on to the lease.

        Raises:
            LeaseLostError: another runner took over.
        """
        with self.leased():
            pass

    def guard(self) -> StoredPlan:
        """Before every chunk: is the lease still ours, is the plan still to run?

        Raises:
            LeaseLostError: another runner took over.
            RefusedError: the plan was stopped.
        """
        with self.leased() as journal:
            return require_running(journal, self.plan_id)


def require_running(journal: PgConnection, plan_id: str) -> StoredPlan:
    """The plan, if it may go on.

    Raises:
        RefusedError: it was stopped.
    """
    stored = plans.get_plan(journal, plan_id)
    if stored.plan.state not in (PlanState.RUNNING, PlanState.DONE):
        raise RefusedError(f"plan {plan_id} was stopped ({stored.plan.reason}); what was written has its receipts")
    return stored
