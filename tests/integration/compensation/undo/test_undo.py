"""Test that an undone table is what it was, row by row; what changed since is left alone; nothing happens twice."""

from dataclasses import replace
from datetime import timedelta

import pytest

from makewhole import sql
from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.execution.control import stop
from makewhole.compensation.execution.pace import PlanProgress
from makewhole.compensation.execution.run_plan import run_plan
from makewhole.compensation.undo.plan_undo import Undo, UndoRequest, freeze_undo
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Approval
from makewhole.model.plan import Plan, PlanState
from makewhole.model.verdict import Verdict
from tests.integration.compensation.world import PlanWorld
from tests.world.sql import Rows

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read whatever may be large one row at a time: what is found does not depend on where a piece ends."""
    monkeypatch.setattr(sql, "_ROWS_OF_A_PIECE", 1)


def test_after_an_undo_the_table_is_what_it_was_row_by_row(world: PlanWorld) -> None:
    plan, before = _repaired(world)
    undo = _undo(world, plan.id)
    assert undo.plan is not None
    assert (undo.plan.state, undo.plan.undoes) == (PlanState.AWAITING_APPROVAL, plan.id)
    assert undo.plan.counts == {"restore": 9}
    assert undo.remaining == ()
    with pytest.raises(RefusedError, match="is awaiting_approval"):
        world.run(undo.plan.id)
    _approve(world, undo)
    receipts = world.run(undo.plan.id)
    assert sum(receipt.actions for receipt in receipts) == 9
    assert _image(world) == before
    assert set(world.outcomes(undo.plan.id).values()) == {("done", None)}

    assert world.run(undo.plan.id) == receipts
    assert _image(world) == before
    assert _undo(world, plan.id).plan.id == undo.plan.id  # type: ignore[union-attr]
    assert _undo(world, plan.id, reverses=True).plan.id == undo.plan.id  # type: ignore[union-attr]


def test_rows_that_changed_since_are_left_alone(world: PlanWorld) -> None:
    plan, _ = _repaired(world)
    world.sql("update dw.departures set note = 'mine' where id in ('K0', 'K3')")
    world.sql("delete from dw.departures where id = 'K1'")
    undo = _undo(world, plan.id)
    _approve(world, undo)
    world.run(undo.plan.id)  # type: ignore[union-attr]
    refused = {key: reason for key, (outcome, reason) in world.outcomes(undo.plan.id).items() if outcome == "refused"}  # type: ignore[union-attr]
    assert refused == {
        "K0": "stale: the row was changed after the plan wrote it",
        "K1": "erased: the row that the plan wrote is gone",
        "K3": "stale: the row was changed after the plan wrote it",
    }
    assert world.sql("select id, note from dw.departures where id in ('K0', 'K1', 'K3') order by id") == [
        ("K0", "mine"),
        ("K3", "mine"),
    ]


def test_a_survivor_that_was_not_the_first_row_gets_the_others_back_beside_it(world: PlanWorld) -> None:
    world.load_again("K0", copies=1, delay=9)
    world.sql("insert into dw.departures (id, delay, note, loaded_at) values ('K0', 5, 'right', '2013-01-02')")
    before = _image(world)
    finding = world.finding(0, Verdict.DUPLICATE)
    plan = world.plan([replace(finding, evidence={**finding.evidence, "values": {"delay": "5"}})])
    world.run(plan.id)
    assert world.sql("select note from dw.departures") == [("right",)]

    undo = _undo(world, plan.id)
    _approve(world, undo)
    assert undo.plan is not None
    world.run(undo.plan.id)
    assert _image(world) == before


def test_what_a_stopped_plan_did_is_known_only_when_its_runner_has_ended(world: PlanWorld) -> None:
    world.sql("insert into dw.departures (id, delay) select 'K' || n / 2, 1 from generate_series(0, 19) as n")
    plan = world.plan([world.finding(number, Verdict.DUPLICATE) for number in range(10)])

    def stop_and_undo(progress: PlanProgress) -> None:
        stop(world.journal, plan.id, by="oncall", reason="wrong day")
        with pytest.raises(TransientError, match=f"plan {plan.id} is being worked on by .*; wait for it to end"):
            _undo(world, plan.id)

    with pytest.raises(RefusedError, match="was stopped"):
        run_plan(world.journal, plan.id, world.targets, stop_and_undo)
    undo = _undo(world, plan.id)
    assert undo.plan is not None
    assert undo.plan.counts == {"restore": 5}


def test_records_in_a_topic_stay_and_it_is_said(world: PlanWorld) -> None:
    world.send(range(3))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(3)])
    world.run(plan.id)
    assert _undo(world, plan.id) == Undo(
        plan=None,
        remaining=(
            f"3 records that plan {plan.id} may have written to flights stay: a log takes nothing back. Where their "
            "effect has to go, give the hop from flights a `reverse`, or send a compensating event by hand",
        ),
    )


def test_what_cannot_be_undone_is_refused_with_the_reason(world: PlanWorld) -> None:
    world.remedies("flights→warehouse", missing=Remedy.UPSERT)
    world.send(range(2))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(2)])
    with pytest.raises(RefusedError, match=f"plan {plan.id} is frozen and wrote nothing; there is nothing to undo"):
        _undo(world, plan.id)
    world.run(plan.id)
    undo = _undo(world, plan.id)
    _answer(world, undo, Decision.REJECTED)
    again = _undo(world, plan.id)
    assert again.plan is not None
    assert undo.plan is not None
    assert (again.plan.id, again.plan.sha256) == (f"{undo.plan.id}-r1", undo.plan.sha256)
    with pytest.raises(RefusedError, match="undoes plan"):
        _undo(world, again.plan.id)
    with pytest.raises(RefusedError, match="is rejected: rejected by anna"):
        world.run(undo.plan.id)


def _repaired(world: PlanWorld) -> tuple[Plan, Rows]:
    """Insert, mend and move rows aside by one plan of several chunks; the plan, and the rows before it."""
    world.remedies("flights→warehouse", missing=Remedy.UPSERT)
    world.send(range(9))
    world.sql("insert into dw.departures (id, delay, note) select 'K' || n, 99.5, 'old' from generate_series(3, 5) n")
    world.sql(
        "insert into dw.departures (id, delay, note) select 'K' || n, n, 'copy ' || c "
        "from generate_series(6, 8) n, generate_series(0, 1) c"
    )
    before = _image(world)
    verdicts = [Verdict.MISSING] * 3 + [Verdict.MISMATCHED] * 3 + [Verdict.DUPLICATE] * 3
    plan = world.plan([world.finding(number, verdict) for number, verdict in enumerate(verdicts)])
    world.run(plan.id)
    assert _image(world) != before
    return plan, before


def _image(world: PlanWorld) -> Rows:
    return world.sql("select (t.*)::text from dw.departures t order by 1")


def _undo(world: PlanWorld, plan_id: str, *, reverses: bool = False) -> Undo:
    request = UndoRequest(plan=plan_id, pipeline=world.pipeline, reverses=reverses)
    return freeze_undo(world.journal, request, world.sources)


def _approve(world: PlanWorld, undo: Undo) -> None:
    _answer(world, undo, Decision.APPROVED)


def _answer(world: PlanWorld, undo: Undo, decision: Decision) -> None:
    assert undo.plan is not None
    answer = Answer(sha256=undo.plan.sha256, decision=decision, by="anna")
    record_answer(world.journal, undo.plan.id, answer, Approval(expires=timedelta(hours=1)))
