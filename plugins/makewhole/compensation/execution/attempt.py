"""One attempt at a plan: its lease, what it finds done at the targets, and what it tells the journal of it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from makewhole.compensation.execution.content import PlanContent
from makewhole.compensation.execution.targets import Done, TargetWriter, require_receipts_kept
from makewhole.journal import leases, plans
from makewhole.journal.leases import JournalSession
from makewhole.journal.plans import StoredPlan
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.plan import PlanState, Receipt
from makewhole.sql import PgConnection


class Attempt:
    """Works under a lease that it takes when it is entered and lets go when it is left. A context manager."""

    def __init__(self, journal: JournalSession, plan_id: str, *, holder: str, lease_seconds: float) -> None:
        self.journal = journal
        self.plan_id = plan_id
        self._holder, self._seconds = holder, lease_seconds

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

    def recover(self, content: PlanContent, target: str, writer: TargetWriter, *, is_done: bool) -> int:
        """Ask the target which chunks happened; the journal follows, and their number is returned.

        Raises:
            CorruptionError: the target forgot what it had done.
        """
        seen = self.chunks_seen(target)
        done = writer.done()
        planned = len(content.chunks[target])
        require_receipts_kept(target, len(done), planned if is_done else max(seen, default=-1) + 1, planned)
        for item in done:
            if item.chunk not in seen:
                self.follow(content, target, item)
        return len(done)

    def chunks_seen(self, target: str) -> Sequence[int]:
        """The chunks at a target whose receipts the journal has."""
        with self.journal.transaction() as journal:
            return [receipt.chunk for receipt in plans.chunks_of(journal, self.plan_id) if receipt.target == target]

    def follow(self, content: PlanContent, target: str, done: Done) -> None:
        """Copy a receipt that was seen at its target."""
        with self.journal.transaction() as journal:
            place = content.place(target, done.chunk)
            refused: Mapping[int, str] = {**done.refused, **plans.refused_actions(journal, place)}
            size = content.chunks[target][done.chunk].size
            actions = size - len(refused) if done.actions is None else done.actions
            receipt = Receipt(plan=self.plan_id, target=target, chunk=done.chunk, actions=actions, place=done.place)
            plans.follow_receipt(journal, receipt, done.refused)


def require_running(journal: PgConnection, plan_id: str) -> StoredPlan:
    """The plan, if it may go on.

    Raises:
        RefusedError: it was stopped.
    """
    stored = plans.get_plan(journal, plan_id)
    if stored.plan.state not in (PlanState.RUNNING, PlanState.DONE):
        raise RefusedError(f"plan {plan_id} was stopped ({stored.plan.reason}); what was written has its receipts")
    return stored
