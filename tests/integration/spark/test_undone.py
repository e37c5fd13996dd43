"""Test a repaired window whose plan is undone: the rows are what they were, and the window has gaps until it is
repaired again."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from makewhole import sql
from makewhole.compensation.approval.answer import Answer, Decision, record_answer, require_own_undo
from makewhole.compensation.execution.control import stop
from makewhole.compensation.execution.run_plan import PlanProgress, compensate_window, run_plan
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.undo.plan_undo import plan_undo
from makewhole.compensation.undo.reopen import ReopenedWindow, is_turned_down, reopen_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import certificates, windows
from makewhole.journal.database import connect
from makewhole.model.errors import RefusedError
from makewhole.model.plan import Plan, PlanState
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.window import WindowState
from makewhole.signing.key_files import believed_keys, signing_key_from_environment
from makewhole.window.certifying.certificate_check import check_chain
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.certifying.chain_evidence import read_evidence
from makewhole.window.context import WindowContext
from tests.integration.spark.test_reversals import REVERSE, sent
from tests.world.orders import orders
from tests.world.pipeline_file import topic as topic_point
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read whatever may be large one row at a time: what is found does not depend on where a piece ends."""
    monkeypatch.setattr(sql, "_ROWS_OF_A_PIECE", 1)


UPSERT = {"missing": "upsert", "limits": "{share: 1.0}"}


def test_an_undone_window_is_open_until_it_is_repaired_again(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    shop.write("warehouse", [made[7]])
    before = rows(shop)
    first, plan, closed = repaired(shop)
    later, same = shop.whole_way()
    assert (closed.state, same.state, later.window.revision) == (WindowState.CERTIFIED, WindowState.CERTIFIED, 2)

    undo, reopened = undone(shop, first, plan)

    assert rows(shop) == before
    assert reopened.state is WindowState.GAPS
    assert reopened.not_restored == {}
    assert reopened.reason is not None
    assert reopened.reason.startswith(f"plan {plan.id} was undone by plan {undo.id}: ")
    assert "orders→warehouse: " in reopened.reason
    assert [(item.revision, item.state, item.reason) for item in revisions(shop, 2)] == [
        (1, WindowState.GAPS, reopened.reason),
        (2, WindowState.GAPS, reopened.reason),
    ]
    assert shop.outcomes(first) == {"O4": "open", "O5": "open", "O7": "open"}
    assert (shop.certify(first).state, shop.certify(later).state) == (WindowState.GAPS, WindowState.GAPS)

    _, _, again = repaired(shop)

    assert closed.certificate is not None
    assert again.certificate is not None
    assert (again.state, again.certificate.digest) == (WindowState.CERTIFIED, closed.certificate.digest)
    with connect(shop.journal) as journal:
        evidence = read_evidence(journal, first.storage, "shop", believed_keys())
    checked = check_chain(evidence)
    assert (checked.problems, checked.uncertified, checked.signed_from) == ([], [], 1)
    assert [(entry.kind, entry.revision, entry.revokes) for entry in evidence.entries] == [
        ("certificate", 1, None),
        ("certificate", 2, None),
        ("revocation", 1, 1),
        ("revocation", 2, 2),
        ("certificate", 3, None),
    ]


def test_a_row_that_changed_since_is_left_and_said(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    first, plan, _ = repaired(shop)
    shop.sql("update warehouse set region = 'mine' where id = 'O4'")

    _, reopened = undone(shop, first, plan)

    assert reopened.not_restored == {Refusal(RefusalCode.STALE, "the row was changed after the plan wrote it"): 1}
    assert shop.outcomes(first) == {"O4": "repaired", "O5": "open"}


def test_what_a_plan_sent_is_reversed_when_that_is_asked_for(shop: ReconciledShop) -> None:
    topic = shop.add_topic()
    shop.describe(hop=REVERSE, more_points={"reversals": topic_point("log", topic)})
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    first, plan, _ = repaired(shop, loads=made[4:6])
    offer = (
        f"2 records that plan {plan.id} may have written to orders stay: a log takes nothing back. "
        f"`makewhole plan undo {plan.id} --reverse`, in place of this undo, sends an event for each that takes its "
        "effect back"
    )
    asked = plan_undo(first, plan.id, reverses=False)
    assert (asked.plan, asked.remaining) == (None, (offer,))
    shop.sql("delete from warehouse where id = 'O4'")

    undo, reopened = undone(shop, first, plan, reverses=True)

    assert undo.counts == {"reverse": 1}
    assert sent(shop, topic) == [("O5", -5.5)]
    assert shop.outcomes(first) == {"O4": "open", "O5": "repaired"}
    assert reopened.state is WindowState.GAPS
    stays = plan_undo(first, plan.id, reverses=True).remaining
    assert stays == (f"2 records that plan {plan.id} may have written to orders stay: a log takes nothing back",)
    with pytest.raises(RefusedError, match=f"plan {plan.id} has an undo with reversals already: plan {undo.id}"):
        plan_undo(first, plan.id, reverses=False)


def test_a_run_answers_for_the_undo_that_it_was_asked_for_and_no_window_opens_before_it_is_done(
    shop: ReconciledShop,
) -> None:
    shop.describe(compensation=UPSERT)
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    first, plan, _ = repaired(shop)
    with pytest.raises(RefusedError, match=f"the undo of plan {plan.id} is not planned"):
        reopen_window(first, plan.id, lambda *_: None, signing_key_from_environment())
    undo = plan_undo(first, plan.id, reverses=False).plan
    assert undo is not None
    with pytest.raises(RefusedError, match="is awaiting_approval; nothing is said of its window"):
        reopen_window(first, plan.id, lambda *_: None, signing_key_from_environment())
    with connect(shop.journal) as journal:
        assert require_own_undo(journal, plan.id, undo.id).plan.undoes == plan.id
        with pytest.raises(RefusedError, match=f"plan other does not undo plan {plan.id}, whose undo is {undo.id}"):
            require_own_undo(journal, plan.id, "other")
        with pytest.raises(RefusedError, match=f"plan {undo.id} does not undo plan {undo.id}, which has none"):
            require_own_undo(journal, undo.id, undo.id)
    assert revisions(shop, 1)[0].state is WindowState.CERTIFIED


def test_a_revision_that_was_judged_before_an_undo_is_not_certified_after_it(shop: ReconciledShop) -> None:
    """It compared the rows that the plan had written, and the undo took them away."""
    shop.describe(compensation=UPSERT)
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    first, plan, _ = repaired(shop)
    later = shop.judge_and_ask_the_gate()
    undo, reopened = undone(shop, first, plan)
    assert reopened.state is WindowState.GAPS

    closed = shop.certify(later)

    assert (closed.state, closed.certificate, closed.reason) == (
        WindowState.NOT_KNOWN,
        None,
        f"plan {undo.id} took back rows of this window after this revision was opened, which may have compared them; "
        "run the window again",
    )
    assert shop.whole_way()[1].state is WindowState.GAPS


def test_an_undo_that_was_stopped_opens_the_window_as_well(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    before = rows(shop)
    first, plan, closed = repaired(shop)
    assert (closed.state, is_turned_down(plan.id)) == (WindowState.CERTIFIED, False)
    undo = approved_undo(shop, first, plan)

    def stop_it(progress: PlanProgress) -> None:
        stop(shop.journal, undo.id, by="oncall", reason="wrong plan")

    run_plan(shop.journal, undo.id, targets_of(first.pipeline, first.connections), stop_it)
    assert rows(shop) == before

    reopened = reopen_window(first, plan.id, lambda *_: None, signing_key_from_environment())

    assert (reopened.undo.id, reopened.undo.state, is_turned_down(plan.id)) == (undo.id, PlanState.REJECTED, False)
    assert reopened.state is WindowState.GAPS
    assert reopened.reason is not None
    assert reopened.reason.startswith(
        f"plan {plan.id} was undone in part by plan {undo.id}, which is rejected (stopped by oncall: wrong plan): "
    )
    assert shop.outcomes(first) == {"O4": "open", "O5": "open"}
    with connect(shop.journal) as journal:
        assert certificates.standing(journal, "shop", 1) == []


def test_a_revision_whose_own_repair_was_undone_is_not_certified_before_it_is_judged_again(
    shop: ReconciledShop,
) -> None:
    shop.describe(compensation=UPSERT)
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    first, plan = repaired_but_open(shop)
    undo = approved_undo(shop, first, plan)
    run_plan(shop.journal, undo.id, targets_of(first.pipeline, first.connections))

    closed = shop.certify(first)

    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)
    assert closed.reason is not None
    assert closed.reason.startswith(f"plan {undo.id} took back rows of this window")
    reopened = reopen_window(first, plan.id, lambda *_: None, signing_key_from_environment())
    assert (reopened.undo.state, reopened.state) == (PlanState.DONE, WindowState.GAPS)


def test_a_person_who_says_no_to_an_undo_leaves_the_window_as_it_is(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    first, plan, _ = repaired(shop)
    undo = approved_undo(shop, first, plan, Decision.REJECTED)
    assert (undo.undoes, is_turned_down(plan.id)) == (plan.id, True)
    with pytest.raises(RefusedError, match=f"the undo of plan {plan.id} is not planned"):
        reopen_window(first, plan.id, lambda *_: None, signing_key_from_environment())


def repaired_but_open(shop: ReconciledShop, loads: list[dict[str, Any]] | None = None) -> tuple[WindowContext, Plan]:
    """A window on its way as far as `verify`, with a plan; `loads` is what the consumer makes of it."""
    context = shop.judge_and_ask_the_gate()
    plan = plan_window(context).plan
    assert plan is not None
    compensate_window(context, lambda _: None)
    shop.write("warehouse", loads or [])
    verify_window(context, lambda *_: None)
    return context, plan


def repaired(
    shop: ReconciledShop, loads: list[dict[str, Any]] | None = None
) -> tuple[WindowContext, Plan, ClosedWindow]:
    """A window on its whole way, with a plan; `loads` is what the consumer makes of it."""
    context, plan = repaired_but_open(shop, loads)
    return context, plan, shop.certify(context)


def approved_undo(
    shop: ReconciledShop,
    context: WindowContext,
    plan: Plan,
    decision: Decision = Decision.APPROVED,
    *,
    reverses: bool = False,
) -> Plan:
    """The undo of a plan with anna's answer."""
    undo = plan_undo(context, plan.id, reverses=reverses).plan
    assert undo is not None
    answer = Answer(sha256=undo.sha256, decision=decision, by="anna")
    record_answer(shop.journal, undo.id, answer, context.pipeline.approval)
    return undo


def undone(
    shop: ReconciledShop, context: WindowContext, plan: Plan, *, reverses: bool = False
) -> tuple[Plan, ReopenedWindow]:
    """The plan taken back, as anna wants it."""
    undo = approved_undo(shop, context, plan, reverses=reverses)
    run_plan(shop.journal, undo.id, targets_of(context.pipeline, context.connections))
    return undo, reopen_window(context, plan.id, lambda *_: None, signing_key_from_environment())


def rows(shop: ReconciledShop) -> list[Mapping[str, Any]]:
    return [json.loads(text) for (text,) in shop.sql("select to_json(w)::text from warehouse w order by 1")]


def revisions(shop: ReconciledShop, count: int) -> list[Any]:
    with connect(shop.journal) as journal:
        return [windows.load(journal, "shop", 1, number) for number in range(1, count + 1)]
