"""Draft the ordered actions of findings: pure. What a remedy cannot do is refused."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType

from makewhole.compensation.planning.action_draft import ActionDraft, PlanOrder, RefusedFinding, asides_first
from makewhole.compensation.planning.conflicts import without_conflicts
from makewhole.compensation.planning.disputed import NOTHING_ELSEWHERE, OpenElsewhere
from makewhole.compensation.planning.draft_actions import Known, draft_actions
from makewhole.compensation.planning.redelivery import NO_READERS, Readers
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Limits, Pipeline
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.reversal import NOTHING_REVERSED, PastReversals
from makewhole.model.verdict import REPAIRABLE, Finding

ErasedOnRequest = Mapping[tuple[str, str], str]
"""Sentences that keys were erased on request, by hop and key hash."""
_NONE_ERASED: ErasedOnRequest = MappingProxyType({})
_REMEDY_ORDER = (Remedy.PRODUCE, Remedy.REDELIVER, Remedy.UPSERT, Remedy.QUARANTINE, Remedy.REVERSE)


@dataclass(frozen=True, kw_only=True)
class PlanDraft:
    """Drafted actions and refusals of a plan. `refused_as_a_whole`: the limit that the plan exceeds, if any."""

    drafts: tuple[ActionDraft, ...]
    refusals: tuple[RefusedFinding, ...]
    refused_as_a_whole: str | None
    needs_approval: bool

    @property
    def counts(self) -> Mapping[str, int]:
        return dict(sorted(Counter(draft.action.remedy.value for draft in self.drafts).items()))


@dataclass(frozen=True, kw_only=True)
class DraftBatch:
    """The drafts of some findings with their places in the plan, in this order, and refusals. `actions` on `keys` are
    those that count: rows that were taken back before are recognised only when they are read, and have drafts, too."""

    drafts: Sequence[tuple[PlanOrder, ActionDraft]]
    refusals: Sequence[RefusedFinding]
    actions: int
    keys: int


def draft_plan(
    pipeline: Pipeline,
    findings: Sequence[Finding],
    *,
    window_keys: int,
    past: PastReversals = NOTHING_REVERSED,
    readers: Readers = NO_READERS,
) -> PlanDraft:
    """Draft actions and refusals, and apply limits and the approval policy. `window_keys`: distinct keys judged.
    `readers`: the consumer groups of the topics that records are redelivered to.

    Rows that were taken back before are recognised only when they are read: they have drafts, which do not count.
    """
    batch = draft_batch(pipeline, findings, past, readers)
    return PlanDraft(
        drafts=renumbered(asides_first([draft for _, draft in batch.drafts])),
        refusals=tuple(batch.refusals),
        refused_as_a_whole=over_limits(
            pipeline.limits, actions=batch.actions, keys=batch.keys, window_keys=window_keys
        ),
        needs_approval=batch.actions > pipeline.approval.above_actions,
    )


def draft_batch(
    pipeline: Pipeline,
    findings: Sequence[Finding],
    past: PastReversals = NOTHING_REVERSED,
    readers: Readers = NO_READERS,
    elsewhere: OpenElsewhere = NOTHING_ELSEWHERE,
    accepted: Collection[tuple[str, str]] = (),
    erased: ErasedOnRequest = _NONE_ERASED,
) -> DraftBatch:
    """Draft actions and refusals of some findings; all findings of their keys are among them, and those that are open
    in other windows are `elsewhere`. `accepted`: hop and key hash of those that stay as they are by a person's word;
    their rows are touched for no other finding, and what they say still counts for others of their keys. `erased`: what
    says, by hop and key hash, that a key was erased on request: nothing is written of it."""
    to_answer = [finding for finding in findings if (finding.hop, finding.key_hash) not in accepted]
    known = Known(pipeline, findings, past, readers, elsewhere, accepted)
    drafts, refusals = _draft_all(pipeline, findings, to_answer, known, erased)
    left = _without_reversed_rows(pipeline, drafts, past)
    return DraftBatch(
        drafts=[(_order(pipeline, draft), draft) for draft in drafts],
        refusals=refusals,
        actions=len(asides_first(left)),
        keys=len({draft.action.key_hash for draft in left}),
    )


def _order(pipeline: Pipeline, draft: ActionDraft) -> PlanOrder:
    """Return the place of a draft in its plan: first come those that need rows out of the way."""
    hop_number = next(number for number, hop in enumerate(pipeline.hops) if hop.name == draft.finding.hop)
    if draft.aside:
        hop_number -= len(pipeline.hops)
    return hop_number, _REMEDY_ORDER.index(draft.action.remedy), draft.finding.key


def _without_reversed_rows(pipeline: Pipeline, drafts: Iterable[ActionDraft], past: PastReversals) -> list[ActionDraft]:
    """Leave out as many drafts for rows of a key as rows of it were taken back before."""
    targets = {hop.name: pipeline.points[hop.target] for hop in pipeline.hops}
    reversed_before: Counter[tuple[str, str]] = Counter()
    left = []
    for draft in drafts:
        point = targets[draft.action.hop]
        key = pipeline.place_of(point.name), draft.action.key_hash
        is_of_row = draft.action.remedy is Remedy.REVERSE and draft.repetition is None
        if is_of_row and reversed_before[key] < len(past.of(point.places, draft.action.key_hash)):
            reversed_before[key] += 1
        else:
            left.append(draft)
    return left


def over_limits(limits: Limits, *, actions: int, keys: int, window_keys: int) -> str | None:
    """Return the reason why a plan of so many actions on so many distinct keys is refused as a whole, or None."""
    if actions > limits.actions:
        return (
            f"{actions} actions are more than the limit of {limits.actions}; find out what broke before repairing it, "
            "then raise compensation.limits.actions"
        )
    if keys > Decimal(str(limits.share)) * window_keys:  # as a binary fraction 0.29 of 100 is less than 29
        return (
            f"{keys} keys are more than the share of {limits.share:g} of the window's {window_keys} keys; find "
            "out what broke before repairing it, then raise compensation.limits.share"
        )
    return None


def renumbered(drafts: Iterable[ActionDraft]) -> tuple[ActionDraft, ...]:
    """Number the drafts from 0 without holes."""
    return tuple(replace(draft, action=replace(draft.action, seq=seq)) for seq, draft in enumerate(drafts))


def _draft_all(
    pipeline: Pipeline,
    findings: Sequence[Finding],
    to_answer: Iterable[Finding],
    known: Known,
    erased: ErasedOnRequest,
) -> tuple[list[ActionDraft], list[RefusedFinding]]:
    hops = {hop.name: hop for hop in pipeline.hops}
    drafts: list[ActionDraft] = []
    refusals: list[RefusedFinding] = []
    for finding in to_answer:
        if finding.verdict not in REPAIRABLE:
            continue
        if finding.hop not in hops:
            no_hop = Refusal(RefusalCode.OTHER, f"the pipeline has no hop {finding.hop} any more")
            refusals.append(_refuse(finding, no_hop))
            continue
        hop = hops[finding.hop]
        remedy = hop.remedies.answer_to(finding.verdict)
        if remedy is Remedy.REPORT:
            continue
        said = erased.get((finding.hop, finding.key_hash))
        if said is not None:
            refusals.append(_refuse(finding, Refusal(RefusalCode.ERASED, f"its key was {said}")))
            continue
        made = draft_actions(pipeline, hop, remedy, finding, known)
        if isinstance(made, Refusal):
            refusals.append(_refuse(finding, made))
        else:
            drafts += [made] if isinstance(made, ActionDraft) else made
    ordered = sorted(drafts, key=lambda draft: _order(pipeline, draft))
    sources = {hop.name: hop.source for hop in pipeline.hops}
    kept, left_alone = without_conflicts(pipeline, _without_repetition(ordered, sources), findings)
    return kept, [*refusals, *left_alone]


def _without_repetition(drafts: Iterable[ActionDraft], sources: Mapping[str, str]) -> list[ActionDraft]:
    """Keep one draft for a record that several hops miss: redelivered to a topic, it reaches every reader."""
    kept: dict[object, ActionDraft] = {}
    for number, draft in enumerate(drafts):
        action = draft.action
        is_repeatable = action.remedy is Remedy.REDELIVER
        record = (action.target, sources[action.hop], draft.origin, action.key) if is_repeatable else number
        first = kept.get(record)
        kept[record] = draft if first is None else _for_both(first, draft)
    return list(kept.values())


def _for_both(first: ActionDraft, other: ActionDraft) -> ActionDraft:
    """Return the first of two drafts for one record, for what both hops lack. A hop that has the key, with another
    value, lacks nothing that could arrive: then nothing is named."""
    ours, theirs = first.action.before, other.action.before
    first = first.with_before(
        erasable=_union(ours.erasable, theirs.erasable),
        passed=_union(ours.passed, theirs.passed),
        records=ours.records or theirs.records,
        resent_to=_union(ours.resent_to, theirs.resent_to),
        accepted_by=_union(ours.accepted_by, theirs.accepted_by),
        once=_union(ours.once, theirs.once),
        absent_at=_union(ours.absent_at, theirs.absent_at) if ours.absent_at and theirs.absent_at else (),
    )
    asides = {aside.action.before.place: aside for aside in (*other.aside, *first.aside)}  # one for each table
    puts_aside = _union(ours.puts_aside, theirs.puts_aside)
    return replace(first.with_before(puts_aside=puts_aside), aside=tuple(asides[place] for place in sorted(asides)))


def _union(ours: Iterable[str], theirs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*ours, *theirs}))


def _refuse(finding: Finding, refusal: Refusal) -> RefusedFinding:
    return RefusedFinding(hop=finding.hop, key_hash=finding.key_hash, refusal=refusal)
