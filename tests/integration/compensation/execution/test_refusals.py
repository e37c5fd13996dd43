"""Test that plans do not run that are unapproved, changed, tampered with, stopped, forgotten or redirected."""

from dataclasses import replace
from datetime import timedelta

import pytest

from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.execution.control import stop
from makewhole.compensation.execution.pace import PlanProgress
from makewhole.compensation.execution.run_plan import RunOptions, run_plan
from makewhole.journal import leases
from makewhole.journal.database import connect as journal_connect
from makewhole.kafka.replay import MARKER_TOPIC
from makewhole.model.errors import CorruptionError, LeaseLostError, RefusedError, TransientError
from makewhole.model.pipeline import Approval
from makewhole.model.plan import Plan, PlanState
from makewhole.model.verdict import Verdict
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def test_a_plan_above_the_limit_waits_for_its_approval(world: PlanWorld) -> None:
    plan = _plan(world, above_actions=2)
    assert plan.state is PlanState.AWAITING_APPROVAL
    with pytest.raises(RefusedError, match="is awaiting_approval"):
        world.run(plan.id)
    policy = Approval(by=("oncall",))
    with pytest.raises(RefusedError, match="for another content"):
        record_answer(world.journal, plan.id, _answer("0" * 64), policy)
    with pytest.raises(RefusedError, match=r"viewer may not answer for plan .*; oncall may"):
        record_answer(world.journal, plan.id, _answer(plan.sha256, by="viewer"), policy)
    assert record_answer(world.journal, plan.id, _answer(plan.sha256), policy).state is PlanState.APPROVED
    assert record_answer(world.journal, plan.id, _answer(plan.sha256), policy).state is PlanState.APPROVED
    world.run(plan.id)
    assert len(world.replayed()) == 3


@pytest.mark.parametrize(
    ("decision", "reason"),
    [(Decision.REJECTED, "rejected by oncall"), (Decision.TIMED_OUT, "no answer came in time")],
)
def test_a_plan_that_was_not_approved_never_runs(world: PlanWorld, decision: Decision, reason: str) -> None:
    plan = _plan(world, above_actions=2)
    answer = replace(_answer(plan.sha256), decision=decision, by="oncall" if decision is Decision.REJECTED else None)
    assert record_answer(world.journal, plan.id, answer, Approval()).reason == reason
    with pytest.raises(RefusedError, match="waits for no answer"):
        record_answer(world.journal, plan.id, _answer(plan.sha256), Approval())
    with pytest.raises(RefusedError, match=f"is rejected: {reason}"):
        world.run(plan.id)
    assert world.replayed() == []


def test_an_approval_expires(world: PlanWorld) -> None:
    plan = _plan(world, above_actions=2)
    record_answer(world.journal, plan.id, _answer(plan.sha256), Approval(expires=timedelta(seconds=-1)))
    with pytest.raises(RefusedError, match="has expired"):
        world.run(plan.id)


def test_a_stopped_plan_ends_before_its_next_chunk_and_stays_stopped(world: PlanWorld) -> None:
    plan = _plan(world, records=15)

    def stop_now(progress: PlanProgress) -> None:
        stop(world.journal, plan.id, by="oncall", reason="wrong day")

    with pytest.raises(RefusedError, match=r"was stopped \(stopped by oncall: wrong day\)"):
        run_plan(world.journal, plan.id, world.targets, stop_now)
    assert len(world.replayed()) == 5
    with pytest.raises(RefusedError, match="is rejected"):
        world.run(plan.id)


def test_removed_receipts_are_not_taken_for_nothing_done(world: PlanWorld) -> None:
    world.sql("insert into dw.departures (id, delay) values ('K1', 1), ('K1', 1)")
    plan = world.plan([world.finding(1, Verdict.DUPLICATE)])
    world.run(plan.id)
    world.sql("delete from makewhole.receipt")
    with pytest.raises(CorruptionError, match="warehouse remembers 0 chunks"):
        world.run(plan.id)


def test_receipts_of_a_newer_runner_stop_an_older_one(world: PlanWorld) -> None:
    world.sql("insert into dw.departures (id, delay) select 'K' || n / 2, 1 from generate_series(0, 19) as n")
    plan = world.plan([world.finding(number, Verdict.DUPLICATE) for number in range(10)])

    def overtake(progress: PlanProgress) -> None:
        world.sql("update makewhole.receipt set lease_epoch = 7")

    with pytest.raises(LeaseLostError, match="a newer runner has been at warehouse"):
        run_plan(world.journal, plan.id, world.targets, overtake)
    assert world.sql("select count(*) from makewhole.quarantine") == [(5,)]


def test_a_lease_is_taken_over_by_its_own_name_at_once_and_by_others_when_it_expired(journal: str) -> None:
    with journal_connect(journal) as connection:
        first = leases.acquire(connection, "plan p", "task", 60)
        second = leases.acquire(connection, "plan p", "task", 60)
        assert (first.epoch, second.epoch) == (1, 2)
        with pytest.raises(LeaseLostError, match="plan p: another runner took over from task"):
            leases.renew(connection, first)
        with pytest.raises(TransientError, match="plan p is being worked on by task until"):
            leases.acquire(connection, "plan p", "other", 60)
        leases.release(connection, first)  # not its own any more: without effect
        with pytest.raises(TransientError):
            leases.acquire(connection, "plan p", "other", 60)
        leases.release(connection, second)
        assert leases.acquire(connection, "plan p", "other", 60).epoch == 3


def test_options_name_this_process_when_no_other_is_named() -> None:
    assert RunOptions().holder != RunOptions().holder


def test_the_marker_topic_has_one_partition(world: PlanWorld) -> None:
    world.run(_plan(world).id)
    metadata = world.admin.list_topics(MARKER_TOPIC, timeout=10)
    assert list(metadata.topics[MARKER_TOPIC].partitions) == [0]


def _plan(world: PlanWorld, *, records: int = 3, above_actions: int = 1000) -> Plan:
    world.pipeline = replace(world.pipeline, approval=Approval(above_actions=above_actions))
    world.send(range(records))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(records)])
    assert isinstance(plan, Plan)
    return plan


def _answer(sha256: str, by: str = "oncall") -> Answer:
    return Answer(sha256=sha256, decision=Decision.APPROVED, by=by, seen={"options": ["Approve"]})
