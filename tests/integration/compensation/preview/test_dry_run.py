"""Test that a run does what its dry run forecast."""

import json
from dataclasses import replace
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import run_plan
from makewhole.compensation.preview.dry_report import DryRun, Forecast, RecordToSend
from makewhole.model.hops import Hop, Remedy, Reverse
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Verdict
from tests.integration.compensation.preview.dry_runs import HOP, approve, looked, mixed, row_change, undo_of
from tests.integration.compensation.world import PlanWorld
from tests.world.sql import Rows

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


def test_rows_become_what_the_samples_said(world: PlanWorld) -> None:
    plan = mixed(world)
    report = looked(world, plan, samples=9)
    assert (report.stopped_by, report.count(Forecast.WOULD), report.count(Forecast.REFUSED)) == (None, 9, 0)
    assert [(part.remedy, part.place, part.actions) for part in report.parts] == [
        ("upsert", "pg:dw.departures", 6),
        ("quarantine", "pg:dw.departures", 3),
    ]
    assert [dict(part.payload_from) for part in report.parts] == [{"archive": 6}, {}]
    changes = {sample.action.key: row_change(sample.shown) for sample in report.samples}
    assert {key: sorted(change.before) for key, change in changes.items()} == rows_by_key(world, changes)

    world.run(plan.id)

    after = rows_by_key(world, changes)
    for key, change in changes.items():
        assert [kept(row) for row in change.after] == [kept(row, change.after[0]) for row in after[key]]
    aside = [row for (row,) in world.sql("select row from makewhole.quarantine order by row ->> 'id'")]
    assert [json.loads(row) for change in changes.values() for row in change.aside] == aside


def test_records_become_what_the_samples_said(world: PlanWorld) -> None:
    world.send(range(3))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(3)])
    report = looked(world, plan)
    (part,) = report.parts
    assert (part.remedy, part.target, dict(part.payload_from), part.forecasts[Forecast.WOULD]) == (
        "redeliver",
        "flights",
        {"archive": 3},
        3,
    )
    samples = {sample.action.key: sample.shown for sample in report.samples}

    world.run(plan.id)

    sent = {message.key_text: message for message in world.replayed()}
    assert sorted(sent) == sorted(samples) == ["K0", "K1", "K2"]
    for key, record in samples.items():
        message = sent[key]
        assert isinstance(record, RecordToSend)
        assert (record.key, record.value) == (message.key, message.value)
        assert list(record.headers) == list(message.headers)
        assert (record.partition, record.timestamp_ms) == (message.partition, message.timestamp_ms)
        assert record.fields == ("id", "delay", "extra")


def test_a_reversal_shows_the_event_that_would_be_sent(world: PlanWorld) -> None:
    topic = world.add_topic("reversals")
    world.change_hop(HOP, reverse=Reverse(to="reversals", value={"id": "{{ key }}", "delay": "{{ -row.delay }}"}))
    world.remedies(HOP, duplicate=Remedy.REVERSE)
    world.load_again("K1", copies=2, delay=1.5)
    finding = world.finding(1, Verdict.DUPLICATE)
    plan = world.plan([replace(finding, evidence={**finding.evidence, "target_copies": 2})])
    (sample,) = looked(world, plan).samples
    assert (sample.action.remedy, sample.action.before.payload_from) == (Remedy.REVERSE, "template")
    assert isinstance(sample.shown, RecordToSend)
    assert sample.shown.value == b'{"id":"K1","delay":-1.5}'
    assert sample.shown.partition is None
    assert world.records(topic) == []


def test_what_changed_since_is_refused_for_the_same_reasons_as_when_it_runs(world: PlanWorld) -> None:
    plan = mixed(world)
    world.sql("insert into dw.departures (id, delay) values ('K0', 1)")
    world.sql("update dw.departures set note = 'mine' where id = 'K3'")
    world.sql("delete from dw.departures where id = 'K4'")
    world.sql("delete from dw.departures where id = 'K6' and note = 'copy 1'")
    report = looked(world, plan, samples=9)
    world.run(plan.id)
    assert forecast_outcomes(report) == world.outcomes(plan.id)
    assert [dict(part.reasons) for part in report.parts] == [
        {
            Refusal(RefusalCode.ARRIVED, "a row of this key appeared after the plan was made"): 1,
            Refusal(RefusalCode.STALE, "the row of this key changed after the plan was made"): 1,
            Refusal(RefusalCode.ERASED, "the row of this key is gone since the plan was made"): 1,
        },
        {Refusal(RefusalCode.ERASED, "an extra row of this key is gone already"): 1},
    ]


def test_a_value_that_the_table_cannot_read_is_refused_and_its_neighbours_are_not(world: PlanWorld) -> None:
    plan = mixed(world)
    world.sql("alter table dw.departures alter delay type numeric(2,1) using null")
    report = looked(world, plan, samples=9)
    assert all("appeared" not in refusal.text for part in report.parts for refusal in part.reasons)
    world.run(plan.id)
    assert forecast_outcomes(report) == world.outcomes(plan.id)


def test_what_the_topic_would_not_take_is_refused_for_the_same_reason(world: PlanWorld) -> None:
    world.send(range(3))
    position, big = next((place, record) for place, record in world.originals.items() if record.key == b"K1")
    world.originals[position] = replace(big, headers=(("big", b"x" * 2_000_000),))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(3)])
    report = looked(world, plan)
    world.run(plan.id)
    assert forecast_outcomes(report) == world.outcomes(plan.id)
    assert report.count(Forecast.REFUSED) == 1


def test_an_undo_is_forecast_too(world: PlanWorld) -> None:
    plan = mixed(world)
    before = table(world)
    world.run(plan.id)
    undo = undo_of(world, plan)
    report = looked(world, undo, samples=9)
    assert report.stopped_by == f"plan {undo.id} is awaiting_approval"
    assert (report.count(Forecast.WOULD), report.plan.undoes) == (9, plan.id)
    assert [dict(part.payload_from) for part in report.parts] == [{"effects": 9}]

    world.sql("update dw.departures set note = 'mine' where id in ('K0', 'K3')")
    world.sql("delete from dw.departures where id = 'K1'")
    world.sql("update makewhole.quarantine set restored_at = now() where row ->> 'id' = 'K6'")
    world.sql("delete from makewhole.quarantine where row ->> 'id' = 'K7'")
    report = looked(world, undo, samples=9)
    approve(world, undo)
    world.run(undo.id)
    assert forecast_outcomes(report) == world.outcomes(undo.id)
    assert report.count(Forecast.REFUSED) == 5
    assert table(world) != before


def test_what_two_hops_lack_in_one_table_is_written_once(world: PlanWorld) -> None:
    """Two hops that end in the same table both want the key."""
    world.remedies(HOP, missing=Remedy.UPSERT)
    ledger_hop = Hop(source="outbox", target="warehouse", remedies=replace(world.pipeline.hops[1].remedies))
    world.pipeline = replace(world.pipeline, hops=(*world.pipeline.hops, ledger_hop))
    world.send(range(2))
    world.sql("insert into ops.outbox values ('K0', '{\"id\": \"K0\", \"delay\": 5}', '2013-01-01 00:00:01+00')")
    findings = [world.finding(number, Verdict.MISSING) for number in range(2)]
    findings.append(world.finding(0, Verdict.MISSING, hop="outbox→warehouse"))
    plan = world.plan(findings)
    report = looked(world, plan)
    forecasts = {(sample.action.hop, sample.action.key): sample.forecast for sample in report.samples}
    assert forecasts == {(HOP, "K0"): Forecast.WOULD, (HOP, "K1"): Forecast.WOULD}


def test_a_plan_that_is_done_has_nothing_left(world: PlanWorld) -> None:
    plan = mixed(world)
    world.sql("update dw.departures set note = 'mine' where id = 'K3'")
    world.run(plan.id)
    report = looked(world, plan)
    assert (
        report.count(Forecast.DONE),
        report.count(Forecast.REFUSED),
        report.count(Forecast.WOULD),
        report.samples,
    ) == (
        8,
        1,
        0,
        (),
    )


def test_records_that_are_sent_already_are_done(world: PlanWorld) -> None:
    world.send(range(7))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(7)])
    world.run(plan.id)
    assert looked(world, plan).count(Forecast.DONE) == 7
    world.journal_sql("update makewhole.plan set state = 'running' where id = %s", plan.id)
    world.journal_sql("delete from makewhole.chunk where plan = %s and chunk = 1", plan.id)
    assert looked(world, plan).count(Forecast.DONE) == 7  # the marker knows


@pytest.mark.parametrize("kind", ["table", "topic"])
def test_of_a_plan_that_was_broken_off_the_rest_is_judged(world: PlanWorld, kind: str) -> None:
    if kind == "table":
        world.remedies(HOP, missing=Remedy.UPSERT)
    world.send(range(9))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(9)])

    def break_off(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(world.journal, plan.id, world.targets, break_off)
    if kind == "table":
        world.sql("insert into dw.departures (id, delay) values ('K7', 1)")
    report = looked(world, plan, samples=9)
    refused = 1 if kind == "table" else 0
    assert [report.count(fate) for fate in (Forecast.DONE, Forecast.WOULD, Forecast.REFUSED)] == [
        5,
        4 - refused,
        refused,
    ]
    assert [sample.action.key for sample in report.samples] == ["K5", "K6", "K7", "K8"]
    world.run(plan.id)
    assert forecast_outcomes(report).items() <= world.outcomes(plan.id).items()


def test_rows_that_were_moved_aside_together_come_back_together(world: PlanWorld) -> None:
    world.load_again("K1", copies=3)
    finding = world.finding(1, Verdict.DUPLICATE)
    plan = world.plan([replace(finding, evidence={**finding.evidence, "target_copies": 3})])
    (sample,) = looked(world, plan).samples
    change = row_change(sample.shown)
    assert [len(rows) for rows in (change.before, change.after, change.aside)] == [3, 1, 2]
    world.run(plan.id)
    undo = undo_of(world, plan)
    report = looked(world, undo)
    assert (report.count(Forecast.WOULD), report.count(Forecast.WAITS)) == (2, 0)


def forecast_outcomes(report: DryRun) -> dict[str, tuple[str, str | None]]:
    """As `World.outcomes`: by key."""
    outcome = {Forecast.WOULD: "done", Forecast.REFUSED: "refused"}
    return {sample.action.key: (outcome[sample.forecast], sample.reason) for sample in report.samples}


def table(world: PlanWorld) -> Rows:
    return world.sql("select ctid::text, xmin::text, xmax::text, (t.*)::text from dw.departures t order by 1")


def rows_by_key(world: PlanWorld, keys: Any) -> dict[str, list[str]]:
    rows = world.sql("select id, row_to_json(t.*)::text from dw.departures t order by 1, 2")
    return {key: [row for name, row in rows if name == key] for key in keys}


def kept(row: str, like: str | None = None) -> dict[str, Any]:
    """A row as a sample has it: an inserted one without the columns that take their defaults."""
    document, named = json.loads(row), json.loads(like or row)
    return {name: value for name, value in document.items() if name in named}
