"""Findings that are drafted batch by batch give the plan that all of them together give."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compensation.freezing.batches.draft_file import DraftFile
from makewhole.compensation.planning.draft import draft_batch, draft_plan, renumbered
from makewhole.model.verdict import Cause, Finding, Verdict
from tests.unit.compensation.planning.test_conflicts import pipeline

pytestmark = pytest.mark.unit

HOPS = ("ledger→raw", "raw→clean", "clean→store", "ledger→store", "gone→store")
VERDICTS = (Verdict.MISSING, Verdict.DUPLICATE, Verdict.UNEXPECTED, Verdict.MISMATCHED, Verdict.PENDING)
FOUND = st.dictionaries(
    st.tuples(st.sampled_from("abcdefg"), st.sampled_from(HOPS)), st.sampled_from(VERDICTS), max_size=20
)


@given(FOUND, st.integers(1, 4), st.integers(1, 3))
def test_batches_of_keys_give_the_plan_of_all_findings(
    verdicts: dict[tuple[str, str], Verdict], keys_together: int, size: int
) -> None:
    findings = [_finding(key, hop, verdict) for (key, hop), verdict in verdicts.items()]
    whole = draft_plan(pipeline(), findings, window_keys=1_000_000)

    by_key: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_key[finding.key_hash].append(finding)
    names = sorted(by_key)
    refusals, actions, keys = list[object](), 0, 0
    with DraftFile() as file:
        for first in range(0, len(names), keys_together):
            some = [of_name for name in names[first : first + keys_together] for of_name in by_key[name]]
            batch = draft_batch(pipeline(), some)
            file.add(batch.drafts)
            refusals += batch.refusals
            actions, keys = actions + batch.actions, keys + batch.keys
        drafts = renumbered(draft for some in file.slices(size) for draft in some)

    assert drafts == whole.drafts
    assert sorted(map(repr, refusals)) == sorted(map(repr, whole.refusals))
    assert (actions, keys) == (len(whole.drafts), len({draft.action.key_hash for draft in whole.drafts}))


def _finding(key: str, hop: str, verdict: Verdict) -> Finding:
    evidence = {"source": [{"partition": 0, "offset": ord(key)}], "target_copies": 1}
    # The order of the hashes is not that of the keys.
    key_hash = f"{1000 - ord(key):032x}"
    return Finding(hop=hop, key=key, key_hash=key_hash, verdict=verdict, cause=Cause.NOT_IN_SOURCE, evidence=evidence)
