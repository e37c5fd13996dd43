"""Test that a plan leaves accepted findings as they are, and still knows of them."""

import pytest

from makewhole.compensation.planning.draft import draft_batch
from makewhole.model.pipeline import Remedy
from makewhole.model.verdict import Verdict
from tests.unit.compensation.planning.drafted import finding_of, pipeline_of

pytestmark = pytest.mark.unit

LEDGER_HOP, STORE_HOP = "ledger→topic", "topic→store"


def test_an_accepted_finding_has_no_action_and_no_refusal() -> None:
    found = [finding_of(key, Verdict.MISSING, STORE_HOP) for key in ("a", "b")]
    accepted = {(STORE_HOP, found[0].key_hash)}

    batch = draft_batch(pipeline_of(), found, accepted=accepted)

    assert ([draft.action.key for _, draft in batch.drafts], batch.refusals, batch.actions) == (["b"], [], 1)


def test_what_an_accepted_finding_says_still_counts_for_others_of_its_key() -> None:
    """The row of a key that the topic lacks is not extra, whether the loss is accepted or not."""
    lost = finding_of("a", Verdict.MISSING, LEDGER_HOP)
    extra = finding_of("a", Verdict.UNEXPECTED, STORE_HOP)
    pipeline = pipeline_of(unexpected=Remedy.QUARANTINE)
    assert len(draft_batch(pipeline, [extra]).drafts) == 1

    batch = draft_batch(pipeline, [lost, extra], accepted={(LEDGER_HOP, lost.key_hash)})

    assert batch.drafts == []
