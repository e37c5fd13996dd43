"""Test tables as people have them: typed composite keys, partitions, identities, generated columns, cascades."""

from dataclasses import replace

import pytest

from makewhole.compensation.sources.sources import SourceRecord
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Remedy
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Cause, Finding, Verdict
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

HOP = "flights→warehouse"


@pytest.fixture
def odd(world: PlanWorld) -> PlanWorld:
    """The store has a composite key (integer, char), partitions, an identity and a generated column."""
    world.sql(
        "create table dw.odd (year int not null, carrier char(2) not null, delay numeric, info jsonb, "
        "id bigint generated always as identity, twice numeric generated always as (delay * 2) stored, "
        "loaded_at timestamp default '2013-01-01') partition by list (year);"
        "create table dw.odd_2013 partition of dw.odd for values in (2013);"
        "create table dw.odd_2014 partition of dw.odd for values in (2014)"
    )
    world.change_points(
        replace(world.table_point(), table="dw.odd", key=("year", "carrier")),
        replace(world.topic_point(), key=("kafka.key",)),
    )
    world.pipeline = replace(world.pipeline, compare={"delay": "decimal(38,2)"})
    world.remedies(HOP, missing=Remedy.UPSERT)
    world.change_hop(HOP, leave=("info",))
    return world


def test_rows_are_inserted_mended_and_moved_in_a_partitioned_table(odd: PlanWorld) -> None:
    odd.sql(
        "insert into dw.odd (year, carrier, delay) values (2013, 'UA', 1), (2014, 'UA', 1), (2014, 'UA', 1), "
        "(2013, 'AA', 99)"
    )
    findings = [
        _finding(odd, 0, '["2013","9E"]', Verdict.MISSING, '{"carrier": "9E", "delay": 1.50, "info": {"n": 1.10}}'),
        _finding(odd, 1, '["2013","AA"]', Verdict.MISMATCHED, '{"year": 2013, "delay": 12345678901234567890.1}'),
        _finding(odd, 2, '["2014","UA"]', Verdict.DUPLICATE, "{}"),
    ]
    plan = odd.plan(findings)
    odd.run(plan.id)
    assert odd.sql("select year, carrier, delay::text, info::text, twice::text from dw.odd order by 1, 2") == [
        (2013, "9E", "1.50", None, "3.00"),
        (2013, "AA", "12345678901234567890.1", None, "24691357802469135780.2"),
        (2013, "UA", "1", None, "2"),
        (2014, "UA", "1", None, "2"),
    ]
    ((restore, moved),) = odd.sql("select how_to_restore, row->>'id' from makewhole.quarantine")
    odd.sql(restore)
    assert odd.sql("select id::text from dw.odd where year = 2014 order by id") == [("2",), (moved,)]


def test_a_key_that_the_columns_cannot_hold_is_refused_without_quoting_it(odd: PlanWorld) -> None:
    findings = [
        _finding(odd, 0, '["MMXIII","UA"]', Verdict.MISSING, '{"delay": 1}'),
        _finding(odd, 1, '["2013","UA"]', Verdict.MISSING, '{"delay": "late"}'),
        _finding(odd, 2, '["2013","AA"]', Verdict.MISSING, "no json"),
        _finding(odd, 3, '["2013","B6"]', Verdict.MISSING, '{"delay": 1, "carrier": "XX"}'),
        _finding(odd, 4, '["2013","DL"]', Verdict.MISSING, '{"carrier": "DL"}'),
    ]
    frozen = odd.freeze_plan(findings)
    assert sorted((refused.refusal for refused in frozen.refusals), key=str) == [
        Refusal(
            RefusalCode.UNFIT,
            "the key columns of dw.odd (year integer, carrier bpchar) cannot hold this key: "
            "InvalidTextRepresentation (22P02)",
        ),
        Refusal(RefusalCode.UNFIT, "the record's value is not JSON"),
    ]
    odd.run(frozen.plan.id)
    assert odd.outcomes(frozen.plan.id) == {
        '["2013","UA"]': (
            "refused",
            "unfit: the table does not take it: InvalidTextRepresentation (22P02): column delay",
        ),
        '["2013","B6"]': ("done", None),
        '["2013","DL"]': ("done", None),
    }
    assert odd.sql("select carrier, delay from dw.odd order by carrier") == [("B6", 1), ("DL", None)]


def test_rows_that_others_hang_on_by_cascade_are_not_quarantined(world: PlanWorld) -> None:
    world.sql(
        "alter table dw.departures add column n int unique;"
        "create table dw.bags (n int references dw.departures (n) on delete cascade);"
        "insert into dw.departures (id, delay, n) values ('K0', 1, 1), ('K0', 1, 2)"
    )
    frozen = world.freeze([world.finding(0, Verdict.DUPLICATE)])
    assert frozen.plan is None
    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(
            RefusalCode.OTHER,
            "rows of dw.departures cannot be quarantined: deleting one also changes other tables through bags_n_fkey; "
            "repair these duplicates by hand",
        )
    ]


def test_rows_that_others_hang_on_through_one_partition_are_not_quarantined(world: PlanWorld) -> None:
    world.sql(
        "drop table dw.departures;"
        "create table dw.departures (id text, delay numeric(6,1), note text, loaded_at timestamptz default now())"
        " partition by list (note);"
        "create table dw.early partition of dw.departures for values in ('early');"
        "create table dw.late partition of dw.departures for values in ('late');"
        "alter table dw.late add unique (delay);"
        "create table dw.bags (delay numeric(6,1) references dw.late (delay) on delete cascade);"
        "insert into dw.departures (id, delay, note) values ('K0', 1, 'early'), ('K0', 1, 'late');"
        "insert into dw.bags values (1)"
    )
    frozen = world.freeze([world.finding(0, Verdict.DUPLICATE)])
    assert frozen.plan is None
    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(
            RefusalCode.OTHER,
            "rows of dw.departures cannot be quarantined: deleting one also changes other tables through "
            "bags_delay_fkey; repair these duplicates by hand",
        )
    ]


def test_rows_whose_deletion_runs_a_trigger_are_not_quarantined_not_even_if_it_came_later(world: PlanWorld) -> None:
    world.sql("insert into dw.departures (id, delay) values ('K0', 1), ('K0', 1), ('K1', 1), ('K1', 1)")
    frozen = world.freeze_plan([world.finding(0, Verdict.DUPLICATE)])
    world.sql(
        "create table dw.gone (id text);"
        "create function dw.note_gone() returns trigger language plpgsql as"
        " $$ begin insert into dw.gone values (old.id); return null; end $$;"
        "create trigger note_gone after delete on dw.departures for each row execute function dw.note_gone()"
    )
    world.run(frozen.plan.id)
    later = world.freeze([world.finding(1, Verdict.DUPLICATE)])
    refusal = Refusal(
        RefusalCode.OTHER,
        "rows of dw.departures cannot be quarantined: deleting one also changes other tables through trigger "
        "note_gone; repair these duplicates by hand",
    )
    assert world.outcomes(frozen.plan.id) == {"K0": ("refused", str(refusal))}
    assert [refused.refusal for refused in later.refusals] == [refusal]
    assert world.sql("select (select count(*) from dw.departures), (select count(*) from dw.gone)") == [(4, 0)]


@pytest.mark.parametrize("table", ['"x""; drop table dw.departures; --"', "dw.nowhere", "departures"])
def test_a_table_that_the_catalogue_does_not_know_is_refused(world: PlanWorld, table: str) -> None:
    world.change_points(replace(world.table_point(), table=table))
    frozen = world.freeze([world.finding(0, Verdict.DUPLICATE)])
    assert frozen.plan is None
    assert "is not a table that connection pg can see" in frozen.refusals[0].refusal.text
    assert world.sql("select count(*) from dw.departures") == [(0,)]


def test_another_record_at_the_originals_offset_is_never_written(odd: PlanWorld) -> None:
    """The log was cut off, and its offsets were used again."""
    finding = _finding(odd, 0, '["2013","9E"]', Verdict.MISSING, '{"carrier": "9E", "delay": 1.50}')
    odd.originals[0, 0] = replace(odd.originals[0, 0], key=b'["2013","UA"]')

    frozen = odd.freeze([finding])

    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(RefusalCode.STALE, "another record is at the original's offset now; the log was cut off or made again")
    ]


def test_a_table_that_lost_a_column_since_stops_the_plan(world: PlanWorld) -> None:
    world.sql("insert into dw.departures (id, delay) values ('K0', 1), ('K0', 1)")
    plan = world.plan([world.finding(0, Verdict.DUPLICATE)])
    world.sql("alter table dw.departures drop column loaded_at")
    with pytest.raises(RefusedError, match=r"dw\.departures has no column loaded_at"):
        world.run(plan.id)
    assert world.sql("select count(*) from dw.departures") == [(2,)]


def _finding(world: PlanWorld, offset: int, key: str, verdict: Verdict, value: str) -> Finding:
    world.originals[0, offset] = SourceRecord(
        partition=0, offset=offset, key=key.encode(), value=value.encode(), headers=(), timestamp_ms=None
    )
    return Finding(
        hop=HOP,
        key=key,
        key_hash=f"{offset:032x}",
        verdict=verdict,
        cause=Cause.NOT_IN_SOURCE,
        evidence={"source": [{"partition": 0, "offset": offset}], "source_copies": 1, "values": {"delay": "1.00"}},
    )
