"""Leave out the actions that others of the same plan would make wrong: what they make true is taken into account.

A finding whose action is left out stays open, and is judged again after the plan ran.
"""

from collections.abc import Iterable, Sequence

from makewhole.compensation.planning.action_draft import ActionDraft, RefusedFinding
from makewhole.model.hops import Hop, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import can_look_up
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Finding, Verdict

_ONCE_AT_A_PLACE = (Remedy.QUARANTINE, Remedy.UPSERT, Remedy.PRODUCE, Remedy.REDELIVER)
_Place = tuple[str, str]
"""Identify the place of a point, and the hash of a key."""


def without_conflicts(
    pipeline: Pipeline, drafts: Sequence[ActionDraft], findings: Iterable[Finding]
) -> tuple[list[ActionDraft], list[RefusedFinding]]:
    """Return the drafts, in order, that stay right whatever the others do, and why rows stay that no other draft is
    about. `findings`: all of their keys.

    - A row whose key is missing further up is not extra: a point there has it, whether its record is sent or not.
    - A key whose record comes to a topic, or goes through it once more, is not unexpected behind it any more.
    - A row that a loader will write, from a record that comes again, is not inserted beside it.
    - A row that one hop says is extra, and another one corrects or keeps, is not extra.
    - A key is touched at a place for one hop alone: what two of them say of the same rows is done once, and a record
      that a topic or a store lacks is sent once, whichever ledgers or topics have it.
    """
    hops = {hop.name: hop for hop in pipeline.hops}
    arriving = _arriving(pipeline, hops, drafts)
    missing = _missing_hops(pipeline, findings)
    claimed = _claimed(pipeline, hops, drafts)
    touched: set[_Place] = set()
    kept, stay = list[ActionDraft](), list[RefusedFinding]()
    for draft in drafts:
        hop = hops[draft.action.hop]
        source, target = (_place(pipeline, point, draft.finding) for point in (hop.source, hop.target))
        is_unexpected = draft.finding.verdict is Verdict.UNEXPECTED
        if is_unexpected and (source in arriving or target in claimed):
            continue
        if is_unexpected and source in missing:
            refusal = Refusal(RefusalCode.KEPT, _why_it_stays(pipeline, hop, missing[source]))
            stay.append(RefusedFinding(hop=hop.name, key_hash=draft.finding.key_hash, refusal=refusal))
            continue
        if _inserts_row(draft) and target in arriving:
            continue
        if draft.action.remedy in _ONCE_AT_A_PLACE:
            if target in touched:
                continue
            touched.add(target)
        touched |= {_place(pipeline, aside.action.target, aside.finding) for aside in draft.aside}
        kept.append(draft)
    return kept, stay


def _arriving(pipeline: Pipeline, hops: dict[str, Hop], drafts: Iterable[ActionDraft]) -> set[_Place]:
    """Return where the keys of sent records come to: the end of their hop, and every point behind that and behind the
    topic that they are sent to, which has other readers, too."""
    return {
        _place(pipeline, point, draft.finding)
        for draft in drafts
        if draft.action.remedy in (Remedy.PRODUCE, Remedy.REDELIVER)
        for start in (hops[draft.action.hop].target, draft.action.target)
        for point in pipeline.from_here_on(start)
    }


def _why_it_stays(pipeline: Pipeline, hop: Hop, missing: Hop) -> str:
    """Return why an unexpected row at the end of a hop stays whose key another hop misses, and the line to write."""
    kept = f"{missing.source} has this key, which {missing.target} lacks: its row in {hop.target} is not extra"
    if missing.remedies.missing is Remedy.REPORT:
        is_ledger = can_look_up(pipeline.points[missing.source])
        remedy = (Remedy.PRODUCE if is_ledger else Remedy.REDELIVER).value
        return (
            f"{kept}; write `missing: {remedy}` on hop {missing.name}: the row is put aside then, and its record sent"
        )
    return f"{kept}; its record is not sent, for the reason that is given at {missing.name}"


def _missing_hops(pipeline: Pipeline, findings: Iterable[Finding]) -> dict[_Place, Hop]:
    """Return by (place, hash of a key) a hop that misses the key there or further up."""
    hops = {hop.name: hop for hop in pipeline.hops}
    missing: dict[_Place, Hop] = {}
    for finding in findings:
        hop = hops.get(finding.hop)
        if finding.verdict is Verdict.MISSING and hop is not None:
            for point in pipeline.from_here_on(hop.target):
                missing.setdefault(_place(pipeline, point, finding), hop)
    return missing


def _claimed(pipeline: Pipeline, hops: dict[str, Hop], drafts: Iterable[ActionDraft]) -> set[_Place]:
    """Return the keys that a plan writes or keeps at the end of a hop, because its source has them."""
    return {
        _place(pipeline, hops[draft.action.hop].target, draft.finding)
        for draft in drafts
        if draft.finding.verdict is not Verdict.UNEXPECTED
    }


def _inserts_row(draft: ActionDraft) -> bool:
    return draft.action.remedy is Remedy.UPSERT and draft.finding.verdict in (Verdict.MISSING, Verdict.VANISHED)


def _place(pipeline: Pipeline, point: str, finding: Finding) -> _Place:
    return pipeline.place_of(point), finding.key_hash
