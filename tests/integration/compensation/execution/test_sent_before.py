"""Test that a record is not sent once more while one that an earlier plan sent still stands in front of a loader."""

from datetime import timedelta

import pytest

from makewhole.model.hops import Remedy
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.verdict import Verdict
from tests.integration.compensation.preview.dry_runs import looked
from tests.integration.compensation.world import PlanWorld
from tests.world.topics import commit_group, delete_records

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

HOP, LOADER = "flights→warehouse", "warehouse-loader"
DONE = ("done", None)
STILL_BEFORE = (
    "refused",
    f"its record still stands in front of group {LOADER}, which would load it a second time when it goes on; mend the "
    "consumer, then run this window again",
)


@pytest.fixture
def sent_once(world: PlanWorld) -> PlanWorld:
    """K0 was sent again by a revision before; its loader has passed the original, and nothing more."""
    world.change_hop(HOP, consumer_group=LOADER)
    world.send(range(1))
    commit_group(world.bootstrap, LOADER, world.topic, 1)
    assert redeliver(world) == DONE
    return world


def redeliver(world: PlanWorld) -> tuple[str | None, str | None]:
    """Run the plan of a new revision that misses K0; return what became of it."""
    plan = world.plan([world.finding(0, Verdict.MISSING)])
    world.run(plan.id)
    return world.outcomes(plan.id)["K0"]


def test_what_stands_in_front_of_its_loader_is_not_sent_once_more(sent_once: PlanWorld) -> None:
    world = sent_once

    assert redeliver(world) == STILL_BEFORE
    assert len(world.replayed()) == 1

    (sent,) = world.replayed()
    commit_group(world.bootstrap, LOADER, world.topic, sent.offset + 1)
    assert redeliver(world) == DONE
    assert len(world.replayed()) == 2


def test_the_dry_run_counts_it(sent_once: PlanWorld) -> None:
    plan = sent_once.plan([sent_once.finding(0, Verdict.MISSING)])

    (part,) = looked(sent_once, plan).parts

    assert [(str(refusal), count) for refusal, count in part.reasons.items()] == [(STILL_BEFORE[1], 1)]


def test_no_row_is_written_beside_a_record_that_is_still_to_come(sent_once: PlanWorld) -> None:
    world = sent_once
    world.remedies(HOP, missing=Remedy.UPSERT)

    assert redeliver(world) == STILL_BEFORE
    assert world.store() == []


def test_what_a_plan_of_another_window_sent_counts_as_well(sent_once: PlanWorld) -> None:
    world = sent_once
    world.journal_sql("alter table makewhole.plan disable trigger all; update makewhole.plan set number = 9")

    assert redeliver(world) == STILL_BEFORE


def test_the_readers_of_the_replay_topic_are_asked(world: PlanWorld) -> None:
    topic = world.add_topic("retry")
    world.change_hop(HOP, consumer_group=LOADER, redeliver_to="retry")
    world.send(range(1))
    commit_group(world.bootstrap, LOADER, world.topic, 1)
    assert redeliver(world) == DONE

    assert redeliver(world) == (
        "refused",
        f"not known: a plan has sent a record of the key at {topic}/0:0, and nothing shows whether what loads "
        "warehouse is past it; it is taken to be when the record is older than pending.max_age",
    )
    commit_group(world.bootstrap, LOADER, topic, 0)
    assert redeliver(world) == STILL_BEFORE
    commit_group(world.bootstrap, LOADER, topic, 1)
    assert redeliver(world) == DONE
    assert len(world.records(topic)) == 2


def test_a_progress_without_topics_says_nothing_of_the_replay_topic(world: PlanWorld) -> None:
    """The sink's next offset of the source is that of the record behind the one in the replay topic."""
    topic = world.add_topic("retry")
    world.sql("create table dw.progress (part int, next_offset bigint)")
    world.sql("insert into dw.progress select part, 1 from generate_series(0, 2) part")
    progress = SinkProgress(table="dw.progress", partition="part", offset="next_offset")
    world.change_hop(HOP, progress=progress, redeliver_to="retry")
    world.send(range(1))
    assert redeliver(world) == DONE

    assert redeliver(world) == (
        "refused",
        f"not known: a plan has sent a record of the key at {topic}/0:0, and nothing shows whether what loads "
        "warehouse is past it; it is taken to be when the record is older than pending.max_age",
    )
    assert len(world.records(topic)) == 1


def test_where_no_reader_is_known_a_record_is_sent_again_when_it_is_older_than_a_key_may_be_pending(
    world: PlanWorld,
) -> None:
    world.send(range(1))
    assert redeliver(world) == DONE

    assert redeliver(world) == (
        "refused",
        f"not known: a plan has sent a record of the key at {world.topic}/0:1, and nothing shows whether what loads "
        f"warehouse is past it; write 'consumer_group' on hop {HOP}, or wait; it is taken to be when the record is "
        "older than pending.max_age",
    )
    age = world.pipeline.pending_max_age + timedelta(minutes=1)
    world.journal_sql("update makewhole.chunk set observed_at = observed_at - %s", age)
    assert redeliver(world) == DONE


def test_a_record_that_its_log_has_deleted_comes_to_no_loader(world: PlanWorld) -> None:
    world.send(range(1))
    assert redeliver(world) == DONE
    (sent,) = world.replayed()
    delete_records(world.admin, world.topic, {sent.partition: sent.offset + 1})

    assert redeliver(world) == DONE
