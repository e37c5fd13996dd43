"""Test that a plan over columns of other names, beside a prepared transaction, is done once wherever its runner dies.

Each statement and each commit of an undisturbed run is a point; a second runner takes up what the dead one left.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from makewhole.model.hops import Remedy
from makewhole.model.plan import Plan
from makewhole.model.verdict import Finding, Verdict
from tests.integration.compensation.world import PlanWorld
from tests.world.dying_sessions import KilledError, living
from tests.world.prepared import PreparedTransactions, prepared_transactions

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

INSERTED, HELD, CHANGED, LOCKED = 1, 2, 3, 4
RUNNER = "a task and its retries"


@pytest.fixture
def sink(world: PlanWorld) -> Iterator[PreparedTransactions]:
    """The sink of the store, whose columns the file calls otherwise, and in which a key has one row."""
    warehouse, flights = world.table_point(), world.topic_point()
    world.change_points(
        replace(warehouse, columns=(("minutes", "delay"),)), replace(flights, columns=(("minutes", "$.delay"),))
    )
    world.pipeline = replace(world.pipeline, compare={"minutes": "int"})
    world.remedies("flights→warehouse", missing=Remedy.UPSERT, mismatched=Remedy.UPSERT)
    world.sql("create unique index on dw.departures (id)")
    world.send(range(1, 5))
    with prepared_transactions(world.dsn) as sink:
        yield sink


def planned(world: PlanWorld, sink: PreparedTransactions) -> Plan:
    """Freeze a plan of four keys, of two of which a transaction that is prepared then holds the row."""
    sink.roll_all_back()
    world.sql("truncate dw.departures")
    world.sql("insert into dw.departures values ('K3', 99, 'kept', '2013-01-01'), ('K4', 99, 'kept', '2013-01-01')")
    findings: Sequence[Finding] = [
        *(world.finding(number, Verdict.MISSING) for number in (INSERTED, HELD)),
        *(world.finding(number, Verdict.MISMATCHED) for number in (CHANGED, LOCKED)),
    ]
    plan = world.plan(findings)
    sink.prepare(
        f"of {plan.id}",
        "insert into dw.departures (id, delay) values ('K2', 22)",
        "update dw.departures set note = 'of the sink' where id = 'K4'",
    )
    return plan


def assert_done_once(world: PlanWorld, sink: PreparedTransactions, plan: Plan) -> None:
    """Check rows, effects, receipts and outcomes; and what the transaction held, when that is committed."""
    outcomes = world.outcomes(plan.id)
    assert {key: outcome for key, (outcome, _) in outcomes.items()} == {
        "K1": "done",
        "K2": "refused",
        "K3": "done",
        "K4": "refused",
    }
    for key in ("K2", "K4"):
        assert str(outcomes[key][1]).startswith("in doubt: ")
    effects = "select kind, count(*) from makewhole.effect where plan = %s group by kind order by kind"
    assert world.sql(effects, plan.id) == [("inserted", 1), ("updated", 1)]
    receipts = "select count(*), sum(actions) from makewhole.receipt where plan = %s"
    chunks = world.journal_sql("select count(*), sum(actions) from makewhole.chunk where plan = %s", plan.id)
    assert world.sql(receipts, plan.id) == chunks
    assert world.journal_sql("select state from makewhole.plan where id = %s", plan.id) == [("done",)]
    rows = "select id, delay::int, note from dw.departures order by id"
    assert world.sql(rows) == [("K1", 1, None), ("K3", 3, "kept"), ("K4", 99, "kept")]
    sink.commit(f"of {plan.id}")
    assert world.sql(rows) == [("K1", 1, None), ("K2", 22, None), ("K3", 3, "kept"), ("K4", 99, "of the sink")]


def steps_of(world: PlanWorld, sink: PreparedTransactions) -> list[str]:
    """Return the steps of a run that nothing disturbs, where another one has made the tables of receipts before."""
    for _ in range(2):
        plan = planned(world, sink)
        with living() as life:
            world.run(plan.id, holder=RUNNER)
        assert_done_once(world, sink, plan)
    return life.steps


def die_and_go_on(world: PlanWorld, sink: PreparedTransactions, point: int) -> None:
    """Let a runner die at a point, and another one go on; how often a lease is renewed is not the same in every run."""
    plan = planned(world, sink)
    with living(dies_at=point) as life, suppress(KilledError):
        world.run(plan.id, holder=RUNNER)
    assert life.is_over or len(life.steps) <= point
    world.run(plan.id, holder=RUNNER)
    assert_done_once(world, sink, plan)


@pytest.mark.extended
def test_killed_at_every_statement_it_is_done_once(world: PlanWorld, sink: PreparedTransactions) -> None:
    """Takes long: rows that are held are waited for, at every point."""
    steps = steps_of(world, sink)
    assert steps.count("statement") >= 30
    for point in range(len(steps)):
        die_and_go_on(world, sink, point)
