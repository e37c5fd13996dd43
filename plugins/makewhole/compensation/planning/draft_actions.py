"""Draft the actions of one finding by the remedy that answers it: pure. What a remedy cannot do is a refusal."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from makewhole.compensation.planning.accepted_rows import AcceptedRows, DeletedRows
from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.compensation.planning.disputed import NOTHING_ELSEWHERE, DisputedValues, OpenElsewhere
from makewhole.compensation.planning.extra_copies import extra_records, extra_rows
from makewhole.compensation.planning.redelivery import (
    NO_READERS,
    Readers,
    Redelivery,
    loaders_of_replays,
    loaders_to_pass,
)
from makewhole.compensation.planning.second_copies import RowsInTheWay, SecondCopies
from makewhole.config.template.reversal import names_of
from makewhole.model.actions import (
    Action,
    Before,
    BeforeProduce,
    BeforeQuarantine,
    BeforeRedeliver,
    BeforeReverse,
    BeforeUpsert,
)
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Hop, Remedy, Semantics
from makewhole.model.incidents.sentences import prepared_transaction_text
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Point, PointKind, can_look_up, has_log
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.reversal import NOTHING_REVERSED, PastReversals
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.window.readers.hop_offsets import still_to_come

_ABSENT = (Verdict.MISSING, Verdict.VANISHED)
_SENDING = (Remedy.PRODUCE, Remedy.REDELIVER, Remedy.UPSERT)
_UPSERTABLE = (*_ABSENT, Verdict.MISMATCHED)


class Known:
    """Hold what is known beside a finding: what was reversed before, whom a record that is sent would reach, which
    values are disputed, and which rows stay by a person's word (`accepted`: hop and key hash of findings), or stay
    away as they were deleted."""

    def __init__(
        self,
        pipeline: Pipeline,
        findings: Sequence[Finding],
        past: PastReversals = NOTHING_REVERSED,
        readers: Readers = NO_READERS,
        elsewhere: OpenElsewhere = NOTHING_ELSEWHERE,
        accepted: Collection[tuple[str, str]] = (),
    ) -> None:
        self.disputed = DisputedValues(pipeline, findings, elsewhere)
        self.accepted = AcceptedRows(pipeline, {*accepted, *elsewhere.accepted})
        self.deleted = DeletedRows(pipeline, findings)
        self.past, self.redelivery = past, Redelivery(pipeline, findings, readers)
        self.second_copies = SecondCopies(pipeline, findings)
        self.in_the_way = RowsInTheWay(pipeline, [*findings, *(finding for _, finding in elsewhere.findings)])

    def with_disputing(self, hop: Hop, draft: ActionDraft, origin: tuple[int, int] | None) -> ActionDraft:
        """Name in the action the hops whose findings would dispute it, and those whose acceptance would stop it: the
        journal is asked for them again before it is done."""
        disputing = self.disputed.disputing_hops(hop, draft.finding, origin)
        return draft.with_before(disputed_by=disputing, accepted_by=self.accepted.hops(hop, draft.action))


def draft_actions(
    pipeline: Pipeline, hop: Hop, remedy: Remedy, finding: Finding, known: Known
) -> ActionDraft | Sequence[ActionDraft] | Refusal:
    """Return the draft or drafts for a finding, or why there is none."""
    made = _drafted(pipeline, hop, remedy, finding, known)
    if isinstance(made, Refusal):
        return made
    origin = source_position(finding, hop.semantics)
    disputed = known.disputed.refusal(hop, finding, origin)
    if disputed is not None:
        return disputed
    if not isinstance(made, ActionDraft):
        return [known.with_disputing(hop, reversal, origin) for reversal in made]
    kept = known.accepted.refusal(hop, made.action)
    if kept is None and remedy in _SENDING:
        kept = known.deleted.refusal(hop, made.action)
    if kept is not None:
        return kept
    draft = _behind_loaders(pipeline, hop, remedy, known.with_disputing(hop, made, origin))
    is_sent = remedy in (Remedy.PRODUCE, Remedy.REDELIVER) and finding.verdict in _ABSENT
    return _after_rows_aside(pipeline, hop, draft, known) if is_sent else draft


def _after_rows_aside(pipeline: Pipeline, hop: Hop, draft: ActionDraft, known: Known) -> ActionDraft | Refusal:
    """Name in the draft of a record that is sent the rows that are put aside before; or return why one cannot be."""
    if not has_log(pipeline.points[hop.target]):
        return draft
    rows = known.in_the_way.of(hop.target, draft.finding)
    if isinstance(rows, Refusal):
        return rows
    aside = []
    for way, finding in rows:
        disputed = known.disputed.refusal(way, finding, None)
        made = _quarantine(pipeline, way, finding, sent_by=hop)
        if disputed is not None:
            return disputed
        if isinstance(made, Refusal):
            return made
        kept = known.accepted.refusal(way, made.action)
        if kept is not None:
            return kept
        aside.append(replace(known.with_disputing(way, made, None), goes_first=True))
    if not aside:
        return draft
    draft = draft.with_before(puts_aside=_ordered(move.action.target for move in aside))
    return replace(draft, aside=tuple(aside))


def _drafted(
    pipeline: Pipeline, hop: Hop, remedy: Remedy, finding: Finding, known: Known
) -> ActionDraft | Sequence[ActionDraft] | Refusal:
    source, target = pipeline.points[hop.source], pipeline.points[hop.target]
    left_alone = _not_settled(source, remedy, finding) or _still_to_come(pipeline, hop, remedy, finding)
    if left_alone is not None:
        return left_alone
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


def _not_settled(source: Point, remedy: Remedy, finding: Finding) -> Refusal | None:
    """Return why a key is left alone of which there is a later version, or of which the source has several values."""
    later = finding.evidence.get("later_sources", ())
    if later and remedy in _SENDING:
        return Refusal(
            RefusalCode.STALE,
            f"{later[0]['source']} has a later version of this key; run the window that holds that one again",
        )
    if has_log(source) and finding.evidence.get("has_later"):
        return Refusal(
            RefusalCode.STALE, "the log has a later version of this key; the window that holds it judges that one"
        )
    if finding.verdict in _ABSENT and finding.evidence.get("source_contradicts"):
        return Refusal(
            RefusalCode.CONFLICT,
            f"{source.name} has this key with different values; say which is right, then run the window again",
        )
    return None


def _still_to_come(pipeline: Pipeline, hop: Hop, remedy: Remedy, finding: Finding) -> Refusal | None:
    """Return why a key is left alone whose record still stands in front of its reader, or that a transaction in doubt
    may hold: it would arrive twice.

    A row may be written where the loader overwrites rows of the same key.
    """
    if finding.cause is Cause.NOT_COMMITTED:
        places = ", ".join(finding.evidence.get("open", ()))
        return _refused(
            f"its record is in or behind an open transaction ({places}) and may yet be committed; end the transaction, "
            "then run this window again"
        )
    if finding.cause is Cause.IN_DOUBT:
        first = finding.evidence["in_doubt"][0]
        holder = "" if first.get("file") or first["prepared"] is None else "prepared transaction "
        return Refusal(
            RefusalCode.IN_DOUBT,
            f"{holder}{prepared_transaction_text(first)}, may hold it in {hop.target}: it would be there "
            "twice, or overwritten, once that is committed; settle it, then run this window again",
        )
    if finding.cause is not Cause.NOT_CONSUMED or (remedy is Remedy.UPSERT and pipeline.overwrites(hop)):
        return None
    return still_to_come(hop)


def _behind_loaders(pipeline: Pipeline, hop: Hop, remedy: Remedy, draft: ActionDraft) -> ActionDraft:
    """Name in the action whose loaders must be past its key's records, and past those that earlier plans sent: they are
    asked once more before anything is written.

    No loader comes to a record of a log that is gone.
    """
    if remedy not in (Remedy.REDELIVER, Remedy.UPSERT):
        return draft
    if draft.finding.verdict in _ABSENT:  # a row that is there was loaded, and is only mended
        draft = draft.with_before(resent_to=_ordered(loaders_of_replays(pipeline, hop, remedy)))
    names = loaders_to_pass(pipeline, hop, remedy)
    copies = [copy for copy in _usable_copies(draft.finding, hop.semantics) if not copy.get("gone")]
    if draft.origin is None or not copies or not names:
        return draft
    places = [f"{copy['partition']}:{copy['offset']}" for copy in copies]
    return draft.with_before(passed=_ordered(names), records=",".join(dict.fromkeys(places)))


def _produce(
    pipeline: Pipeline, source: Point, target: Point, finding: Finding, second_copies: SecondCopies
) -> ActionDraft | Refusal:
    if source.kind is not PointKind.LEDGER:
        return _refused(f"produce needs a ledger to take the record from; {source.name} is a {source.kind.value}")
    if not has_log(target):
        return _refused(f"produce writes to a topic; {target.name} is a {target.kind.value}")
    if finding.verdict is not Verdict.MISSING:
        return _refused(f"produce answers a missing key; this one is {finding.verdict.value}")
    twice = second_copies.refusal(target.name, finding)
    if twice is not None:
        return twice
    before = BeforeProduce(
        place=target.place,
        absent_at=(target.name,),
        # A table may hold the key all the same, from a record that the log has lost since.
        once=_ordered(pipeline.tables_that_add(target.name)),
        erasable=_erasable(pipeline, target.name),
    )
    return _draft_action(before, target, finding)


def _redeliver(pipeline: Pipeline, hop: Hop, finding: Finding, redelivery: Redelivery) -> ActionDraft | Refusal:
    source = pipeline.points[hop.source]
    if not has_log(source):
        return _refused(f"redeliver repeats a record of a topic; {source.name} is a {source.kind.value}")
    if finding.verdict not in _UPSERTABLE:
        return _refused(f"redeliver answers a missing or mismatched key; this one is {finding.verdict.value}")
    if _may_add_a_row(pipeline, hop, finding):
        return _refused("where its loader inserts, redeliver would add a row beside the one that differs; use upsert")
    origin = source_position(finding, hop.semantics)
    if origin is None:
        return _refused("the evidence names no committed record to redeliver")
    once = redelivery.reach(hop, finding)
    if isinstance(once, Refusal):
        return once
    target, groups = pipeline.points[hop.redeliver_to or hop.source], redelivery.known_groups(hop)
    before = BeforeRedeliver(
        place=target.place,
        absent_at=(hop.target,) if finding.verdict in _ABSENT else (),
        once=_ordered(once),
        groups=None if groups is None else _ordered(groups),
        repeats=hop.source,
        erasable=_erasable(pipeline, target.name, hop.target),
    )
    return _draft_action(before, target, finding, origin)


def _erasable(pipeline: Pipeline, *points: str) -> tuple[str, ...]:
    """Return the stores behind these points that name erased keys: they are asked before the record is sent."""
    return _ordered({store.name for point in points for store in pipeline.stores_at(point) if store.erased is not None})


def _may_add_a_row(pipeline: Pipeline, hop: Hop, finding: Finding) -> bool:
    """Return whether a loader could insert a second row: only `upsert`, or a version, shows that it overwrites."""
    return finding.verdict is Verdict.MISMATCHED and not pipeline.overwrites(hop)


def _upsert(source: Point, target: Point, hop: Hop, finding: Finding) -> ActionDraft | Refusal:
    if not can_look_up(target):
        return _refused(f"upsert writes to a table; {target.name} is a topic")
    if finding.verdict not in _UPSERTABLE:
        return _refused(f"upsert answers a missing or mismatched key; this one is {finding.verdict.value}")
    if can_look_up(source):
        return _draft_action(BeforeUpsert(place=target.written_place), target, finding)
    origin = source_position(finding, hop.semantics)
    if origin is None:
        return _refused("the evidence names no committed record to take the row from")
    return _draft_action(BeforeUpsert(place=target.written_place, repeats=source.name), target, finding, origin)


def _quarantine(pipeline: Pipeline, hop: Hop, finding: Finding, *, sent_by: Hop | None = None) -> ActionDraft | Refusal:
    """Draft to move rows aside. `sent_by`: the hop that sends the record of their key afterwards."""
    target = pipeline.points[hop.target]
    if not can_look_up(target):
        return _refused(
            f"records cannot be taken out of topic {target.name}; its duplicates are contained at the stores"
        )
    if finding.verdict not in (Verdict.DUPLICATE, Verdict.UNEXPECTED):
        return _refused(f"quarantine answers a duplicate or unexpected key; this one is {finding.verdict.value}")
    before = BeforeQuarantine(place=target.written_place, unknown_to=_unknown_to(pipeline, hop, finding, sent_by))
    return _draft_action(before, target, finding)


def _unknown_to(pipeline: Pipeline, hop: Hop, finding: Finding, sent_by: Hop | None = None) -> tuple[str, ...]:
    """Return the points that feed the table of an unexpected key, and the ledgers behind these: they are asked for it
    before its rows are taken back. A table behind a filter is not: it may have the key and not send it."""
    if finding.verdict is not Verdict.UNEXPECTED:
        return ()
    asked: set[str] = set()
    for other in pipeline.hops_into(hop.target):
        is_topic = has_log(pipeline.points[other.source])
        if is_topic or other.where is None:
            asked.add(other.source)
        if is_topic and other.where is None:
            asked |= _tables_before(pipeline, other.source)
    if sent_by is not None:  # it is known to have the key
        asked -= {sent_by.source, *_tables_before(pipeline, sent_by.source)}
    return _ordered(asked)


def _tables_before(pipeline: Pipeline, topic: str) -> set[str]:
    """Return the tables that fill a topic, directly or over further topics, and send it all keys that they have: no
    filter is on the way."""
    tables: set[str] = set()
    for hop in pipeline.hops_into(topic):
        if hop.where is None:
            is_table = can_look_up(pipeline.points[hop.source])
            tables |= {hop.source} if is_table else _tables_before(pipeline, hop.source)
    return tables


def _reverse(pipeline: Pipeline, hop: Hop, finding: Finding, past: PastReversals) -> Sequence[ActionDraft] | Refusal:
    """Draft a reversal for every extra copy. Which rows these are is found when they are read."""
    source, target = pipeline.points[hop.source], pipeline.points[hop.target]
    if hop.reverse is None:
        return _refused(f"{hop.name} has no template to reverse with any more")
    is_topic = has_log(target)
    if finding.verdict is not Verdict.DUPLICATE and (is_topic or finding.verdict is not Verdict.UNEXPECTED):
        answered = "a duplicate key in a topic" if is_topic else "a duplicate or unexpected key"
        return _refused(f"reverse answers {answered}; this one is {finding.verdict.value}")
    try:
        origin = source_position(finding) if "source" in names_of(hop.reverse) else None
        if origin is None and has_log(source) and "source" in names_of(hop.reverse):
            return _refused("the evidence names no committed record for the template's 'source'")
        event = pipeline.points[hop.reverse.to]
        before = BeforeReverse(place=event.place, unknown_to=_unknown_to(pipeline, hop, finding))
        draft = _draft_action(before, event, finding, origin)
        if is_topic:
            return [replace(draft, repetition=repetition) for repetition in extra_records(finding, target, past)]
        return [replace(draft, extra=extra) for extra in range(extra_rows(finding))]
    except RefusedError as error:
        return error.refusal


def _ordered(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _refused(text: str) -> Refusal:
    """Return the refusal of a finding that the remedy does not answer, or not yet."""
    return Refusal(RefusalCode.OTHER, text)


def _draft_action(
    before: Before, target: Point, finding: Finding, origin: tuple[int, int] | None = None
) -> ActionDraft:
    action = Action(
        seq=0, hop=finding.hop, target=target.name, key=finding.key, key_hash=finding.key_hash, before=before
    )
    return ActionDraft(action=action, finding=finding, origin=origin)


def source_position(finding: Finding, semantics: Semantics = Semantics.EVENT) -> tuple[int, int] | None:
    """Return (partition, offset) of the committed copy to repeat: the first of `evidence["source"]`, or for `upsert`
    the latest version that the evidence names."""
    committed = _usable_copies(finding, semantics)
    return (int(committed[0]["partition"]), int(committed[0]["offset"])) if committed else None


def _usable_copies(finding: Finding, semantics: Semantics) -> list[Mapping[str, Any]]:
    """Return the committed copies of the evidence that can be repeated, the one to repeat first."""
    copies = finding.evidence.get("source", ())
    if semantics is Semantics.UPSERT:
        copies = [finding.evidence["latest"]] if "latest" in finding.evidence else []
    usable = [copy for copy in copies if not copy.get("aborted") and not copy.get("excluded")]
    return [copy for copy in usable if "partition" in copy and "offset" in copy]
