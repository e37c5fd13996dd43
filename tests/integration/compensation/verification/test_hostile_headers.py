"""Test that forged lineage headers vouch for nothing."""

from dataclasses import replace

import pytest

from makewhole.compensation.verification.committed_since import StartOffsets, written_actions_since
from makewhole.model.verdict import Verdict
from tests.integration.compensation.hostile import forge, judged, reversal
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


def test_a_record_that_claims_to_be_a_reversal_reverses_nothing(world: PlanWorld) -> None:
    """Verify asks the journal for the receipt and the topic for the record: either alone is a claim."""
    plan = reversal(world)
    topic = world.topic_point("reversals").topic
    forge(
        world.bootstrap,
        topic,
        [("makewhole-plan", plan.id), ("makewhole-seq", "0"), ("makewhole-reverses", "warehouse/dw.departures/(0,2)")],
    )

    assert written_actions_since(world.context, "reversals", StartOffsets(offsets={})).actions == {(plan.id, 0)}
    (item,) = judged(world)
    assert (item.outcome, item.reason) == ("open", "1 of its extra copies at warehouse were not taken back")

    world.journal_sql(
        "insert into makewhole.chunk (plan, target, chunk, actions, place) values (%s, 'reversals', 0, 1, 'forged')",
        plan.id,
    )
    forged = StartOffsets(offsets={"reversals": dict.fromkeys(range(3), 1)})
    (item,) = judged(world, forged)
    assert (item.outcome, item.reason) == (
        "open",
        f"no committed reversal by plan {plan.id} (action 0) is in reversals",
    )


@pytest.mark.parametrize("seq", ["٣", "-1", "0x0", " 0", "", "9" * 50, "\x1b[2J"])
def test_headers_that_are_no_numbers_are_no_marks(world: PlanWorld, seq: str) -> None:
    plan = reversal(world)
    topic = world.topic_point("reversals").topic
    forge(world.bootstrap, topic, [("makewhole-plan", plan.id), ("makewhole-seq", seq)])

    actions = written_actions_since(world.context, "reversals", StartOffsets(offsets={})).actions
    assert (plan.id, 0) not in actions


def test_lineage_headers_of_an_original_are_not_repeated_with_it(world: PlanWorld) -> None:
    world.send([1])
    position, record = next(iter(world.originals.items()))
    forged = [("makewhole-plan", b"x"), ("makewhole-reverses", b"y"), ("makewhole-seq", b"7"), ("note", b"kept")]
    world.originals[position] = replace(record, headers=tuple(forged))
    plan = world.plan([world.finding(1, Verdict.MISSING)])
    world.run(plan.id)

    (message,) = world.replayed()
    assert [name for name, _ in message.headers] == [
        "note",
        "makewhole-plan",
        "makewhole-window",
        "makewhole-seq",
        "makewhole-origin",
        "makewhole-chunk",
    ]
    assert dict(message.headers)["makewhole-plan"] == plan.id.encode()
