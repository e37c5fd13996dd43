"""Freezes a plan: payloads fetched, written, hashed; plan and actions committed to the journal at once, once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.freezing.earlier_plans import name_successor, overtake, refuse_written
from makewhole.compensation.freezing.fetch import Fetcher
from makewhole.compensation.freezing.sources import PayloadSource, Sources
from makewhole.compensation.freezing.write_plan import PlanFrame, put_frozen, put_refused
from makewhole.compensation.planning.draft import PlanDraft, Refusal, draft_plan, keys_to_reverse, over_limits
from makewhole.journal import leases, plans
from makewhole.journal.reversals import reversals_of
from makewhole.model.connection import Connection
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import Action, Plan
from makewhole.model.verdict import Finding
from makewhole.model.window import Window
from makewhole.sql import PgConnection

_FETCH_SECONDS_MOST = 900.0


@dataclass(frozen=True, kw_only=True)
class FreezeRequest:
    """What to plan for. `window_keys`: the distinct keys that were judged, for the limit on the share."""

    pipeline: Pipeline
    window: Window
    findings: Sequence[Finding]
    window_keys: int


@dataclass(frozen=True, kw_only=True)
class FreezeSources:
    """Where things are: `storage` is the root (a path or fsspec URI), `connections` by id."""

    storage: str
    records: PayloadSource
    connections: Mapping[str, Connection]


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """`plan` is None when there is nothing to do. `refusals` are those of this call; they are also in the findings."""

    plan: Plan | None
    actions: tuple[Action, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def freeze(journal_dsn: str, request: FreezeRequest, sources: FreezeSources) -> Frozen:
    """The plan of a window revision: the one that is frozen already, or a new one.

    A plan over its limits is frozen in state `refused`, without payloads. One that needs nobody's approval says so in
    the journal. Findings that no action can answer are marked `refused` with the reason, in the same transaction.
    Plans of earlier revisions of the window end, and what they or others wrote since the window was judged is left
    alone.

    Raises:
        TransientError: a plan of an earlier revision is running, or a database or the storage is away; nothing was
            frozen.
    """
    window = request.window
    with leases.session(journal_dsn, idle_seconds=_FETCH_SECONDS_MOST) as journal:
        stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
        if stored is not None:
            actions = tuple(item.action for item in plans.actions_of(journal, stored.plan.id))
            return Frozen(plan=stored.plan, actions=actions)
        overtake(journal_dsn, journal, window, targets_of(request.pipeline, sources.connections))
        findings, written = refuse_written(journal, window, request.findings)
        frozen = _freeze_findings(journal, replace(request, findings=findings), sources)
        frozen = replace(frozen, refusals=(*written, *frozen.refusals))
        if frozen.plan is not None:
            name_successor(journal, window, frozen.plan)
        refused = [(refusal.hop, refusal.key_hash, refusal.reason) for refusal in frozen.refusals]
        plans.refuse_findings(journal, (window.pipeline, window.number, window.revision), refused)
        return frozen


def _freeze_findings(journal: PgConnection, request: FreezeRequest, sources: FreezeSources) -> Frozen:
    window, to_reverse = request.window, keys_to_reverse(request.pipeline, request.findings)
    past = reversals_of(journal, request.pipeline, window.number, to_reverse)
    draft = draft_plan(request.pipeline, request.findings, window_keys=request.window_keys, past=past)
    frame = PlanFrame(window=window, storage=sources.storage, limits=request.pipeline.limits)
    if draft.refused_as_a_whole:
        return _refused(journal, frame, draft)
    with Sources(request.pipeline, sources.records, sources.connections) as read:
        items, refusals = Fetcher(request.window, read, past).fetch(draft.steps)
    refusals = [*draft.refusals, *refusals]
    if not items:
        return Frozen(plan=None, refusals=tuple(refusals))
    over = over_limits(request.pipeline.limits, actions=len(items), window_keys=request.window_keys)
    if over is not None:  # of the rows that are reversed, only reading them tells how many there are
        return _refused(journal, frame, replace(draft, refused_as_a_whole=over, refusals=tuple(refusals)))
    needs_approval = len(items) > request.pipeline.approval.above_actions
    fetched = ((step.action, payload) for step, payload in items)
    plan, actions = put_frozen(journal, frame, fetched, needs_approval=needs_approval)
    return Frozen(plan=plan, actions=actions, refusals=tuple(refusals))


def _refused(journal: PgConnection, frame: PlanFrame, draft: PlanDraft) -> Frozen:
    actions = tuple(step.action for step in draft.steps)
    plan = put_refused(journal, frame, actions, draft.refused_as_a_whole or "")
    return Frozen(plan=plan, actions=actions, refusals=draft.refusals)
