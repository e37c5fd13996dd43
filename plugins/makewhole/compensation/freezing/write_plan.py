"""Write a plan: its payload file, then plan and actions in the journal, with the approval where none is needed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, count

from makewhole.compensation.freezing.chunks import PlannedPayload, actions_per_chunk, number_actions, row_groups
from makewhole.compensation.freezing.payload_file import write_payloads
from makewhole.compensation.freezing.plan_hash import plan_digest
from makewhole.file_system import path_below
from makewhole.journal import plans
from makewhole.model.pipeline import Limits
from makewhole.model.plan import Action, Plan, PlanState, count_remedies
from makewhole.model.window import Window
from makewhole.sql import PgConnection


@dataclass(frozen=True, kw_only=True)
class PlanFrame:
    """The window, storage and limits of a plan. `storage`: the root for its payload file (a path or a URI);
    `undoes`: the plan that it takes back."""

    window: Window
    storage: str
    limits: Limits
    undoes: str | None = None


def put_frozen(
    journal: PgConnection, frame: PlanFrame, items: Iterable[PlannedPayload], *, needs_approval: bool
) -> tuple[Plan, tuple[Action, ...]]:
    """Number, chunk, hash and store actions with their payloads, in this order, in the caller's transaction."""
    chunked = number_actions(items, actions_per_chunk(frame.limits))
    actions = tuple(action for action, _ in chunked)
    prefix = path_below(frame.storage, f"{frame.window.prefix}/plan/payloads")
    uri, sha256 = write_payloads(prefix, row_groups(chunked))
    state = PlanState.AWAITING_APPROVAL if needs_approval else PlanState.FROZEN
    plan = replace(_plan(journal, frame, actions, sha256), payload_uri=uri, state=state)
    plans.put_plan(journal, plans.StoredPlan(plan=plan, payload_sha256=sha256), actions)
    if not needs_approval:
        plans.put_approval(journal, plan, decision="not_needed", by=None, at=datetime.now(UTC), expires=None, seen={})
    return plan, actions


def put_refused(journal: PgConnection, frame: PlanFrame, actions: Sequence[Action], reason: str) -> Plan:
    """Store a plan that never runs, without payloads, with the reason."""
    plan = replace(_plan(journal, frame, actions, None), reason=reason)
    plans.put_plan(journal, plans.StoredPlan(plan=plan, payload_sha256=None), actions)
    return plan


def _plan(journal: PgConnection, frame: PlanFrame, actions: Sequence[Action], payload_sha256: str | None) -> Plan:
    """Make a plan with an unused id: the same content, planned again, is another plan."""
    window = frame.window
    sha256 = plan_digest(window.pipeline, window.number, payload_sha256, actions)
    content = f"{window.pipeline}-{window.number}-{sha256[:12]}"
    names = chain([content, f"{content}-r{window.revision}"], (f"{content}-r{window.revision}-{n}" for n in count(2)))
    return Plan(
        id=next(name for name in names if plans.find_plan(journal, name) is None),
        pipeline=window.pipeline,
        window=window.number,
        revision=window.revision,
        sha256=sha256,
        payload_uri=None,
        counts=count_remedies(actions),
        state=PlanState.REFUSED,
        undoes=frame.undoes,
    )
