"""Test each remedy on real servers: what is written, what is refused, and that a second run writes nothing."""

from dataclasses import replace

import pytest

from makewhole.model.errors import PermanentError, TransientError
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.plan import PlanState
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Verdict
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def test_a_missing_record_is_redelivered_once_with_its_origin(world: PlanWorld) -> None:
    world.send(range(30))
    frozen = world.freeze_plan([world.finding(number, Verdict.MISSING) for number in range(0, 30, 2)])
    receipts = world.run(frozen.plan.id)

    replayed = {message.key_text: message for message in world.replayed()}
    assert sorted(replayed) == sorted(f"K{number}" for number in range(0, 30, 2))
    message = replayed["K4"]
    origin = next(at for at, record in world.originals.items() if record.key == b"K4")
    assert message.partition == origin[0]
    assert message.timestamp_ms == world.originals[origin].timestamp_ms
    assert message.value == world.originals[origin].value
    seq = next(action.seq for action in frozen.actions if action.key == "K4")
    assert list(message.headers) == [
        ("trace", b"t4"),
        ("makewhole-plan", frozen.plan.id.encode()),
        ("makewhole-window", f"{world.pipeline.name}/1".encode()),
        ("makewhole-seq", str(seq).encode()),
        ("makewhole-origin", f"{world.topic}/{origin[0]}/{origin[1]}".encode()),
        ("makewhole-chunk", str(seq // 5).encode()),
    ]
    assert [(receipt.chunk, receipt.actions) for receipt in receipts] == [(0, 5), (1, 5), (2, 5)]
    assert set(world.outcomes(frozen.plan.id).values()) == {("done", None)}

    assert world.run(frozen.plan.id) == receipts
    assert len(world.replayed()) == 15


def test_what_never_reached_the_topic_is_produced_from_the_ledger(world: PlanWorld) -> None:
    body = '{"id": "K1", "delay": 15, "extra": 1.50}'
    world.sql("insert into ops.outbox values ('K1', %s, '2013-01-01 00:00:01+00')", body)
    findings = [world.finding(number, Verdict.MISSING, hop="outbox→flights") for number in (1, 2)]
    frozen = world.freeze_plan(findings)
    world.run(frozen.plan.id)

    (message,) = world.replayed()
    assert (message.key, message.value) == (b"K1", body.encode())
    assert message.timestamp_ms == 1_356_998_401_000
    assert dict(message.headers)["makewhole-origin"] == b"ledger"
    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(RefusalCode.ERASED, "the ledger has no row of this key any more")
    ]
    assert world.journal_sql("select key, outcome, outcome_reason from makewhole.finding where outcome <> 'open'") == [
        ("K2", "refused", "erased: the ledger has no row of this key any more")
    ]


def test_a_missing_row_is_inserted_unless_it_appeared_meanwhile(world: PlanWorld) -> None:
    world.remedies("flights→warehouse", missing=Remedy.UPSERT)
    world.send(range(8))
    frozen = world.freeze_plan([world.finding(number, Verdict.MISSING) for number in range(8)])
    world.sql("insert into dw.departures (id, delay) values ('K3', 77)")
    receipts = world.run(frozen.plan.id)

    assert [(row[0], float(row[1])) for row in world.store()] == [
        *((f"K{number}", 77.0 if number == 3 else number) for number in range(8))
    ]
    assert world.outcomes(frozen.plan.id)["K3"] == (
        "refused",
        "arrived: a row of this key appeared after the plan was made",
    )
    assert [(receipt.chunk, receipt.actions) for receipt in receipts] == [(0, 4), (1, 3)]
    before = world.sql("select * from dw.departures order by id")
    assert world.run(frozen.plan.id) == receipts
    assert world.sql("select * from dw.departures order by id") == before


def test_a_changed_row_is_mended_only_from_what_the_plan_saw(world: PlanWorld) -> None:
    world.send(range(3))
    for number in range(3):
        world.sql("insert into dw.departures (id, delay, note) values (%s, 99, 'kept')", f"K{number}")
    frozen = world.freeze_plan([world.finding(number, Verdict.MISMATCHED) for number in range(3)])
    world.sql("update dw.departures set delay = 50 where id = 'K1'")
    world.sql("delete from dw.departures where id = 'K2'")
    world.run(frozen.plan.id)

    assert world.sql("select id, delay::text, note from dw.departures order by id") == [
        ("K0", "0.0", "kept"),
        ("K1", "50.0", "kept"),
    ]
    assert world.outcomes(frozen.plan.id) == {
        "K0": ("done", None),
        "K1": ("refused", "stale: the row of this key changed after the plan was made"),
        "K2": ("refused", "erased: the row of this key is gone since the plan was made"),
    }


def test_a_row_that_was_written_again_between_verdict_and_plan_is_not_mended(world: PlanWorld) -> None:
    """The record is older than what stands there now, and no version says so. What is not compared does not count."""
    world.send(range(3))
    for number in range(3):
        world.sql("insert into dw.departures (id, delay, note) values (%s, 99, 'kept')", f"K{number}")
    findings = [world.finding(number, Verdict.MISMATCHED) for number in range(3)]
    judged = [
        replace(finding, evidence={**finding.evidence, "columns": {"delay": {"source": str(number), "target": "99"}}})
        for number, finding in enumerate(findings)
    ]
    world.sql("update dw.departures set delay = 50 where id = 'K1'")
    world.sql("update dw.departures set note = 'other' where id = 'K2'")

    frozen = world.freeze_plan(judged)
    world.run(frozen.plan.id)

    assert [(refused.key_hash, refused.refusal) for refused in frozen.refusals] == [
        (
            findings[1].key_hash,
            Refusal(RefusalCode.STALE, "the rows of this key changed since it was judged; run the window again"),
        )
    ]
    assert world.sql("select id, delay::text, note from dw.departures order by id") == [
        ("K0", "0.0", "kept"),
        ("K1", "50.0", "kept"),
        ("K2", "2.0", "other"),
    ]


def test_extra_rows_move_aside_and_can_come_back(world: PlanWorld) -> None:
    world.load_again("K0", copies=3)
    frozen = world.freeze_plan([world.finding(0, Verdict.DUPLICATE)])
    assert set(frozen.actions[0].before.fields) == {"place", "rows", "disputed_by", "accepted_by"}
    world.run(frozen.plan.id)

    assert world.sql("select id, note from dw.departures") == [("K0", "copy 0")]
    kept = world.sql("select row->>'note', plan, source_table, how_to_restore from makewhole.quarantine order by id")
    assert [row[:3] for row in kept] == [(f"copy {copy}", frozen.plan.id, "dw.departures") for copy in (1, 2)]
    world.run(frozen.plan.id)
    assert world.sql("select count(*) from makewhole.quarantine") == [(2,)]

    world.sql(kept[0][3].replace("%", "%%"))
    assert world.sql("select note from dw.departures order by note") == [("copy 0",), ("copy 1",)]


def test_nothing_is_moved_when_the_row_that_agrees_changed_after_the_plan_was_made(world: PlanWorld) -> None:
    world.load_again("K0", copies=2, delay=5)
    plan = world.plan([world.finding(0, Verdict.DUPLICATE)])
    world.sql("update dw.departures set delay = 6 where note = 'copy 0'")
    world.run(plan.id)

    assert world.outcomes(plan.id) == {"K0": ("refused", "stale: rows of this key changed after the plan was made")}
    assert world.sql("select note from dw.departures order by note") == [("copy 0",), ("copy 1",)]


def test_rows_that_are_not_those_that_were_judged_stay_where_they_are(world: PlanWorld) -> None:
    world.load_again("K0", copies=2)
    judged = [{"place": place} for (place,) in world.sql("select ctid::text from dw.departures")]
    finding = world.finding(0, Verdict.DUPLICATE)
    named = replace(finding, evidence={**finding.evidence, "target": judged, "target_copies": 2})
    world.sql("update dw.departures set delay = 1 where note = 'copy 1'")  # the same, written again

    frozen = world.freeze([named])

    assert frozen.plan is None
    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(RefusalCode.STALE, "the rows of this key changed since it was judged; run the window again")
    ]


def test_an_unexpected_row_that_a_ledger_of_the_same_store_has_is_not_moved(world: PlanWorld) -> None:
    report = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
    direct = Hop(source="outbox", target="warehouse", remedies=report)
    world.pipeline = replace(world.pipeline, hops=(*world.pipeline.hops, direct))
    world.remedies("flights→warehouse", unexpected=Remedy.QUARANTINE)
    world.sql("insert into ops.outbox values ('K1', '{\"delay\": 1}', '2013-01-01')")
    world.load_again("K1", copies=1)
    world.load_again("K2", copies=1)

    frozen = world.freeze([world.finding(number, Verdict.UNEXPECTED) for number in (1, 2)])

    assert [action.key for action in frozen.actions] == ["K2"]
    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(RefusalCode.STALE, "outbox has this key; its row in warehouse stays")
    ]


def test_rows_that_changed_or_vanished_are_not_quarantined(world: PlanWorld) -> None:
    for key in ("K0", "K1", "K2", "K3"):
        world.load_again(key, copies=2)
    frozen = world.freeze_plan([world.finding(number, Verdict.DUPLICATE) for number in range(4)])
    world.sql("update dw.departures set delay = 5 where id = 'K0' and note = 'copy 1'")
    world.sql("delete from dw.departures where id = 'K1' and note = 'copy 0'")
    world.sql("delete from dw.departures where id = 'K2' and note = 'copy 1'")
    world.run(frozen.plan.id)

    assert world.outcomes(frozen.plan.id) == {
        "K0": ("refused", "stale: rows of this key changed after the plan was made"),
        "K1": ("refused", "erased: the row that was to stay is gone, so the extra rows may be the only copy left"),
        "K2": ("refused", "erased: an extra row of this key is gone already"),
        "K3": ("done", None),
    }
    assert world.sql("select id, note from dw.departures order by id, note") == [
        ("K0", "copy 0"),
        ("K0", "copy 1"),
        ("K1", "copy 1"),
        ("K2", "copy 0"),
        ("K3", "copy 0"),
    ]


def test_a_value_that_the_table_does_not_take_is_refused_and_the_rest_goes_on(world: PlanWorld) -> None:
    world.remedies("flights→warehouse", missing=Remedy.UPSERT)
    world.sql("alter table dw.departures add check (delay <> 1)")
    world.send(range(3))
    frozen = world.freeze_plan([world.finding(number, Verdict.MISSING) for number in range(3)])
    world.run(frozen.plan.id)
    assert [row[0] for row in world.store()] == ["K0", "K2"]
    outcome, reason = world.outcomes(frozen.plan.id)["K1"]
    assert outcome == "refused"
    assert reason == (
        "unfit: the table does not take it: CheckViolation (23514): constraint departures_delay_check, table departures"
    )


@pytest.mark.parametrize("code", ["0A000", "38001", "45000", "54000", "AB123", "P0002", "P0004"])
def test_whatever_a_trigger_raises_about_a_row_refuses_that_row_alone(world: PlanWorld, code: str) -> None:
    """An index (54000) and a rule (0A000) raise some of these, too."""
    world.remedies("flights→warehouse", missing=Remedy.UPSERT)
    world.sql(
        "create function dw.refuse() returns trigger language plpgsql as "
        f"$$ begin raise exception 'no' using errcode = '{code}'; end $$;"
        "create trigger refuse before insert on dw.departures for each row when (new.delay = 1) "
        "execute function dw.refuse()"
    )
    world.send(range(3))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(3)])

    world.run(plan.id)

    assert [row[0] for row in world.store()] == ["K0", "K2"]
    outcome, reason = world.outcomes(plan.id)["K1"]
    assert (outcome, (reason or "").startswith("unfit: the table does not take it: ")) == ("refused", True)
    assert f"({code})" in (reason or "")


@pytest.mark.parametrize("code", ["42P01", "53100", "57P01"])
def test_what_the_server_lacks_refuses_no_row(world: PlanWorld, code: str) -> None:
    world.remedies("flights→warehouse", missing=Remedy.UPSERT)
    world.sql(
        "create function dw.refuse() returns trigger language plpgsql as "
        f"$$ begin raise exception 'no' using errcode = '{code}'; end $$;"
        "create trigger refuse before insert on dw.departures for each row execute function dw.refuse()"
    )
    world.send(range(1))
    plan = world.plan([world.finding(0, Verdict.MISSING)])

    with pytest.raises((PermanentError, TransientError)):
        world.run(plan.id)

    assert world.outcomes(plan.id)["K0"] == (None, None)


def test_a_record_that_the_broker_would_refuse_does_not_abort_its_chunk(world: PlanWorld) -> None:
    world.send(range(3))
    position, record = next(item for item in world.originals.items() if item[1].key == b"K1")
    world.originals[position] = replace(record, timestamp_ms=4_102_444_800_000)
    frozen = world.freeze_plan([world.finding(number, Verdict.MISSING) for number in range(3)])
    (receipt,) = world.run(frozen.plan.id)
    assert receipt.actions == 2
    assert sorted(message.key_text for message in world.replayed()) == ["K0", "K2"]
    assert world.outcomes(frozen.plan.id)["K1"] == (
        "refused",
        "unfit: its timestamp is further ahead than message.timestamp.after.max.ms allows",
    )


def test_a_row_that_came_meanwhile_is_never_overwritten(world: PlanWorld) -> None:
    """Of a newer version or an older one: the next run of the window judges it."""
    points = dict(world.pipeline.points)
    points["warehouse"] = replace(points["warehouse"], version="delay")
    world.pipeline = replace(world.pipeline, points=points)
    world.remedies("flights→warehouse", missing=Remedy.UPSERT)
    world.send(range(4))
    frozen = world.freeze_plan([world.finding(number, Verdict.MISSING) for number in (1, 2, 3)])
    world.sql("insert into dw.departures (id, delay) values ('K2', 1), ('K3', 4)")
    world.run(frozen.plan.id)
    assert [(row[0], int(row[1])) for row in world.store()] == [("K1", 1), ("K2", 1), ("K3", 4)]
    outcomes = {key: outcome for key, (outcome, _) in world.outcomes(frozen.plan.id).items()}
    assert outcomes == {"K1": "done", "K2": "refused", "K3": "refused"}


def test_the_plan_of_a_revision_is_frozen_once(world: PlanWorld) -> None:
    world.send(range(3))
    findings = [world.finding(number, Verdict.MISSING) for number in range(3)]
    first = world.freeze_plan(findings)
    again = world.freeze(findings[:1], is_new=False)
    assert (again.plan, again.actions) == (first.plan, first.actions)
    later = world.freeze_plan(findings)
    assert later.plan.sha256 == first.plan.sha256
    assert later.plan.id == f"{first.plan.id}-r2"


def test_a_plan_over_its_share_is_refused_as_a_whole(world: PlanWorld) -> None:
    world.send(range(3))
    frozen = world.freeze_plan([world.finding(number, Verdict.MISSING) for number in range(3)], window_keys=2)
    assert frozen.plan.state is PlanState.REFUSED
    assert frozen.plan.reason is not None and "share of 1 of the window's 2 keys" in frozen.plan.reason
    with pytest.raises(Exception, match="is refused: 3 keys are more than"):
        world.run(frozen.plan.id)
    assert world.replayed() == []
