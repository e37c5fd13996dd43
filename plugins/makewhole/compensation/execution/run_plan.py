"""Run a frozen plan: recover from the receipts, then write the chunks that are left, each exactly once."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from makewhole.compensation.execution.attempt import LEASE_SECONDS, Attempt, this_process
from makewhole.compensation.execution.content import PlanContent, load_checked
from makewhole.compensation.execution.may_run import require_approved
from makewhole.compensation.execution.pace import Pace, PlanProgress, Speed, paused
from makewhole.compensation.execution.prefetch import Prefetch
from makewhole.compensation.execution.records_after import RecordsAfter
from makewhole.compensation.execution.target_progress import TargetProgress
from makewhole.compensation.execution.targets import Target, TargetWriter, targets_of
from makewhole.compensation.execution.writers import log_ends, open_writer
from makewhole.journal import plan_progress, plans
from makewhole.journal.database import JournalSession, connect
from makewhole.journal.deployment.address import journal_dsn
from makewhole.journal.plans import Control, LogEnds, StoredPlan
from makewhole.model.errors import RefusedError
from makewhole.model.plan import PlanState, Receipt
from makewhole.model.refusal import Refusal
from makewhole.window.context import WindowContext

__all__ = ["PlanProgress", "RunOptions", "compensate_window", "run_plan", "run_window_plan"]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run. `records_per_second` None: no limit.

    A runner under the same `holder` takes the lease over at once (the retry of a task); another one waits until it
    expires, `lease_seconds` after the last chunk of the one before. With `leaves_when_paused` a runner ends between two
    chunks when the plan is paused, and keeps no lease.
    """

    records_per_second: int | None = None
    holder: str = field(default_factory=this_process)
    lease_seconds: float = LEASE_SECONDS
    leaves_when_paused: bool = False


def run_plan(
    journal_dsn: str,
    plan_id: str,
    targets: Mapping[str, Target],
    progress: Callable[[PlanProgress], None] | None = None,
    options: RunOptions | None = None,
) -> list[Receipt]:
    """Run what is left of the plan and return all its receipts, by target and chunk.

    May be killed anywhere and called again; called on a plan that is done it writes nothing. Between chunks it obeys
    `execution.control`.

    Raises:
        RefusedError: the plan is not approved, was changed or stopped, or a target is not what it was.
        CorruptionError: the payload file was changed, or a target forgot what it had done.
        LeaseLostError: another runner took over.
        PlanPausedError: it is paused, and the runner leaves then.
        TransientError: a server or the storage is away, or another runner is at work: try again.
    """
    options = options or RunOptions()
    with (
        JournalSession(journal_dsn) as journal,
        Attempt(journal, plan_id, holder=options.holder, lease_seconds=options.lease_seconds) as attempt,
    ):
        # The lease comes first: no other runner changes what is read after that.
        with attempt.leased() as session:
            require_approved(session, plan_id)
        return _PlanRun(attempt, targets, options, progress or (lambda _: None)).run()


def compensate_window(context: WindowContext, progress: Callable[[PlanProgress], None]) -> list[Receipt]:
    """Run what is left of the window's plan.

    Raises:
        PlanPausedError: it is paused.
    """
    with connect() as journal:
        stored = plans.plan_of_window(journal, context.window.pipeline, context.window.number, context.window.revision)
    if stored is None:
        return []
    return run_window_plan(context, stored.plan.id, progress)


def run_window_plan(context: WindowContext, plan_id: str, progress: Callable[[PlanProgress], None]) -> list[Receipt]:
    """Run what is left of a plan of the window: the one that repairs it, or its undo.

    The lease is held in the plan's name: a later try takes it over at once, which fences the one before.

    Raises:
        PlanPausedError: it is paused: no worker is held while a person is waited for.
    """
    _require_not_paused(plan_id)
    return run_plan(
        journal_dsn(),
        plan_id,
        targets_of(context.pipeline, context.connections),
        progress,
        RunOptions(
            records_per_second=context.pipeline.limits.records_per_second,
            holder=f"plan {plan_id}",
            leaves_when_paused=True,
        ),
    )


def _require_not_paused(plan_id: str) -> None:
    """Leave before anything is read when there is nothing to do but to wait. A plan that was not begun is begun first:
    that uses up its approval, which would expire otherwise."""
    with connect() as journal:
        stored = plans.get_plan(journal, plan_id)
    if stored.control is Control.PAUSE and stored.plan.state is PlanState.RUNNING:
        raise paused(stored)


class _PlanRun:
    """One attempt at one plan, from its checks to its end."""

    def __init__(
        self,
        attempt: Attempt,
        targets: Mapping[str, Target],
        options: RunOptions,
        progress: Callable[[PlanProgress], None],
    ) -> None:
        self._attempt, self._targets, self._progress = attempt, targets, progress
        self._pace = Pace(options.records_per_second, leaves_when_paused=options.leaves_when_paused)

    def run(self) -> list[Receipt]:
        with ExitStack() as stack:
            stored, content = load_checked(self._attempt, self._targets)
            stack.callback(content.close)
            log_ends = self._begin(stored, content)
            self._speed = Speed(len(content.actions))

            def at_target(name: str) -> TargetProgress:
                return TargetProgress(
                    attempt=self._attempt,
                    content=content,
                    target=name,
                    log_ends=log_ends.get(name, {}),
                    is_begun=stored.began_at is not None,
                    is_done=stored.plan.state is PlanState.DONE,
                )

            records = stack.enter_context(RecordsAfter(content, self._targets, at_target))
            for name in content.chunks:
                progress = at_target(name)
                self._run_at_target(progress, open_writer(stack, self._targets, progress, records.refusals))
        return self._end()

    def _begin(self, stored: StoredPlan, content: PlanContent) -> LogEnds:
        """Begin the plan, which uses up its approval; return where the targets' logs ended when it first began."""
        ends = stored.log_ends or log_ends({name: self._targets[name] for name in content.chunks})
        with self._attempt.leased() as journal:
            plan = require_approved(journal, self._attempt.plan_id)
            if plan.sha256 != content.plan.sha256:
                raise RefusedError(
                    f"plan {plan.id} was changed in the journal while it was checked; nothing is written"
                )
            if plan.state is not PlanState.DONE:
                plans.begin(journal, plan.id, ends)
        return ends

    def _run_at_target(self, at_target: TargetProgress, writer: TargetWriter) -> None:
        self._attempt.guard()
        chunks = at_target.content.chunks[at_target.target]
        done = at_target.recover(writer)
        self._speed.add_recovered(sum(chunk.size for chunk in chunks[:done]))
        with Prefetch(
            lambda number: writer.prepare(at_target.content.chunk(at_target.target, number)), len(chunks)
        ) as prefetch:
            for part in chunks[done:]:
                self._pace.wait(self._attempt.guard(), self._attempt.guard)
                self._pace.start(part.size)
                chunk = prefetch.take(part.number)
                refused = self._record_refusals(at_target, part.number, chunk.refusals())
                written = chunk.write(refused, self._guard, partial(prefetch.start, part.number + 1))
                at_target.record_receipt(written)
                self._speed.add(part.size)
                self._progress(self._progress_at(at_target.target, part.number + 1, len(chunks)))

    def _record_refusals(
        self, at_target: TargetProgress, number: int, new: Mapping[int, Refusal]
    ) -> Mapping[int, Refusal]:
        """Record refusals under the lease before the chunk is written: every attempt leaves the same actions out."""
        with self._attempt.leased() as journal:
            plan_progress.refuse_actions(journal, self._attempt.plan_id, new)
            return plan_progress.refused_actions(journal, at_target.content.chunk_actions(at_target.target, number))

    def _guard(self) -> None:
        self._attempt.guard()

    def _progress_at(self, name: str, chunks_done: int, chunks: int) -> PlanProgress:
        return PlanProgress(
            plan=self._attempt.plan_id,
            target=name,
            chunks_done=chunks_done,
            chunks=chunks,
            actions_done=self._speed.done,
            actions=self._speed.planned,
            records_per_second=self._speed.records_per_second,
            seconds_left=self._speed.seconds_left,
        )

    def _end(self) -> list[Receipt]:
        with self._attempt.leased() as journal:
            if plans.get_plan(journal, self._attempt.plan_id, is_locked=True).plan.state is PlanState.RUNNING:
                plans.set_state(journal, self._attempt.plan_id, PlanState.DONE)
            return plan_progress.chunks_of(journal, self._attempt.plan_id)
