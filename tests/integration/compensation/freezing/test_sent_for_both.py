"""Test that a record which was sent for several hops is not sent again for one of them by a later plan."""

from dataclasses import replace

import pytest

from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Verdict
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

HOPS = ("flights→warehouse", "flights→archive")


def test_a_record_that_was_sent_for_two_stores_is_not_sent_again_for_either(world: PlanWorld) -> None:
    """The plan of revision 1 sends while revision 2 is judged, and no store has loaded the record yet."""
    topic = world.add_topic("replays")
    world.sql("create table dw.archive (like dw.departures including all)")
    world.change_points(replace(world.table_point(), name="archive", table="dw.archive"))
    world.change_hop(HOPS[0], redeliver_to="replays")
    _, hop = world.pipeline.hops
    world.pipeline = replace(world.pipeline, hops=(*world.pipeline.hops, replace(hop, target="archive")))
    world.send([1])
    findings = [world.finding(1, Verdict.MISSING, name) for name in HOPS]
    first = world.plan(findings)
    assert first.counts == {"redeliver": 1}
    world.open_revision(findings)
    world.run(first.id)

    frozen = world.freeze(findings, is_new=False)
    if frozen.plan is not None:
        world.run(frozen.plan.id)

    assert [record.key_text for record in world.records(topic)] == ["K1"]
    refusal = Refusal(RefusalCode.STALE, f"plan {first.id} wrote this key after it was judged; run the window again")
    assert {(refused.hop, refused.refusal) for refused in frozen.refusals} == {(name, refusal) for name in HOPS}
