"""Plans the undoing of a plan: every row that it wrote, changed or moved aside goes back, the last one first.

What a plan did is read from its effects, in the databases where it did it, never from what it was meant to do. An undo
is a plan like any other: frozen, hashed, approved by a person, done exactly once. Records in topics stay: a log takes
nothing back.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from makewhole.compensation.chunks import Item
from makewhole.compensation.frozen import PlanFrame, put_frozen
from makewhole.compensation.payloads import Payload
from makewhole.compensation.plan import place_of
from makewhole.compensation.targets import Target, require_same_places
from makewhole.journal import leases, plans, windows
from makewhole.journal.actions import actions_in, unchanged_actions
from makewhole.journal.plans import StoredPlan
from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Pipeline, Remedy, TablePoint, TopicPoint
from makewhole.model.plan import Action, Plan, PlanState
from makewhole.postgres.connect import connect
from makewhole.postgres.effects import Effect, effects
from makewhole.postgres.receipts import ensure_schema

_READ_SECONDS_MOST = 900.0


@dataclass(frozen=True, kw_only=True)
class Undo:
    """A frozen undo. `plan` is None when there is no row to put back; `stays` says what cannot be undone, and why."""

    plan: Plan | None
    stays: tuple[str, ...]


def freeze_undo(
    journal_dsn: str, plan_id: str, pipeline: Pipeline, targets: Mapping[str, Target], storage: str
) -> Undo:
    """The plan that undoes a plan: the one that waits or runs already, or a new one, which waits for a person.

    Raises:
        RefusedError: the plan wrote nothing, is at work, undoes another one, was changed in the journal, or its effects
            are not known.
        TransientError: a database or the storage is away; nothing was frozen.
    """
    with leases.session(journal_dsn, idle_seconds=_READ_SECONDS_MOST) as journal:
        stored = plans.get_plan(journal, plan_id, is_locked=True)
        _require_undoable(stored, pipeline)
        planned = unchanged_actions(journal, stored.plan, stored.payload_sha256)
        require_same_places(planned, targets)
        actions = actions_in(planned)
        stays = _what_stays(plan_id, actions, targets)
        known = plans.undo_of(journal, plan_id)
        if known is not None:
            return Undo(plan=known.plan, stays=stays)
        items = list(_items(plan_id, actions, targets))
        if not items:
            return Undo(plan=None, stays=stays)
        window = windows.load(journal, pipeline.name, stored.plan.window, stored.plan.revision)
        frame = PlanFrame(window=window, storage=storage, limits=pipeline.limits, undoes=plan_id)
        plan, _ = put_frozen(journal, frame, items, needs_approval=True)
        return Undo(plan=plan, stays=stays)


def _require_undoable(stored: StoredPlan, pipeline: Pipeline) -> None:
    plan = stored.plan
    if plan.pipeline != pipeline.name:
        raise RefusedError(f"plan {plan.id} is one of {plan.pipeline}, not of {pipeline.name}")
    if plan.undoes is not None:
        raise RefusedError(f"plan {plan.id} undoes plan {plan.undoes}; run the window again to repair it anew")
    if plan.state is PlanState.RUNNING:
        raise RefusedError(f"plan {plan.id} is at work; stop it first, then undo what it did")
    if stored.began_at is None:
        raise RefusedError(f"plan {plan.id} is {plan.state.value} and wrote nothing; there is nothing to undo")


def _items(plan_id: str, actions: Sequence[Action], targets: Mapping[str, Target]) -> Iterator[Item]:
    """What it takes to undo each effect, the latest first."""
    by_seq = {action.seq: action for action in actions}
    with ExitStack() as stack:
        for name in dict.fromkeys(action.target for action in actions):
            target = targets[name]
            if not isinstance(target.point, TablePoint) or not isinstance(target.connection, PostgresConnection):
                continue
            session = stack.enter_context(connect(target.connection))
            ensure_schema(session)
            with session:
                done = effects(session, plan_id, name)
            yield from (_item(by_seq[effect.seq], effect, target) for effect in done)


def _item(action: Action, effect: Effect, target: Target) -> Item:
    before = {"place": place_of(target.point), "undoes": effect.seq, "kind": effect.kind.value}
    undoing = replace(action, remedy=Remedy.RESTORE, before=before)
    return undoing, Payload(key=action.key.encode(), extra={"effect": effect.fields})


def _what_stays(plan_id: str, actions: Sequence[Action], targets: Mapping[str, Target]) -> tuple[str, ...]:
    """What went to topics, by topic."""
    written = Counter(action.target for action in actions if isinstance(targets[action.target].point, TopicPoint))
    return tuple(
        f"{count} records that plan {plan_id} may have written to {name} stay: a log takes nothing back. Where their "
        "effect has to go, `reverse` sends a compensating event"
        for name, count in sorted(written.items())
    )
