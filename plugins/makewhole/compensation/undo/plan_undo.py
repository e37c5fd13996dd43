"""Plan the undo of a plan: every row that it wrote, changed or moved aside is put back, the last one first.

What a plan did is read from its effects in the databases, never from its actions. An undo is a plan like any other:
frozen, hashed, approved by a person, run exactly once. Records stay in their topics; on request, events reverse their
effects.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from makewhole.compensation.execution.attempt import Attempt
from makewhole.compensation.execution.supersede import recover_receipts
from makewhole.compensation.execution.targets import Target, require_same_places, targets_of
from makewhole.compensation.freezing.chunks import PlannedPayload
from makewhole.compensation.freezing.freeze import FreezeSources
from makewhole.compensation.freezing.plan_hash import unchanged_actions
from makewhole.compensation.freezing.write_plan import PlanFiles, PlanFrame, put_files
from makewhole.compensation.sources.original_records import WindowRecords
from makewhole.compensation.sources.sources import Sources
from makewhole.compensation.undo.reversals import reverse_records, reversing_hops
from makewhole.journal import plan_progress, plans, windows
from makewhole.journal.actions import actions_in
from makewhole.journal.database import JournalSession, transaction
from makewhole.journal.database import connect as connect_journal
from makewhole.journal.deployment.address import journal_dsn
from makewhole.journal.history.judged import JudgedWindows
from makewhole.journal.history.record_windows import KNOWN_BY, archive_of, find_windows_before
from makewhole.journal.plans import StoredPlan
from makewhole.journal.retention import removals
from makewhole.journal.retention.file_locks import hold_files
from makewhole.journal.written_keys import reversals_of
from makewhole.kinds import tables_of
from makewhole.lake.local_files import BatchFile
from makewhole.model.actions import Action, BeforeRestore, Payload
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import Plan, PlanState
from makewhole.model.points import can_look_up, has_log
from makewhole.model.refusal import Refusal
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.tables.effects import Effect
from makewhole.tables.items import RestoreExtra
from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)
_READ_SECONDS_MOST = 900.0
_LEASE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Undo:
    """A frozen undo. `plan` None: nothing can be put back; `remaining`: sentences on what is not undone, and why."""

    plan: Plan | None
    remaining: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class UndoRequest:
    """A plan to undo. `reverses`: the effects of records that it wrote to topics are reversed by events."""

    plan: str
    pipeline: Pipeline
    reverses: bool = False


def plan_undo(context: WindowContext, plan_id: str, *, reverses: bool) -> Undo:
    """Freeze the undo of a plan of the window; called again, return the undo that waits, runs or is done."""
    with connect_journal() as journal:
        judged = JudgedWindows(journal=journal, pipeline=context.pipeline.name).newest_few(KNOWN_BY)
    records = WindowRecords(context, judged, find=find_windows_before(context.window), archive_of=archive_of)
    request = UndoRequest(plan=plan_id, pipeline=context.pipeline, reverses=reverses)
    sources = FreezeSources(storage=context.storage.root, records=records, connections=context.connections)
    return freeze_undo(journal_dsn(), request, sources)


def freeze_undo(journal_dsn: str, request: UndoRequest, sources: FreezeSources) -> Undo:
    """Return the undo of a plan: the one that waits, runs or is done, or a new one, which waits for approval.

    Raises:
        RefusedError: the plan wrote nothing, is at work, undoes another one, was changed in the journal, or its effects
            are not known; or an undo of the other kind is there.
        TransientError: a runner of the plan is still at work, a key is being erased, or a database or the storage is
            away; nothing was frozen.
    """
    with JournalSession(journal_dsn) as session:
        with session.transaction() as journal:
            stored = plans.get_plan(journal, request.plan)
            require_undoable(stored, request.pipeline)
            removals.require_undoable(journal, request.plan)
        with Attempt(session, request.plan, holder=f"undo of {request.plan}", lease_seconds=_LEASE_SECONDS) as attempt:
            if stored.plan.state is not PlanState.DONE:
                _end_runners(attempt, targets_of(request.pipeline, sources.connections))
            with transaction(journal_dsn, idle_seconds=_READ_SECONDS_MOST) as journal:
                return _freeze(journal, attempt, request, sources)


def _end_runners(attempt: Attempt, targets: Mapping[str, Target]) -> None:
    """Fence the runners of a stopped plan, which may be in the middle of a chunk or continue later.

    They write nothing more, and the journal gets the receipts of what they wrote, as far as the targets know.
    """
    try:
        recover_receipts(attempt, targets)
    except PermanentError as error:
        logger.warning("what plan %s wrote cannot be determined any more: %s", attempt.plan_id, error)


def _freeze(journal: PgConnection, attempt: Attempt, request: UndoRequest, sources: FreezeSources) -> Undo:
    """Freeze the undo in one transaction at the journal, under the lease of the plan that is undone."""
    pipeline = request.pipeline
    hold_files(journal, pipeline.name)
    targets = targets_of(pipeline, sources.connections)
    stored = plans.get_plan(journal, request.plan, is_locked=True)
    require_undoable(stored, pipeline)
    removals.require_undoable(journal, request.plan)
    planned = unchanged_actions(journal, stored.plan, stored.payload_sha256)
    require_same_places(planned, targets)
    remaining = describe_remaining_records(request, _count_by_target(planned))
    known = plans.undo_of(journal, request.plan)
    window = windows.load(journal, pipeline.name, stored.plan.window, stored.plan.revision)
    if known is not None:
        adds_reversals = request.reverses and not _has_reversals(known.plan)
        if not adds_reversals or _has_any(_reverse_written_records(journal, request, sources, window, Counter())):
            require_same_kind(known.plan, request)
        return Undo(plan=known.plan, remaining=remaining)
    refused = Counter[Refusal]()
    items = _restore_items(attempt, planned, targets)
    if request.reverses:
        items = chain(items, _reverse_written_records(journal, request, sources, window, refused))
    with PlanFiles(pipeline.limits, items) as files:
        remaining += tuple(f"{count} of these records are not reversed: {why}" for why, count in refused.items())
        if not len(files.actions):
            return Undo(plan=None, remaining=remaining)
        frame = PlanFrame(window=window, storage=sources.storage, limits=pipeline.limits, undoes=request.plan)
        return Undo(plan=put_files(journal, frame, files, needs_approval=True), remaining=remaining)


def require_undoable(stored: StoredPlan, pipeline: Pipeline) -> None:
    """Refuse a plan that cannot be undone, as far as the journal knows.

    Raises:
        RefusedError: it is of another pipeline, an undo, running, or wrote nothing.
    """
    plan = stored.plan
    if plan.pipeline != pipeline.name:
        raise RefusedError(f"plan {plan.id} is one of {plan.pipeline}, not of {pipeline.name}")
    if plan.undoes is not None:
        raise RefusedError(f"plan {plan.id} undoes plan {plan.undoes}; run the window again to repair it once more")
    if plan.state is PlanState.RUNNING:
        raise RefusedError(f"plan {plan.id} is at work; stop it first, then undo what it did")
    if stored.began_at is None:
        raise RefusedError(f"plan {plan.id} is {plan.state.value} and wrote nothing; there is nothing to undo")


def describe_remaining_records(request: UndoRequest, actions_by_target: Mapping[str, int]) -> tuple[str, ...]:
    """Describe the records that stay in topics, topic by topic, and how their effects could be taken back."""
    sentences = []
    for name, count in sorted(actions_by_target.items()):
        if not has_log(request.pipeline.points[name]):
            continue
        remedy = ""
        if not request.reverses:
            can_reverse = reversing_hops(request.pipeline, name)
            remedy = (
                f". `makewhole plan undo {request.plan} --reverse`, in place of this undo, sends an event for each "
                "that takes its effect back"
                if can_reverse
                else f". Where their effect has to go, give the hop from {name} a `reverse`, or send a compensating "
                "event by hand"
            )
        written = f"{count} records that plan {request.plan} may have written to {name}"
        sentences.append(f"{written} stay: a log takes nothing back{remedy}")
    return tuple(sentences)


def require_same_kind(undo: Plan, request: UndoRequest) -> None:
    """Refuse an existing undo that has reversals where none were requested, or has none where they were.

    Raises:
        RefusedError: the existing undo is of the other kind.
    """
    if _has_reversals(undo) != request.reverses:
        raise RefusedError(
            f"plan {request.plan} has an undo {'with' if _has_reversals(undo) else 'without'} reversals already: plan "
            f"{undo.id}, which is {undo.state.value}. Reject that one first, if it still waits"
        )


def _has_reversals(undo: Plan) -> bool:
    return Remedy.REVERSE.value in undo.counts


def _reverse_written_records(
    journal: PgConnection, request: UndoRequest, sources: FreezeSources, window: Window, refused: Counter[Refusal]
) -> Iterator[PlannedPayload]:
    """Yield the reversals of the records that receipts prove; others may not exist. `refused` counts the records
    without one, by why there is none."""
    past = partial(reversals_of, journal, request.pipeline, window.number)
    written = plan_progress.written_records(journal, request.plan)
    with Sources(request.pipeline, sources.records, sources.connections) as opened:
        yield from reverse_records(window, opened, past, written, refused)


def _count_by_target(planned: pa.Table) -> dict[str, int]:
    counted: Any = pc.value_counts(planned.column("target"))
    return {row["values"]: row["counts"] for row in counted.to_pylist()}


def _has_any(items: Iterator[PlannedPayload]) -> bool:
    return next(items, None) is not None


def _restore_items(attempt: Attempt, planned: pa.Table, targets: Mapping[str, Target]) -> Iterator[PlannedPayload]:
    """Yield an action for each effect to undo, the latest first. The fence keeps the plan from adding effects."""
    with ExitStack() as stack:
        for name in _count_by_target(planned):
            target = targets[name]
            if not can_look_up(target.point):
                continue
            purpose = f"reading what was written to {target.point.table}"
            writer = stack.enter_context(tables_of(target.connection).writer(target.point, purpose))
            done = stack.enter_context(BatchFile[Effect]())
            for some in writer.effects(attempt.plan_id, name, attempt.epoch):
                done.add(some)
            for some in done:
                by_seq = _actions_of(planned, some)
                yield from (_restore_item(by_seq[effect.seq], effect, target) for effect in some)


def _actions_of(planned: pa.Table, some: Sequence[Effect]) -> dict[int, Action]:
    """Return the actions of effects by their number. Those that are near in one are near in the other: actions are
    ordered by their number, and those of a target stand together in it."""
    seqs = {effect.seq for effect in some}
    numbers = planned.column("seq").to_numpy()
    first, last = np.searchsorted(numbers, [min(seqs), max(seqs)])
    near = planned.slice(first, last - first + 1)
    is_wanted: Any = pc.is_in(near.column("seq"), value_set=pa.array(sorted(seqs), pa.int32()))
    return {action.seq: action for action in actions_in(near.filter(is_wanted))}


def _restore_item(action: Action, effect: Effect, target: Target) -> PlannedPayload:
    before = BeforeRestore(place=target.point.written_place, undoes=effect.seq, kind=effect.kind.value)
    return replace(action, before=before), Payload(key=action.key.encode(), extra=RestoreExtra(effect=effect))
