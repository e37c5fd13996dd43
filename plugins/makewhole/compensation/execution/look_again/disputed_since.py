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
    named = [candidate for candidate in actions if candidate.before.disputed_by or candidate.before.accepted_by]
    if not named:
        return {}
    with plan.transaction() as journal:
        hashes = list({candidate.key_hash for candidate in named})
        disputes, accepted = window_findings.disputes_since_plan(journal, plan.plan.id, hashes)
    of_key: dict[str, list[tuple[int, Finding]]] = defaultdict(list)
    for number, finding in disputes:
        of_key[finding.key_hash].append((number, finding))
    refused: dict[int, Refusal] = {}
    for action in named:
        key_hash, disputed_by = action.key_hash, action.before.disputed_by or DisputedBy()
        kept = [hop for hop in action.before.accepted_by if (hop, key_hash) in accepted]
        disputing = [dispute for dispute in of_key.get(key_hash, ()) if disputed_by.counts(dispute[1])]
        if kept:
            refused[action.seq] = refusal_by_acceptance(kept[0])
        elif disputing:
            source, _, target = action.hop.partition("→")
            number, finding = disputing[0]
            refused[action.seq] = refusal_by_dispute(finding, number, (source, target))
    return refused
