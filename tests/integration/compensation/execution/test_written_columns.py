"""Test that an upsert writes what was compared and what the file names, and that the row then equals its record."""

from dataclasses import replace

import pytest

from makewhole.compensation.preview.dry_report import Forecast
from makewhole.compensation.sources.sources import SourceRecord
from makewhole.model.hops import Remedy
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Verdict
from makewhole.tables.row_change import ColumnChange, HowFilled, RowChange
from tests.integration.compensation.preview.dry_runs import looked
from tests.integration.compensation.world import BORN_MS, PARTITIONS, PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

HOP = "flights→warehouse"
WAITS = (
    "has no unique index on its key: other writers of the table wait during 1 chunk of up to 2 actions, each for as "
    "long as its transaction takes (about 1 s for 10,000 actions); readers do not"
)
PLACEHOLDER = "__debezium_unavailable_value"


@pytest.fixture
def timed(world: PlanWorld) -> PlanWorld:
    """The store has times without a zone, one of them compared, and the load time has no default."""
    world.sql(
        "drop table dw.departures;"
        "create table dw.departures (id text primary key, left_at timestamp, seen_at timestamp, "
        "gate text default 'A1', delay real, loaded_at timestamptz)"
    )
    world.pipeline = replace(world.pipeline, compare={"left_at": "timestamp", "gate": "string"})
    world.remedies(HOP, missing=Remedy.UPSERT)
    world.change_hop(HOP, write={"seen_at": "timestamp"}, leave=("delay",))
    return world


def put(world: PlanWorld, number: int, fields: str) -> None:
    """Put a record into the archive."""
    position = (number % PARTITIONS, number)
    world.originals[position] = SourceRecord(
        partition=position[0],
        offset=number,
        key=f"K{number}".encode(),
        value=f'{{"id": "K{number}"{fields}}}'.encode(),
        headers=(("v", b"7"),),
        timestamp_ms=BORN_MS,
    )


def test_a_moment_with_an_offset_is_written_as_the_moment_that_it_is(timed: PlanWorld) -> None:
    for number in range(2):
        put(
            timed,
            number,
            ', "left_at": "2013-01-01T12:00:00+02:00", "seen_at": "2013-01-01 23:30-05:00", "gate": "B"',
        )
    timed.sql("insert into dw.departures (id, left_at) values ('K1', '2013-01-01 12:00:00')")
    plan = timed.plan([timed.finding(0, Verdict.MISSING), timed.finding(1, Verdict.MISMATCHED)])
    timed.run(plan.id)
    assert timed.sql("select id, left_at::text, seen_at::text, gate from dw.departures order by id") == [
        ("K0", "2013-01-01 10:00:00", "2013-01-02 04:30:00", "B"),
        ("K1", "2013-01-01 10:00:00", None, "B"),
    ]


def test_a_field_that_the_record_has_not_replaces_no_value_and_null_does(timed: PlanWorld) -> None:
    for number, fields in enumerate(["", "", ', "left_at": null, "seen_at": null, "gate": null']):
        put(timed, number, fields)
    timed.sql("insert into dw.departures (id, gate) values ('K1', 'B'), ('K2', 'B')")
    findings = [timed.finding(number, Verdict.MISMATCHED if number else Verdict.MISSING) for number in range(3)]
    plan = timed.plan(findings)
    timed.run(plan.id)
    assert timed.sql("select id, left_at, gate from dw.departures order by id") == [
        ("K0", None, None),
        ("K1", None, "B"),
        ("K2", None, None),
    ]


def test_a_row_that_would_not_compare_equal_is_refused_and_its_neighbours_are_not(timed: PlanWorld) -> None:
    timed.pipeline = replace(timed.pipeline, compare={"delay": "double"})
    timed.change_hop(HOP, leave=("left_at",))
    for number, delay in enumerate(["0.123456789", "0.5"]):
        put(timed, number, f', "delay": {delay}')
    plan = timed.plan([timed.finding(number, Verdict.MISSING) for number in range(2)])
    shown = looked(timed, plan)
    timed.run(plan.id)
    reason = (
        "unfit: written to this table, delay would not hold what the record is compared by (the type of the column, a "
        "trigger or a generated column makes another value of it)"
    )
    assert timed.outcomes(plan.id) == {"K0": ("refused", reason), "K1": ("done", None)}
    assert {sample.action.key: sample.reason for sample in shown.samples} == {"K0": reason, "K1": None}
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


def test_the_dry_run_names_what_stays_empty_and_who_waits(timed: PlanWorld) -> None:
    for number in range(2):
        put(timed, number, ', "left_at": "2013-01-01T12:00:00Z"')
    plan = timed.plan([timed.finding(number, Verdict.MISSING) for number in range(2)])
    (table,) = looked(timed, plan).tables
    assert (table.left_empty, table.locked_chunks) == ({"delay": 2}, 0)
    timed.sql("alter table dw.departures drop constraint departures_pkey")
    shown = looked(timed, plan)
    assert shown.count(Forecast.WOULD) == 2
    assert any(WAITS in sentence for sentence in shown.tables[0].sentences())


def test_the_plan_says_that_it_makes_writers_wait_where_no_index_is_unique(timed: PlanWorld) -> None:
    put(timed, 0, ', "left_at": "2013-01-01T12:00:00Z"')
    assert "locks_table" not in timed.freeze_plan([timed.finding(0, Verdict.MISSING)]).actions[0].before.fields
    timed.sql("alter table dw.departures drop constraint departures_pkey")
    assert timed.freeze_plan([timed.finding(0, Verdict.MISSING)]).actions[0].before.fields["locks_table"] is True


# Nothing but what is compared, and what the file names


@pytest.fixture
def own(world: PlanWorld) -> PlanWorld:
    """The store has columns of its own beside the record's, and some of the same name with another meaning."""
    world.sql(
        "drop table dw.departures;"
        "create table dw.departures (seq bigint generated by default as identity, id text primary key, "
        "delay numeric(6,1), status text not null default 'new', note text, lasts interval, ver bigint, "
        "channel text, remark text, loaded_at timestamp)"
    )
    topic = replace(world.topic_point(), version="header:v")
    world.change_points(topic, replace(world.table_point(), version="ver"))
    world.remedies(HOP, missing=Remedy.UPSERT)
    world.change_hop(HOP, write={"channel": "string"}, leave=("remark", "note", "lasts"))
    return world


RECORD = (
    ', "seq": 4711, "delay": 5, "status": "new", "note": "other", "lasts": 5000000, "ver": 1, "channel": "web", '
    '"remark": "r", "loaded_at": "1970-01-01T00:00:00Z"'
)


def test_of_a_row_that_differs_nothing_else_changes(own: PlanWorld) -> None:
    put(own, 1, RECORD)
    own.sql("insert into dw.departures values (1, 'K1', 7.0, 'sent', 'ours', '5 s', 6, 'shop', 'ours', '2013-01-01')")
    plan = own.plan([own.finding(1, Verdict.MISMATCHED)])
    shown = looked(own, plan)
    own.run(plan.id)
    assert own.outcomes(plan.id) == {"K1": ("done", None)}
    assert own.sql("select t::text from dw.departures as t") == [
        ('(1,K1,5.0,sent,ours,00:00:05,7,shop,ours,"2013-01-01 00:00:00")',)
    ]
    change = shown.samples[0].shown
    assert isinstance(change, RowChange)
    assert change.columns == (
        ColumnChange(name="delay", how=HowFilled.WRITTEN, before="7.0", after="5.0"),
        ColumnChange(name="ver", how=HowFilled.WRITTEN, before="6", after="7"),
    )


def test_a_row_of_a_newer_version_is_left_alone_though_the_topic_names_none(own: PlanWorld) -> None:
    own.change_points(replace(own.topic_point(), version=None))
    put(own, 1, RECORD)
    own.sql("insert into dw.departures (id, delay, ver) values ('K1', 7, 6)")
    plan = own.plan([own.finding(1, Verdict.MISMATCHED)])
    own.run(plan.id)
    assert own.outcomes(plan.id) == {"K1": ("refused", "stale: the row is of a newer version than the record")}
    own.sql("update dw.departures set ver = 0")
    again = own.plan([own.finding(1, Verdict.MISMATCHED)])
    own.run(again.id)
    assert own.sql("select delay, ver from dw.departures") == [(5, 0)]


def test_a_new_row_has_what_is_accounted_for(own: PlanWorld) -> None:
    put(own, 1, RECORD)
    plan = own.plan([own.finding(1, Verdict.MISSING)])
    change = looked(own, plan).samples[0].shown
    own.run(plan.id)
    assert own.outcomes(plan.id) == {"K1": ("done", None)}
    assert own.sql("select seq, id, delay, status, note, lasts, ver, channel, remark from dw.departures") == [
        (1, "K1", 5, "new", None, None, 7, "web", None)
    ]
    late = "select (now() at time zone 'UTC') - loaded_at between interval '0' and interval '2 min'"
    assert own.sql(f"{late} from dw.departures") == [(True,)]
    assert isinstance(change, RowChange)
    assert {column.name: (column.how.value, column.after) for column in change.columns} == {
        "seq": ("the table's own", None),
        "id": ("written", "K1"),
        "delay": ("written", "5.0"),
        "status": ("the table's own", None),
        "note": ("left empty", None),
        "lasts": ("left empty", None),
        "ver": ("written", "7"),
        "channel": ("written", "web"),
        "remark": ("left empty", None),
        "loaded_at": ("the moment of the write", None),
    }


def test_half_a_row_is_not_written(own: PlanWorld) -> None:
    """A column that came after the window was opened; then the window itself is refused."""
    put(own, 1, RECORD)
    own.sql("alter table dw.departures add column customer text")
    frozen = own.freeze([own.finding(1, Verdict.MISSING)])
    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(
            RefusalCode.UNFIT,
            "nothing says what customer of a new row holds; write it under `write` or `leave` of hop flights→warehouse",
        )
    ]


@pytest.mark.parametrize(
    ("column", "kind", "raw"),
    [("lasts", "string", "5000000"), ("lasts", "bigint", "5000000"), ("channel", "string", '{"name": "web"}')],
)
def test_what_is_written_reads_back_as_the_record_has_it(own: PlanWorld, column: str, kind: str, raw: str) -> None:
    """Five seconds in microseconds are 57 days to an interval."""
    own.change_hop(HOP, write={"channel": "string", column: kind}, leave=tuple({"remark", "note", "lasts"} - {column}))
    put(own, 1, f', "delay": 5, "channel": "web", "{column}": {raw}')
    plan = own.plan([own.finding(1, Verdict.MISSING)])
    own.run(plan.id)
    ((outcome, reason),) = own.outcomes(plan.id).values()
    assert outcome == "refused"
    assert Refusal.of_text(reason or "").code is RefusalCode.UNFIT
    assert own.sql("select count(*) from dw.departures") == [(0,)]


def test_a_placeholder_of_the_capture_is_never_written(own: PlanWorld) -> None:
    own.pipeline = replace(own.pipeline, compare={"delay": "int", "note": "string"})
    own.change_hop(HOP, leave=("remark", "lasts"))
    put(own, 1, f', "delay": 5, "note": "{PLACEHOLDER}"')
    put(own, 2, f', "delay": 5, "note": "a", "channel": "{PLACEHOLDER}"')
    own.sql("insert into dw.departures (id, delay, note) values ('K1', 7, 'a long text')")
    frozen = own.freeze([own.finding(1, Verdict.MISMATCHED), own.finding(2, Verdict.MISSING)])
    assert sorted((refused.refusal.code, refused.refusal.text[:43]) for refused in frozen.refusals) == [
        (RefusalCode.UNFIT, "of channel the record has only the placehol"),
        (RefusalCode.UNFIT, "of note the record has only the placeholder"),
    ]
    assert own.sql("select delay, note from dw.departures") == [(7, "a long text")]
