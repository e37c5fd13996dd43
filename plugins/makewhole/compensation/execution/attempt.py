"""Hold the lease of a plan for one attempt at it, and check it before every chunk."""

import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from makewhole.journal import leases, plans
from makewhole.journal.database import JournalSession
from makewhole.journal.plans import StoredPlan
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.plan import PlanState
from makewhole.sql import PgConnection

LEASE_SECONDS = 30.0


def this_process() -> str:
    """Return a name that no other process has."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


class Attempt:
    """One attempt at a plan. A context manager: it acquires the lease on entry and releases it on exit."""

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
        """Release the lease. When the journal does not answer, the lease expires by itself."""
        with suppress(TransientError), self.journal.transaction() as journal:
            leases.release(journal, self._lease)

    @property
    def epoch(self) -> int:
        """Epoch of the lease: it fences earlier holders."""
        return self._lease.epoch

    @contextmanager
    def leased(self, *, idle_seconds: float = 5.0) -> Iterator[PgConnection]:
        """Open a transaction at the journal in which no other runner can take the lease.

        Raises:
            LeaseLostError: another runner took over.
        """
        with self.journal.transaction(idle_seconds=idle_seconds) as journal:
            leases.renew(journal, self._lease)
            yield journal

    def renew(self) -> None:
        """Renew the lease.

        Raises:
            LeaseLostError: another runner took over.
        """
        with self.leased():
            pass

    def guard(self) -> StoredPlan:
        """Renew the lease and return the plan, before every chunk.

        Raises:
            LeaseLostError: another runner took over.
            RefusedError: the plan was stopped.
        """
        with self.leased() as journal:
            return require_running(journal, self.plan_id)


def require_running(journal: PgConnection, plan_id: str) -> StoredPlan:
    """Return the plan if it is running or done.

    Raises:
        RefusedError: it was stopped.
    """
    stored = plans.get_plan(journal, plan_id)
    if stored.plan.state not in (PlanState.RUNNING, PlanState.DONE):
        raise RefusedError(f"plan {plan_id} was stopped ({stored.plan.reason}); what was written has its receipts")
    return stored
