"""Test a pipeline whose file names no remedy: its runs write nothing, end with gaps, and say what would be done."""

import pytest

from tests.e2e.scenarios.unattended import Observed

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

NOTHING = "nothing is written, because the remedy is `report`"
SENTENCES = [
    f"2 missing on outbox→orders: {NOTHING}",
    "`missing: produce` would send them into orders, from outbox: 2 actions at most",
    "To switch it on, write `compensation: {missing: produce}` on hop outbox→orders, or add it to what the hop has "
    "there",
    f"3 missing on orders→warehouse: {NOTHING}",
    "`missing: upsert` would write their rows into warehouse, from orders: 3 actions at most",
    "To switch it on, write `compensation: {missing: upsert}` on hop orders→warehouse, or add it to what the hop has "
    "there",
    f"2 duplicate on orders→warehouse: {NOTHING}",
    "`duplicate: quarantine` would move the rows too many in warehouse aside, restorable: 2 actions at most",
    "To switch it on, write `compensation: {duplicate: quarantine}` on hop orders→warehouse, or add it to what the hop "
    "has there",
]


def test_a_run_of_a_pipeline_that_observes_writes_nothing_and_exits_1(observed: Observed) -> None:
    assert observed.after == observed.before
    assert observed.exit_codes == (1, 1)
    assert (observed.document["state"], observed.document["plan"]) == ("gaps", None)
    assert observed.tasks["plan"] == "success"
    assert (observed.tasks["approve"], observed.tasks["compensate"], observed.tasks["certify"]) == (
        "skipped",
        "skipped",
        "failed",
    )


def test_what_would_be_done_is_reported_to_people_and_programs_and_in_the_logs_of_the_run(observed: Observed) -> None:
    output = " ".join(observed.output.split())
    for sentence in SENTENCES:
        assert sentence in output
        assert sentence in observed.plan_log
        assert sentence in observed.certify_log
    unanswered = observed.document["unanswered"]
    assert [
        sentence
        for window in unanswered
        for sentence in window["messages"]
        if "outbox→orders" not in window["messages"][0]
    ] == (SENTENCES[3:])
    assert unanswered[0] == {
        "from": "outbox",
        "to": "orders",
        "verdict": "missing",
        "keys": 2,
        "remedy": "produce",
        "line": "missing: produce",
        "does": "would send them into orders, from outbox",
        "drafted": 2,
        "actions": 2,
        "refused": {},
        "refused_as_a_whole": None,
        "needs_approval": False,
        "messages": SENTENCES[:3],
    }
