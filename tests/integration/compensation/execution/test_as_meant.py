"""Test that an upsert leaves a row that compares equal to its record, or leaves the row alone and says so."""

from dataclasses import replace

import pytest

from makewhole.compensation.freezing.sources import SourceRecord
from makewhole.compensation.preview.dry_report import Forecast
from makewhole.model.pipeline import Remedy
from makewhole.model.verdict import Verdict
from tests.integration.compensation.preview.dry_runs import looked
from tests.integration.compensation.world import BORN_MS, PARTITIONS, PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

HOP = "flights→warehouse"
WAITS = (
    "has no unique index on its key: other writers of the table wait during 1 chunk of up to 2 actions, each for as "
    "long as its transaction takes (about 1 s for 10,000 actions); readers do not"
)


@pytest.fixture
def timed(world: PlanWorld) -> PlanWorld:
    """The store has times without a zone; one of them is compared, and the load time has no default."""
    world.sql(
        "drop table dw.departures;"
        "create table dw.departures (id text primary key, left_at timestamp, seen_at timestamp, "
        "gate text default 'A1', delay real, loaded_at timestamptz)"
    )
    world.pipeline = replace(world.pipeline, compare={"left_at": "timestamp", "gate": "string"})
    world.remedies(HOP, missing=Remedy.UPSERT)
    return world


def put(world: PlanWorld, number: int, fields: str) -> None:
    """Put a record into the archive."""
    position = (number % PARTITIONS, number)
    world.originals[position] = SourceRecord(
        partition=position[0],
        offset=number,
        key=f"K{number}".encode(),
        value=f'{{"id": "K{number}"{fields}}}'.encode(),
        headers=(),
        timestamp_ms=BORN_MS,
    )


def test_a_moment_with_an_offset_is_written_as_the_moment_that_it_is(timed: PlanWorld) -> None:
    for number in range(2):
        put(
            timed, number, ', "left_at": "2013-01-01T12:00:00+02:00", "seen_at": "2013-01-01 23:30 -05:00", "gate": "B"'
        )
    timed.sql("insert into dw.departures (id, left_at) values ('K1', '2013-01-01 12:00:00')")
    plan = timed.plan([timed.finding(0, Verdict.MISSING), timed.finding(1, Verdict.MISMATCHED)])
    timed.run(plan.id)
    assert timed.sql("select id, left_at::text, seen_at::text, gate from dw.departures order by id") == [
        ("K0", "2013-01-01 10:00:00", "2013-01-02 04:30:00", "B"),
        ("K1", "2013-01-01 10:00:00", "2013-01-02 04:30:00", "B"),
    ]


def test_a_field_that_the_record_lacks_is_written_as_null(timed: PlanWorld) -> None:
    for number in range(2):
        put(timed, number, "")
    timed.sql("insert into dw.departures (id, left_at, gate) values ('K1', '2013-01-01', 'B')")
    plan = timed.plan([timed.finding(0, Verdict.MISSING), timed.finding(1, Verdict.MISMATCHED)])
    timed.run(plan.id)
    assert timed.sql("select id, left_at, gate from dw.departures order by id") == [
        ("K0", None, None),
        ("K1", None, None),
    ]


def test_a_row_that_would_not_compare_equal_is_refused_and_its_neighbours_are_not(timed: PlanWorld) -> None:
    timed.pipeline = replace(timed.pipeline, compare={"delay": "double"})
    for number, delay in enumerate(["0.1", "0.5"]):
        put(timed, number, f', "delay": {delay}')
    plan = timed.plan([timed.finding(number, Verdict.MISSING) for number in range(2)])
    told = looked(timed, plan)
    timed.run(plan.id)
    reason = (
        "unfit: written to this table, delay would not hold what the record is compared by (the type of the column, a "
        "trigger or a generated column makes another value of it)"
    )
    assert timed.outcomes(plan.id) == {"K0": ("refused", reason), "K1": ("done", None)}
    assert {sample.action.key: sample.reason for sample in told.samples} == {"K0": reason, "K1": None}
    assert timed.sql("select id, delay from dw.departures") == [("K1", 0.5)]


@pytest.mark.parametrize("other", ["left_at + interval '1 h'", "null"])
def test_a_trigger_that_makes_another_value_is_found_before_the_commit(timed: PlanWorld, other: str) -> None:
    timed.sql(
        "create function dw.shift() returns trigger language plpgsql as "
        f"$$ begin update dw.departures set left_at = {other} where id = new.id; return null; end $$;"
        "create trigger shift after insert on dw.departures for each row execute function dw.shift()"
    )
    put(timed, 0, ', "left_at": "2013-01-01T12:00:00Z", "gate": "B"')
    plan = timed.plan([timed.finding(0, Verdict.MISSING)])
    timed.run(plan.id)
    ((outcome, reason),) = timed.outcomes(plan.id).values()
    assert (outcome, (reason or "")[:39]) == ("refused", "unfit: written to this table, left_at w")
    assert timed.sql("select count(*) from dw.departures") == [(0,)]


def test_the_dry_run_says_what_stays_empty_and_who_waits(timed: PlanWorld) -> None:
    for number in range(2):
        put(timed, number, ', "left_at": "2013-01-01T12:00:00Z"')
    plan = timed.plan([timed.finding(number, Verdict.MISSING) for number in range(2)])
    (table,) = looked(timed, plan).tables
    assert (table.left_empty, table.locked_chunks) == ({"seen_at": 2, "delay": 2, "loaded_at": 2}, 0)
    timed.sql("alter table dw.departures drop constraint departures_pkey")
    told = looked(timed, plan)
    assert told.count(Forecast.WOULD) == 2
    assert any(WAITS in sentence for sentence in told.tables[0].sentences())


def test_the_plan_says_that_it_makes_writers_wait_where_no_index_is_unique(timed: PlanWorld) -> None:
    put(timed, 0, ', "left_at": "2013-01-01T12:00:00Z"')
    assert "locks_table" not in timed.freeze_plan([timed.finding(0, Verdict.MISSING)]).actions[0].before
    timed.sql("alter table dw.departures drop constraint departures_pkey")
    assert timed.freeze_plan([timed.finding(0, Verdict.MISSING)]).actions[0].before["locks_table"] is True
