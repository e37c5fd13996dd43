"""Test that a dry run changes nothing, waits for no writer, holds nothing, and refuses what the run refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from makewhole.compensation.preview.dry_report import Forecast
from makewhole.compensation.preview.dry_run import dry_run
from makewhole.kafka.offsets import high_watermarks
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import CorruptionError, RefusedError
from makewhole.model.pipeline import Approval
from makewhole.model.plan import PlanState
from makewhole.postgres.write.dry_run import read_only_session
from tests.integration.compensation.preview.dry_runs import approve, looked, mixed, undo_of
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


# It changes nothing


@pytest.mark.parametrize("state", ["fresh", "undone"])
def test_nothing_is_different_after_it(world: PlanWorld, state: str) -> None:
    plan = mixed(world, redeliver=True)
    if state == "undone":
        world.run(plan.id)
        plan = undo_of(world, plan)
    before = everything(world)
    looked(world, plan)
    assert everything(world) == before


def test_the_server_itself_lets_it_write_nothing(world: PlanWorld) -> None:
    connection = world.postgres
    for statement in ("update dw.departures set note = ''", "select id from dw.departures for update"):
        with pytest.raises(Exception, match="ReadOnlySqlTransaction"), read_only_session(connection) as session:
            session.cursor().execute(statement)


def test_it_waits_for_no_writer(world: PlanWorld) -> None:
    plan = mixed(world)
    writer = psycopg2.connect(world.dsn)
    try:
        with writer.cursor() as cursor:
            cursor.execute("lock table dw.departures in exclusive mode")
            cursor.execute("update dw.departures set note = 'not committed'")
            assert looked(world, plan).count(Forecast.WOULD) == 9
    finally:
        writer.close()


def test_it_holds_no_lock_that_anybody_who_writes_waits_for(world: PlanWorld) -> None:
    plan = mixed(world)
    held: list[tuple[Any, ...]] = []

    def while_looking(*_: int) -> None:
        held.extend(world.sql("select mode from pg_locks where granted and relation = 'dw.departures'::regclass"))
        world.sql("update dw.departures set note = note where id = 'K3'")

    dry_run(world.journal, plan.id, world.targets, progress=while_looking)
    assert {mode for (mode,) in held} <= {"AccessShareLock"}


def test_one_who_may_only_read_may_look(world: PlanWorld) -> None:
    plan = mixed(world)
    world.sql(
        "create role looker login password 'look'; grant usage on schema dw to looker;"
        "grant select on dw.departures to looker"
    )
    try:
        dsn = psycopg2.extensions.make_dsn(world.dsn, user="looker", password="look")
        assert looked(replace(world, dsn=dsn), plan).count(Forecast.WOULD) == 9
    finally:
        world.sql("drop owned by looker; drop role looker")


# It refuses what the run refuses


def test_a_changed_plan_is_not_shown(world: PlanWorld) -> None:
    plan = mixed(world)
    world.journal_sql("update makewhole.planned_action set key = 'K99' where seq = 1")
    with pytest.raises(RefusedError, match="is not the one that was frozen"):
        looked(world, plan)


def test_a_changed_payload_file_is_not_shown(world: PlanWorld) -> None:
    plan = mixed(world)
    Path(str(plan.payload_uri)).write_bytes(b"PAR1")
    with pytest.raises(CorruptionError, match="is not the one that the plan froze"):
        looked(world, plan)


def test_receipts_that_were_removed_are_not_passed_over(world: PlanWorld) -> None:
    plan = mixed(world)
    world.run(plan.id)
    world.sql("delete from makewhole.receipt where chunk = 1")
    with pytest.raises(CorruptionError, match="remembers 1 chunks of this plan and the journal has seen 2"):
        looked(world, plan)


def test_it_says_why_the_plan_would_not_start(world: PlanWorld) -> None:
    world.pipeline = replace(world.pipeline, approval=Approval(above_actions=0))
    plan = mixed(world)
    assert plan.state is PlanState.AWAITING_APPROVAL
    assert looked(world, plan).stopped_by == f"plan {plan.id} is awaiting_approval"
    approve(world, plan)
    assert looked(world, plan).stopped_by is None


# What the tests do


def everything(world: PlanWorld) -> dict[str, Any]:
    """All tables of all schemas of both databases, row by row with their versions, and where every topic ends."""
    state: dict[str, Any] = {}
    for name, sql in (("target", world.sql), ("journal", world.journal_sql)):
        tables = sql(
            "select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables "
            "where schemaname not in ('pg_catalog', 'information_schema') order by 1"
        )
        for (place,) in tables:
            rows = sql(f"select ctid::text, xmin::text, xmax::text, (t.*)::text from {place} t order by 1")
            state[f"{name} {place}"] = rows
    kafka = world.kafka
    assert isinstance(kafka, KafkaConnection)
    state["topic"] = high_watermarks(kafka, world.topic)
    return state
