"""Draft the ordered actions of findings: pure. What a remedy cannot do becomes a refusal with its reason."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from makewhole.compensation.planning.action_draft import ActionDraft, PlanOrder, Refusal
from makewhole.compensation.planning.conflicts import without_conflicts
from makewhole.compensation.planning.extra_copies import extra_records, extra_rows
from makewhole.compensation.planning.redelivery import NO_READERS, Readers, Redelivery
from makewhole.compensation.planning.second_copies import SecondCopies
from makewhole.config.template.reversal import names_of
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import (
    Hop,
    Limits,
    Pipeline,
    Point,
    PointKind,
    Remedy,
    Semantics,
    TablePoint,
    TopicPoint,
)
from makewhole.model.plan import ERASABLE, LACKING, ONCE, REPEATS, UNKNOWN_TO, Action, count_remedies
from makewhole.model.reversal import NOTHING_REVERSED, PastReversals
from makewhole.model.verdict import REPAIRABLE, Cause, Finding, Verdict

_REMEDY_ORDER = (Remedy.PRODUCE, Remedy.REDELIVER, Remedy.UPSERT, Remedy.QUARANTINE, Remedy.REVERSE)
_ABSENT = (Verdict.MISSING, Verdict.VANISHED)
_UPSERTABLE = (*_ABSENT, Verdict.MISMATCHED)


@dataclass(frozen=True, kw_only=True)
class PlanDraft:
    """Drafted actions and refusals of a plan. `refused_as_a_whole`: the limit that the plan exceeds, if any."""

    drafts: tuple[ActionDraft, ...]
    refusals: tuple[Refusal, ...]
    refused_as_a_whole: str | None
    needs_approval: bool

    @property
    def counts(self) -> Mapping[str, int]:
        return count_remedies(draft.action for draft in self.drafts)


@dataclass(frozen=True, kw_only=True)
class DraftBatch:
    """The drafts of some findings with their places in the plan, in this order, and refusals. `actions` on `keys` are
    those that count: rows that were taken back before are recognised only when they are read, and have drafts, too."""

    drafts: Sequence[tuple[PlanOrder, ActionDraft]]
    refusals: Sequence[Refusal]
    actions: int
    keys: int


def plan_actions(pipeline: Pipeline, findings: Sequence[Finding]) -> list[Action]:
    """Return the actions for findings, ordered by hop, remedy and key, numbered from 0; limits are not applied."""
    return [draft.action for draft in renumbered(one for _, one in draft_batch(pipeline, findings).drafts)]


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
        drafts=renumbered(draft for _, draft in batch.drafts),
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
) -> DraftBatch:
    """Draft actions and refusals of some findings; all findings of their keys are among them."""
    drafts, refusals = _draft_all(pipeline, findings, _Known(pipeline, findings, past, readers))
    left = _without_reversed_rows(pipeline, drafts, past)
    return DraftBatch(
        drafts=[(_order(pipeline, draft), draft) for draft in drafts],
        refusals=refusals,
        actions=len(left),
        keys=len({draft.action.key_hash for draft in left}),
    )


def _order(pipeline: Pipeline, draft: ActionDraft) -> PlanOrder:
    hop_number = next(number for number, hop in enumerate(pipeline.hops) if hop.name == draft.finding.hop)
    return hop_number, _REMEDY_ORDER.index(draft.action.remedy), draft.finding.key


def _without_reversed_rows(pipeline: Pipeline, drafts: Iterable[ActionDraft], past: PastReversals) -> list[ActionDraft]:
    """Leave out as many drafts for rows of a key as rows of it were taken back before."""
    places = {hop.name: pipeline.points[hop.target].place for hop in pipeline.hops}
    reversed_before: Counter[tuple[str, str]] = Counter()
    left = []
    for draft in drafts:
        key = places[draft.action.hop], draft.action.key_hash
        is_of_row = draft.action.remedy is Remedy.REVERSE and draft.repetition is None
        if is_of_row and reversed_before[key] < len(past.of(*key)):
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


class _Known:
    """Hold what is known beside a finding: what was reversed before, and whom a record that is sent would reach."""

    def __init__(
        self,
        pipeline: Pipeline,
        findings: Sequence[Finding],
        past: PastReversals = NOTHING_REVERSED,
        readers: Readers = NO_READERS,
    ) -> None:
        self.past, self.redelivery = past, Redelivery(pipeline, findings, readers)
        self.second_copies = SecondCopies(pipeline, findings)


def _draft_all(
    pipeline: Pipeline, findings: Sequence[Finding], known: _Known
) -> tuple[list[ActionDraft], list[Refusal]]:
    hops = {hop.name: hop for hop in pipeline.hops}
    drafts: list[ActionDraft] = []
    refusals: list[Refusal] = []
    for finding in findings:
        if finding.verdict not in REPAIRABLE:
            continue
        if finding.hop not in hops:
            refusals.append(_refuse(finding, f"the pipeline has no hop {finding.hop} any more"))
            continue
        hop = hops[finding.hop]
        remedy = hop.remedies.answer_to(finding.verdict)
        if remedy is Remedy.REPORT:
            continue
        made = _draft_actions(pipeline, hop, remedy, finding, known)
        if isinstance(made, str):
            refusals.append(_refuse(finding, made))
        else:
            drafts += [made] if isinstance(made, ActionDraft) else made
    ordered = sorted(drafts, key=lambda draft: _order(pipeline, draft))
    sources = {hop.name: hop.source for hop in pipeline.hops}
    return without_conflicts(pipeline, _without_repetition(ordered, sources), findings), refusals


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
    names = [draft.action.before.get(LACKING) for draft in (first, other)]
    erasable = {name for draft in (first, other) for name in draft.action.before.get(ERASABLE, ())}
    if erasable:
        first = _with_before(first, {ERASABLE: sorted(erasable)})
    once = {name for draft in (first, other) for name in draft.action.before.get(ONCE, ())}
    first = _with_before(first, {ONCE: sorted(once)} if once else {})
    if None not in names:
        return _lacking(first, {name for some in names for name in some or ()})
    before = {name: value for name, value in first.action.before.items() if name != LACKING}
    return replace(first, action=replace(first.action, before=before))


def _lacking(draft: ActionDraft, points: Iterable[str]) -> ActionDraft:
    """Name in the action the points that lack the key: they are asked again before anything is sent."""
    return _with_before(draft, {LACKING: sorted(points)})


def _with_before(draft: ActionDraft, more: Mapping[str, object]) -> ActionDraft:
    return replace(draft, action=replace(draft.action, before={**draft.action.before, **more}))


def _draft_actions(
    pipeline: Pipeline, hop: Hop, remedy: Remedy, finding: Finding, known: _Known
) -> ActionDraft | Sequence[ActionDraft] | str:
    """Return the draft or drafts for a finding, or the reason why there is none."""
    source, target = pipeline.points[hop.source], pipeline.points[hop.target]
    if isinstance(source, TopicPoint) and finding.evidence.get("has_later"):
        return "stale: the log has a later version of this key; the window that holds it judges that one"
    if finding.verdict in _ABSENT and finding.evidence.get("source_contradicts"):
        return (
            f"conflict: {source.name} has this key with different values; say which is right, then run the window again"
        )
    waiting = _still_to_come(pipeline, hop, remedy, finding)
    if waiting is not None:
        return waiting
    match remedy:
        case Remedy.PRODUCE:
            return _produce(pipeline, source, target, finding, known.second_copies)
        case Remedy.REDELIVER:
            return _redeliver(pipeline, hop, finding, known.redelivery)
        case Remedy.UPSERT:
            return _upsert(source, target, hop, finding)
        case Remedy.REVERSE:
            return _reverse(pipeline, hop, finding, known.past)
        case _:
            return _quarantine(pipeline, hop, finding)


def _still_to_come(pipeline: Pipeline, hop: Hop, remedy: Remedy, finding: Finding) -> str | None:
    """Return why a key whose record still stands in front of its reader is left alone: it would arrive twice.

    A row may be written where the loader overwrites rows of the same key.
    """
    if finding.cause is Cause.NOT_COMMITTED:
        places = ", ".join(finding.evidence.get("open", ()))
        return (
            f"its record is in or behind an open transaction ({places}) and may yet be committed; end the transaction, "
            "then run this window again"
        )
    if finding.cause is not Cause.NOT_CONSUMED or (remedy is Remedy.UPSERT and pipeline.overwrites(hop)):
        return None
    return (
        f"its record still stands in front of group {hop.consumer_group}, which would load it a second time when it "
        "goes on; mend the consumer, then run this window again"
    )


def _produce(
    pipeline: Pipeline, source: Point, target: Point, finding: Finding, second_copies: SecondCopies
) -> ActionDraft | str:
    if source.kind is not PointKind.LEDGER:
        return f"produce needs a ledger to take the record from; {source.name} is a {source.kind.value}"
    if not isinstance(target, TopicPoint):
        return f"produce writes to a topic; {target.name} is a {target.kind.value}"
    if finding.verdict is not Verdict.MISSING:
        return f"produce answers a missing key; this one is {finding.verdict.value}"
    twice = second_copies.reason(target.name, finding)
    if twice is not None:
        return twice
    draft = _erasable(pipeline, _draft_action(Remedy.PRODUCE, target, finding), target.name)
    # A table may hold the key all the same, from a record that the log has lost since.
    once = pipeline.tables_that_add(target.name)
    return _lacking(_with_before(draft, {ONCE: sorted(once)} if once else {}), {target.name})


def _redeliver(pipeline: Pipeline, hop: Hop, finding: Finding, redelivery: Redelivery) -> ActionDraft | str:
    source = pipeline.points[hop.source]
    if not isinstance(source, TopicPoint):
        return f"redeliver repeats a record of a topic; {source.name} is a {source.kind.value}"
    if finding.verdict not in _UPSERTABLE:
        return f"redeliver answers a missing or mismatched key; this one is {finding.verdict.value}"
    if _may_add_a_row(pipeline, hop, finding):
        return "where its loader inserts, redeliver would add a row beside the one that differs; use upsert"
    origin = source_position(finding, hop.semantics)
    if origin is None:
        return "the evidence names no committed record to redeliver"
    draft = _draft_action(Remedy.REDELIVER, pipeline.points[hop.redeliver_to or hop.source], finding, origin)
    reach = redelivery.reach(hop, finding)
    if isinstance(reach, str):
        return reach
    draft = _erasable(pipeline, _with_before(draft, {REPEATS: hop.source, **reach}), draft.action.target, hop.target)
    return _lacking(draft, {hop.target}) if finding.verdict in _ABSENT else draft


def _erasable(pipeline: Pipeline, draft: ActionDraft, *points: str) -> ActionDraft:
    """Name in the action the stores behind these points that tell which keys were erased: they are asked before the
    record is sent."""
    stores = {store.name for point in points for store in pipeline.stores_at(point) if store.erased is not None}
    return _with_before(draft, {ERASABLE: sorted(stores)}) if stores else draft


def _may_add_a_row(pipeline: Pipeline, hop: Hop, finding: Finding) -> bool:
    """Tell whether a loader could insert a second row: only `upsert`, or a version, shows that it overwrites."""
    return finding.verdict is Verdict.MISMATCHED and not pipeline.overwrites(hop)


def _upsert(source: Point, target: Point, hop: Hop, finding: Finding) -> ActionDraft | str:
    if not isinstance(target, TablePoint):
        return f"upsert writes to a table; {target.name} is a topic"
    if finding.verdict not in _UPSERTABLE:
        return f"upsert answers a missing or mismatched key; this one is {finding.verdict.value}"
    if isinstance(source, TablePoint):
        return _draft_action(Remedy.UPSERT, target, finding)
    origin = source_position(finding, hop.semantics)
    if origin is None:
        return "the evidence names no committed record to take the row from"
    return _with_before(_draft_action(Remedy.UPSERT, target, finding, origin), {REPEATS: source.name})


def _quarantine(pipeline: Pipeline, hop: Hop, finding: Finding) -> ActionDraft | str:
    target = pipeline.points[hop.target]
    if not isinstance(target, TablePoint):
        return f"records cannot be taken out of topic {target.name}; its duplicates are contained at the stores"
    if finding.verdict not in (Verdict.DUPLICATE, Verdict.UNEXPECTED):
        return f"quarantine answers a duplicate or unexpected key; this one is {finding.verdict.value}"
    return _as_stranger(pipeline, hop, _draft_action(Remedy.QUARANTINE, target, finding))


def _as_stranger(pipeline: Pipeline, hop: Hop, draft: ActionDraft) -> ActionDraft:
    """Name in the action of an unexpected key the points that feed its table: they are asked for it before its rows are
    taken back. A table behind a filter is not: it may have the key and not send it."""
    if draft.finding.verdict is not Verdict.UNEXPECTED:
        return draft
    place = pipeline.points[hop.target].place
    feeding = [other for other in pipeline.hops if pipeline.points[other.target].place == place]
    asked = {
        other.source
        for other in feeding
        if other.where is None or isinstance(pipeline.points[other.source], TopicPoint)
    }
    return _with_before(draft, {UNKNOWN_TO: sorted(asked)}) if asked else draft


def _reverse(pipeline: Pipeline, hop: Hop, finding: Finding, past: PastReversals) -> Sequence[ActionDraft] | str:
    """Draft a reversal for every extra copy. Which rows these are is found when they are read."""
    source, target = pipeline.points[hop.source], pipeline.points[hop.target]
    if hop.reverse is None:
        return f"{hop.name} has no template to reverse with any more"
    is_topic = isinstance(target, TopicPoint)
    if finding.verdict is not Verdict.DUPLICATE and (is_topic or finding.verdict is not Verdict.UNEXPECTED):
        answered = "a duplicate key in a topic" if is_topic else "a duplicate or unexpected key"
        return f"reverse answers {answered}; this one is {finding.verdict.value}"
    try:
        origin = source_position(finding) if "source" in names_of(hop.reverse) else None
        if origin is None and isinstance(source, TopicPoint) and "source" in names_of(hop.reverse):
            return "the evidence names no committed record for the template's 'source'"
        draft = _draft_action(Remedy.REVERSE, pipeline.points[hop.reverse.to], finding, origin)
        draft = _as_stranger(pipeline, hop, draft)
        if is_topic:
            return [replace(draft, repetition=one) for one in extra_records(finding, target.place, past)]
        return [replace(draft, extra=extra) for extra in range(extra_rows(finding))]
    except RefusedError as error:
        return str(error)


def _draft_action(
    remedy: Remedy, target: Point, finding: Finding, origin: tuple[int, int] | None = None
) -> ActionDraft:
    action = Action(
        seq=0,
        remedy=remedy,
        hop=finding.hop,
        target=target.name,
        key=finding.key,
        key_hash=finding.key_hash,
        before={"place": target.place},
    )
    return ActionDraft(action=action, finding=finding, origin=origin)


def source_position(finding: Finding, semantics: Semantics = Semantics.EVENT) -> tuple[int, int] | None:
    """Return (partition, offset) of the committed copy to repeat: the first of `evidence["source"]`, or for `upsert`
    the latest version that the evidence names."""
    copies = finding.evidence.get("source", ())
    if semantics is Semantics.UPSERT:
        copies = [finding.evidence["latest"]] if "latest" in finding.evidence else []
    usable = [copy for copy in copies if not copy.get("aborted") and not copy.get("excluded")]
    committed = [copy for copy in usable if "partition" in copy and "offset" in copy]
    return (int(committed[0]["partition"]), int(committed[0]["offset"])) if committed else None


def _refuse(finding: Finding, reason: str) -> Refusal:
    return Refusal(hop=finding.hop, key_hash=finding.key_hash, reason=reason)
