"""Leave out the actions that others of the same plan would make wrong: what they make true is taken into account.

A finding whose action is left out stays open, and is judged anew after the plan ran.
"""

from collections.abc import Iterable, Sequence

from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.model.pipeline import FOR_ROWS, Hop, Pipeline, Remedy
from makewhole.model.verdict import Finding, Verdict

_ONCE_AT_A_PLACE = (Remedy.QUARANTINE, Remedy.UPSERT, Remedy.PRODUCE, Remedy.REDELIVER)
_Place = tuple[str, str]
"""What tells the place of a point from others, and the hash of a key."""


def without_conflicts(
    pipeline: Pipeline, drafts: Sequence[ActionDraft], findings: Iterable[Finding]
) -> list[ActionDraft]:
    """Return the drafts, in order, that stay right whatever the others do. `findings`: all of their keys.

    - A row whose key is missing further up is not extra: a point there has it, whether its record is sent or not.
    - Nor is anything written or moved of a key whose record is in doubt further up: which value is right is not known.
    - A key whose record comes to a topic, or goes through it once more, is not unexpected behind it any more.
    - A row that a loader will write, from a record that comes again, is not inserted beside it.
    - A row that one hop says is extra, and another one corrects or keeps, is not extra.
    - A key is touched at a place for one hop alone: what two of them say of the same rows is done once, and a record
      that a topic or a store lacks is sent once, whichever ledgers or topics have it.
    """
    hops = {hop.name: hop for hop in pipeline.hops}
    arriving = _arriving(pipeline, hops, drafts)
    vouched, doubted = (
        _behind(pipeline, hops, findings, verdict) for verdict in (Verdict.MISSING, Verdict.UNDECIDABLE)
    )
    claimed = _claimed(pipeline, hops, drafts)
    touched: set[_Place] = set()
    kept = []
    for draft in drafts:
        hop = hops[draft.action.hop]
        source, target = (_place(pipeline, point, draft.finding) for point in (hop.source, hop.target))
        is_unexpected = draft.finding.verdict is Verdict.UNEXPECTED
        if is_unexpected and (source in arriving or source in vouched or target in claimed):
            continue
        if source in doubted and draft.action.remedy in FOR_ROWS:
            continue
        if _inserts_row(draft) and target in arriving:
            continue
        if draft.action.remedy in _ONCE_AT_A_PLACE:
            if target in touched:
                continue
            touched.add(target)
        kept.append(draft)
    return kept


def _arriving(pipeline: Pipeline, hops: dict[str, Hop], drafts: Iterable[ActionDraft]) -> set[_Place]:
    """Return where the keys of sent records come to: the end of their hop, and every point behind that and behind the
    topic that they are sent to, which has other readers, too."""
    return {
        _place(pipeline, point, draft.finding)
        for draft in drafts
        if draft.action.remedy in (Remedy.PRODUCE, Remedy.REDELIVER)
        for start in (hops[draft.action.hop].target, draft.action.target)
        for point in _from_here_on(pipeline, start)
    }


def _behind(pipeline: Pipeline, hops: dict[str, Hop], findings: Iterable[Finding], verdict: Verdict) -> set[_Place]:
    """Return where the keys of a verdict ought to be: at the end of its hop, and at every point behind it."""
    behind = {name: _from_here_on(pipeline, hop.target) for name, hop in hops.items()}
    return {
        _place(pipeline, point, finding)
        for finding in findings
        if finding.verdict is verdict
        for point in behind.get(finding.hop, ())
    }


def _claimed(pipeline: Pipeline, hops: dict[str, Hop], drafts: Iterable[ActionDraft]) -> set[_Place]:
    """Return the keys that a plan writes or keeps at the end of a hop, because its source has them."""
    return {
        _place(pipeline, hops[draft.action.hop].target, draft.finding)
        for draft in drafts
        if draft.finding.verdict is not Verdict.UNEXPECTED
    }


def _from_here_on(pipeline: Pipeline, point: str) -> set[str]:
    """Return a point and every point behind it; a filter may keep a key from them, or not."""
    return {point}.union(*(_from_here_on(pipeline, hop.target) for hop in pipeline.hops_from(point)))


def _inserts_row(draft: ActionDraft) -> bool:
    return draft.action.remedy is Remedy.UPSERT and draft.finding.verdict in (Verdict.MISSING, Verdict.VANISHED)


def _place(pipeline: Pipeline, point: str, finding: Finding) -> _Place:
    return pipeline.place_of(point), finding.key_hash
