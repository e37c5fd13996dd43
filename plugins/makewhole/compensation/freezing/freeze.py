"""Freeze the actions of findings: fetch what they write, then commit plan, actions and payloads to the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from makewhole.compensation.freezing.fetch import Fetcher
from makewhole.compensation.freezing.sources import PayloadSource, Sources, TombstoneSource
from makewhole.compensation.freezing.write_plan import PlanFrame, put_frozen, put_refused
from makewhole.compensation.planning.action_draft import Refusal
from makewhole.compensation.planning.draft import PlanDraft, draft_plan, over_limits
from makewhole.compensation.planning.redelivery import read_readers
from makewhole.compensation.planning.remedy_of import keys_to_reverse
from makewhole.journal import written_keys
from makewhole.journal.written_keys import reversals_of
from makewhole.model.connection import Connection
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import Action, Plan
from makewhole.model.verdict import REPAIRABLE, Finding
from makewhole.model.window import Window
from makewhole.sql import PgConnection


@dataclass(frozen=True, kw_only=True)
class FreezeRequest:
    """A window and its findings to plan for. `window_keys`: distinct keys that were judged, for the share's limit."""

    pipeline: Pipeline
    window: Window
    findings: Sequence[Finding]
    window_keys: int


@dataclass(frozen=True, kw_only=True)
class FreezeSources:
    """The sources and the storage of payloads. `storage`: root path or URI; `connections` by id; `tombstones`
    where stores are told by them."""

    storage: str
    records: PayloadSource
    connections: Mapping[str, Connection]
    tombstones: TombstoneSource | None = None


@dataclass(frozen=True, kw_only=True)
class FreezeResult:
    """The plan and its actions; None: nothing can be done. `refusals` are those of this call, also in the findings."""

    plan: Plan | None
    actions: tuple[Action, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def freeze_findings(journal: PgConnection, request: FreezeRequest, sources: FreezeSources) -> FreezeResult:
    """Draft, fetch and freeze the plan of a window, in the caller's transaction."""
    window, to_reverse = request.window, keys_to_reverse(request.pipeline, request.findings)
    past = reversals_of(journal, request.pipeline, window.number, to_reverse)
    readers = read_readers(request.pipeline, sources.connections, request.findings)
    draft = draft_plan(request.pipeline, request.findings, window_keys=request.window_keys, past=past, readers=readers)
    frame = PlanFrame(window=window, storage=sources.storage, limits=request.pipeline.limits)
    if draft.refused_as_a_whole:
        return _freeze_refused(journal, frame, draft)
    with Sources(request.pipeline, sources.records, sources.connections, sources.tombstones) as opened:
        items, refusals = Fetcher(request.window, opened, past).fetch(draft.drafts)
    refusals = [*draft.refusals, *refusals]
    if not items:
        return FreezeResult(plan=None, refusals=tuple(refusals))
    keys = len({step.action.key_hash for step, _ in items})
    over = over_limits(request.pipeline.limits, actions=len(items), keys=keys, window_keys=request.window_keys)
    if over is not None:  # the number of rows to reverse is known only after they are read
        return _freeze_refused(journal, frame, replace(draft, refused_as_a_whole=over, refusals=tuple(refusals)))
    needs_approval = len(items) > request.pipeline.approval.above_actions
    fetched = ((item.action, payload) for item, payload in items)
    plan, actions = put_frozen(journal, frame, fetched, needs_approval=needs_approval)
    return FreezeResult(plan=plan, actions=actions, refusals=tuple(refusals))


def _freeze_refused(journal: PgConnection, frame: PlanFrame, draft: PlanDraft) -> FreezeResult:
    actions = tuple(item.action for item in draft.drafts)
    plan = put_refused(journal, frame, actions, draft.refused_as_a_whole or "")
    return FreezeResult(plan=plan, actions=actions, refusals=draft.refusals)


def refuse_written(
    journal: PgConnection, window: Window, findings: Sequence[Finding]
) -> tuple[list[Finding], list[Refusal]]:
    """Return the findings that still stand, and a refusal for each whose key was written after it was judged."""
    gaps = [(finding.hop, finding.key_hash) for finding in findings if finding.verdict in REPAIRABLE]
    written = written_keys.keys_written_since(journal, (window.pipeline, window.number, window.revision), gaps)
    refusals = [
        Refusal(hop=hop, key_hash=key_hash, reason=_written_reason(plan_id, is_proven=is_proven))
        for (hop, key_hash), (plan_id, is_proven) in written.items()
    ]
    return [finding for finding in findings if (finding.hop, finding.key_hash) not in written], refusals


def _written_reason(plan_id: str, *, is_proven: bool) -> str:
    verb = "wrote" if is_proven else "may have written"
    return f"stale: plan {plan_id} {verb} this key after it was judged; run the window again"
