"""Refuse actions that go by a value which another window came to dispute after the plan was frozen, and those that
would change rows which a person has accepted since."""

from collections import defaultdict
from collections.abc import Iterable

from makewhole.journal.findings import window_findings
from makewhole.journal.replayed_positions import PlanInJournal
from makewhole.model.actions import Action, DisputedBy
from makewhole.model.refusal import Refusal, refusal_by_acceptance, refusal_by_dispute
from makewhole.model.verdict import Finding


def disputed_since(plan: PlanInJournal, actions: Iterable[Action]) -> dict[int, Refusal]:
    """Return why some actions of a plan are not done, by action number: each names the finding that calls the value
    wrong, or not known, or the hop of the one that is accepted."""
    named = [one for one in actions if one.before.disputed_by or one.before.accepted_by]
    if not named:
        return {}
    with plan.transaction() as journal:
        hashes = list({one.key_hash for one in named})
        found, accepted = window_findings.disputes_since_plan(journal, plan.plan.id, hashes)
    of_key: dict[str, list[tuple[int, Finding]]] = defaultdict(list)
    for number, finding in found:
        of_key[finding.key_hash].append((number, finding))
    refused: dict[int, Refusal] = {}
    for action in named:
        key_hash, disputed_by = action.key_hash, action.before.disputed_by or DisputedBy()
        kept = [one for one in action.before.accepted_by if (one, key_hash) in accepted]
        disputing = [one for one in of_key.get(key_hash, ()) if disputed_by.counts(one[1])]
        if kept:
            refused[action.seq] = refusal_by_acceptance(kept[0])
        elif disputing:
            source, _, target = action.hop.partition("→")
            number, finding = disputing[0]
            refused[action.seq] = refusal_by_dispute(finding, number, (source, target))
    return refused
