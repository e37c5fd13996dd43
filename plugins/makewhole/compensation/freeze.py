"""Freezes a plan: payloads fetched, written, hashed; plan and actions committed to the journal at once, once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from makewhole.compensation.chunks import chunk_actions, numbered, row_groups
from makewhole.compensation.fetch import Fetcher
from makewhole.compensation.overlap import name_successor, overtake, refuse_written
from makewhole.compensation.payloads import write_payloads
from makewhole.compensation.plan import Draft, Refusal, count_remedies, draft_plan, keys_to_reverse, over_limits
from makewhole.compensation.sources import PayloadSource, Sources
from makewhole.compensation.targets import targets_of
from makewhole.journal import leases, plans
from makewhole.journal.reversals import reversals_of
from makewhole.model.connection import Connection
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import Action, Plan, PlanState, plan_digest
from makewhole.model.reversal import Past
from makewhole.model.verdict import Finding
from makewhole.model.window import Window
from makewhole.postgres.connect import Session

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
        overtaken = overtake(journal_dsn, journal, window, targets_of(request.pipeline, sources.connections))
        findings, written = refuse_written(journal, window, request.findings)
        frozen = _freeze_findings(journal, replace(request, findings=findings), sources)
        frozen = replace(frozen, refusals=(*written, *frozen.refusals))
        if frozen.plan is not None:
            name_successor(journal, overtaken, frozen.plan)
        refused = [(refusal.hop, refusal.key_hash, refusal.reason) for refusal in frozen.refusals]
        plans.refuse_findings(journal, (window.pipeline, window.number, window.revision), refused)
        return frozen


def _freeze_findings(journal: Session, request: FreezeRequest, sources: FreezeSources) -> Frozen:
    window, to_reverse = request.window, keys_to_reverse(request.pipeline, request.findings)
    past = reversals_of(journal, window.pipeline, window.number, to_reverse)
    draft = draft_plan(request.pipeline, request.findings, window_keys=request.window_keys, past=past)
    if draft.refused_as_a_whole:
        return _freeze_refused(journal, request, draft)
    return _freeze(journal, request, sources, draft, past)


def _freeze(journal: Session, request: FreezeRequest, sources: FreezeSources, draft: Draft, past: Past) -> Frozen:
    with Sources(request.pipeline, sources.records, sources.connections) as read:
        fetched, refusals = Fetcher(request.window, read, past).fetch(draft.steps)
    refusals = [*draft.refusals, *refusals]
    if not fetched:
        return Frozen(plan=None, refusals=tuple(refusals))
    over = over_limits(request.pipeline.limits, actions=len(fetched), window_keys=request.window_keys)
    if over is not None:  # of the rows that are reversed, only reading them tells how many there are
        return _freeze_refused(journal, request, replace(draft, refused_as_a_whole=over, refusals=tuple(refusals)))
    items = numbered(((step.action, payload) for step, payload in fetched), chunk_actions(request.pipeline.limits))
    actions = [action for action, _ in items]
    prefix = f"{sources.storage.rstrip('/')}/{request.window.prefix}/plan/payloads"
    uri, file_sha256 = write_payloads(prefix, row_groups(items))
    needs_approval = len(actions) > request.pipeline.approval.above_actions
    state = PlanState.AWAITING_APPROVAL if needs_approval else PlanState.FROZEN
    plan = replace(_plan(journal, request, actions, file_sha256, state), payload_uri=uri)
    plans.put_plan(journal, plans.StoredPlan(plan=plan, payload_sha256=file_sha256), actions)
    if not needs_approval:
        plans.put_approval(journal, plan, decision="not_needed", by=None, at=datetime.now(UTC), expires=None, seen={})
    return Frozen(plan=plan, actions=tuple(actions), refusals=tuple(refusals))


def _freeze_refused(journal: Session, request: FreezeRequest, draft: Draft) -> Frozen:
    actions = [step.action for step in draft.steps]
    plan = replace(_plan(journal, request, actions, None, PlanState.REFUSED), reason=draft.refused_as_a_whole)
    plans.put_plan(journal, plans.StoredPlan(plan=plan, payload_sha256=None), actions)
    return Frozen(plan=plan, actions=tuple(actions), refusals=draft.refusals)


def _plan(
    journal: Session, request: FreezeRequest, actions: Sequence[Action], payload_sha256: str | None, state: PlanState
) -> Plan:
    """A plan whose id is free: a later revision that plans the very same again is still another plan."""
    window = request.window
    sha256 = plan_digest(window.pipeline, window.number, payload_sha256, actions)
    plan_id = f"{window.pipeline}-{window.number}-{sha256[:12]}"
    if plans.find_plan(journal, plan_id) is not None:
        plan_id = f"{plan_id}-r{window.revision}"
    return Plan(
        id=plan_id,
        pipeline=window.pipeline,
        window=window.number,
        revision=window.revision,
        sha256=sha256,
        payload_uri=None,
        counts=count_remedies(actions),
        state=state,
    )
