"""Runs a frozen plan: recovers from the receipts first, then chunk by chunk, each exactly once."""

import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from makewhole.compensation.approve import require_approved
from makewhole.compensation.payloads import PayloadFile, read_payloads, verify_payloads
from makewhole.compensation.targets import (
    Chunk,
    Done,
    Target,
    TargetWriter,
    require_receipts_kept,
    require_same_places,
)
from makewhole.compensation.writers import open_writer
from makewhole.journal import leases, plans
from makewhole.model.errors import CorruptionError, RefusedError, TransientError
from makewhole.model.plan import Action, Plan, PlanState, Receipt


def _this_process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """`records_per_second` None: as fast as it goes. A runner under the same `holder` takes the lease over at once (the
    retry of a task); another one waits until it expires, `lease_seconds` after the last chunk of the one before."""

    records_per_second: int | None = None
    holder: str = field(default_factory=_this_process)
    lease_seconds: float = 30.0


@dataclass(frozen=True, kw_only=True)
class Progress:
    """After each chunk: `chunks_done` of `chunks` at this target."""

    plan: str
    target: str
    chunks_done: int
    chunks: int


def compensate(
    journal_dsn: str,
    plan_id: str,
    targets: Mapping[str, Target],
    progress: Callable[[Progress], None] | None = None,
    options: RunOptions | None = None,
) -> list[Receipt]:
    """Do what is left of the plan and return every receipt of it, by target and chunk.

    May be killed anywhere and called again; called on a plan that is done it writes nothing.

    Raises:
        RefusedError: the plan is not approved, was changed or stopped, or a target is not what it was.
        CorruptionError: the payload file was changed, or a target forgot what it had done.
        LeaseLostError: another runner took over.
        TransientError: something is away, or another runner is at work: try again.
    """
    options = options or RunOptions()
    run = _Run(journal_dsn, plan_id, options)
    run.begin()
    try:
        return run.work(targets, progress or (lambda _: None))
    finally:
        run.end()


class _Run:
    """One attempt at one plan."""

    def __init__(self, journal_dsn: str, plan_id: str, options: RunOptions) -> None:
        self._dsn, self._plan_id, self._options = journal_dsn, plan_id, options
        self._pace = _Pace(options.records_per_second)

    def begin(self) -> None:
        """Take the lease first, then read the plan: what is read after that, nobody else changes."""
        with leases.session(self._dsn) as journal:
            resource = f"plan {self._plan_id}"
            self._lease = leases.acquire(journal, resource, self._options.holder, self._options.lease_seconds)

    def end(self) -> None:
        """Let the next runner in. When the journal is away the lease expires by itself."""
        with suppress(TransientError), leases.session(self._dsn) as journal:
            leases.release(journal, self._lease)

    def work(self, targets: Mapping[str, Target], progress: Callable[[Progress], None]) -> list[Receipt]:
        plan = self._start(targets)
        with ExitStack() as stack:
            for name, chunks in self._chunks.items():
                writer = open_writer(stack, plan, name, targets[name], self._lease.epoch)
                self._replay(plan, name, chunks, writer, progress)
        with leases.session(self._dsn) as journal:
            leases.renew(journal, self._lease)
            if plans.get_plan(journal, plan.id, is_locked=True).plan.state is PlanState.RUNNING:
                plans.set_state(journal, plan.id, PlanState.DONE)
            return plans.chunks_of(journal, plan.id)

    def _start(self, targets: Mapping[str, Target]) -> Plan:
        """Check everything that was frozen, then use the approval up."""
        with leases.session(self._dsn) as journal:
            require_approved(journal, self._plan_id)
            stored = plans.get_plan(journal, self._plan_id)
            actions = [item.action for item in plans.actions_of(journal, self._plan_id)]
        require_same_places(actions, targets)
        self._file = _verified(stored, actions)
        self._chunks = split(actions, self._file.chunk_actions)
        with leases.session(self._dsn) as journal:
            leases.renew(journal, self._lease)
            plan = require_approved(journal, self._plan_id)
            self._is_done = plan.state is PlanState.DONE
            if not self._is_done:
                plans.set_state(journal, plan.id, PlanState.RUNNING)
            return plan

    def _replay(
        self,
        plan: Plan,
        name: str,
        chunks: Sequence[tuple[Action, ...]],
        writer: TargetWriter,
        progress: Callable[[Progress], None],
    ) -> None:
        self._guard()
        done = writer.done()
        self._recover(plan, name, chunks, done)
        for number in range(len(done), len(chunks)):
            self._pace.wait(len(chunks[number]), self._guard)
            self._guard()
            chunk = self._decided(plan, self._chunk(number, chunks[number]), writer)
            self._follow(plan, name, chunk.actions, writer.write(chunk, self._guard))
            progress(Progress(plan=plan.id, target=name, chunks_done=number + 1, chunks=len(chunks)))

    def _recover(self, plan: Plan, name: str, chunks: Sequence[tuple[Action, ...]], done: Sequence[Done]) -> None:
        """The journal follows the receipts: those it has not seen are copied."""
        with leases.session(self._dsn) as journal:
            seen = [receipt.chunk for receipt in plans.chunks_of(journal, plan.id) if receipt.target == name]
        known = max(seen, default=-1) + 1
        require_receipts_kept(name, len(done), len(chunks) if self._is_done else known, len(chunks))
        for item in done:
            if item.chunk not in seen:
                self._follow(plan, name, chunks[item.chunk], item)

    def _chunk(self, number: int, actions: tuple[Action, ...]) -> Chunk:
        digests = {action.seq: action.payload_sha256 or "" for action in actions}
        return Chunk(number=number, actions=actions, payloads=read_payloads(self._file, digests))

    def _decided(self, plan: Plan, chunk: Chunk, writer: TargetWriter) -> Chunk:
        """Refusals are written down before the chunk, under the lease: every attempt leaves the same actions out."""
        unfit = writer.unfit(chunk)
        with leases.session(self._dsn) as journal:
            leases.renew(journal, self._lease)
            plans.refuse_actions(journal, plan.id, unfit)
            refused = plans.refused_actions(journal, plan.id, chunk.seqs)
        return Chunk(number=chunk.number, actions=chunk.actions, payloads=chunk.payloads, decided=refused)

    def _follow(self, plan: Plan, name: str, actions: Sequence[Action], done: Done) -> None:
        seqs = [action.seq for action in actions]
        with leases.session(self._dsn) as journal:
            refused = {**done.refused, **plans.refused_actions(journal, plan.id, seqs)}
            count = len(seqs) - len(refused) if done.actions is None else done.actions
            receipt = Receipt(plan=plan.id, target=name, chunk=done.chunk, actions=count, place=done.place)
            plans.follow_receipt(journal, receipt, seqs, refused)

    def _guard(self) -> None:
        """Before every chunk: is the lease still ours, is the plan still to run?"""
        with leases.session(self._dsn) as journal:
            leases.renew(journal, self._lease)
            plan = plans.get_plan(journal, self._plan_id).plan
        if plan.state not in (PlanState.RUNNING, PlanState.DONE):
            raise RefusedError(f"plan {plan.id} was stopped ({plan.reason}); what was written has its receipts")


class _Pace:
    """Spreads chunks over time, outside any transaction."""

    def __init__(self, records_per_second: int | None) -> None:
        self._rate = records_per_second
        self._next = time.monotonic()

    def wait(self, records: int, while_waiting: Callable[[], None]) -> None:
        """Until the next chunk may start; long waits keep the lease alive."""
        while self._rate and (left := self._next - time.monotonic()) > 0:
            time.sleep(min(left, 5.0))
            if left > 5.0:
                while_waiting()
        self._next = max(self._next, time.monotonic()) + (records / self._rate if self._rate else 0.0)


def split(actions: Sequence[Action], chunk_actions: int) -> dict[str, list[tuple[Action, ...]]]:
    """Actions by target in the order of their first action, each target's in chunks: the same for every attempt."""
    by_target: dict[str, list[Action]] = {}
    for action in actions:
        by_target.setdefault(action.target, []).append(action)
    return {
        name: [tuple(mine[start : start + chunk_actions]) for start in range(0, len(mine), chunk_actions)]
        for name, mine in by_target.items()
    }


def _verified(stored: plans.StoredPlan, actions: Sequence[Action]) -> PayloadFile:
    if stored.plan.payload_uri is None or stored.payload_sha256 is None:
        raise CorruptionError(f"plan {stored.plan.id} has no payload file; open a new revision of the window")
    digests = [action.payload_sha256 for action in actions]
    return verify_payloads(stored.plan.payload_uri, stored.payload_sha256, digests)
