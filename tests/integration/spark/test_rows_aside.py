"""Test that a row which stands in the way of its own record is put aside first, and then the record is sent."""

from collections.abc import Iterable
from datetime import timedelta

import pytest

from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.execution.run_plan import compensate_window, run_plan
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.freezing.freeze import FreezeResult, FreezeSources
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.preview.dry_report import Forecast
from makewhole.compensation.preview.dry_run import dry_run
from makewhole.compensation.sources.original_records import WindowRecords
from makewhole.compensation.undo.plan_undo import UndoRequest, freeze_undo
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import plan_progress
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.model.acceptance import finding_id
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Approval
from makewhole.model.window import WindowState
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext
from tests.world.acceptances import accepted
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings, store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import add_partitions, change_topic
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

BOTH: Settings = {"limits": "{share: 1.0}", "missing": "produce", "unexpected": "quarantine"}


def in_the_way(shop: ReconciledShop, *, is_aborted: bool = False) -> tuple[WindowContext, list[Order]]:
    """Trade orders of which O2 has a row and no record (or an aborted one), and O3 neither; judge them."""
    made = orders(range(4))
    shop.trade(made, unsent=made[2:])
    if is_aborted:
        shop.end_transaction(shop.begin_transaction(made[2:3]), is_committed=False)
    shop.write("warehouse", made[2:3])
    context = shop.judge_and_ask_the_gate()
    assert set(shop.found(context, LEDGER_HOP)) == {"O2", "O3"}
    assert set(shop.found(context, STORE_HOP)) == {"O2"}
    return context, made


def close(shop: ReconciledShop, context: WindowContext, loaded: Iterable[Order]) -> ClosedWindow:
    """Have the loader load these, verify and close."""
    shop.write("warehouse", loaded)
    verify_window(context, lambda *_: None, patience_seconds=0)
    return shop.certify(context)


def rows(shop: ReconciledShop, table: str = "warehouse") -> list[str]:
    return [key for (key,) in shop.sql(f"select id from {table} order by id")]


def reasons(shop: ReconciledShop, context: WindowContext) -> dict[tuple[str, str], tuple[str, str | None]]:
    with connect(shop.journal) as journal:
        findings = window_findings.findings(journal, context.window)
    return {(judged.finding.hop, judged.finding.key): (judged.outcome, judged.reason) for judged in findings}


def steps(frozen: FreezeResult) -> list[tuple[Remedy, str, str]]:
    return [(action.remedy, action.target, action.key) for action in frozen.actions]


def test_a_row_that_a_person_accepted_is_not_put_aside(shop: ReconciledShop) -> None:
    shop.describe(compensation=BOTH)
    context, made = in_the_way(shop)
    shop.certify(context)
    with connect(shop.journal) as journal:
        by_hop = {judged.finding.hop: judged.finding for judged in window_findings.findings(journal, context.window)}
    accepted(shop, finding_id(STORE_HOP, by_hop[STORE_HOP].key_hash))

    again = shop.judge_and_ask_the_gate()
    frozen = plan_window(again)

    assert steps(frozen) == [(Remedy.PRODUCE, "orders", "O3")]
    assert "O2" in rows(shop)
    outcome, reason = reasons(shop, again)[LEDGER_HOP, "O2"]
    assert (outcome, str(reason).partition(";")[0]) == (
        "refused",
        f"accepted: a person accepted what {STORE_HOP} says of this key, and its rows in warehouse stay as they are",
    )
    compensate_window(again, lambda _: None)
    assert (close(shop, again, made[3:]).state, rows(shop)) == (WindowState.GAPS, ["O0", "O1", "O2", "O3"])


@pytest.mark.parametrize("is_aborted", [False, True])
def test_the_row_is_put_aside_and_then_the_record_is_produced(shop: ReconciledShop, is_aborted: bool) -> None:
    shop.describe(compensation=BOTH)
    context, made = in_the_way(shop, is_aborted=is_aborted)
    frozen = plan_window(context)
    assert steps(frozen) == [
        (Remedy.QUARANTINE, "warehouse", "O2"),
        (Remedy.PRODUCE, "orders", "O2"),
        (Remedy.PRODUCE, "orders", "O3"),
    ]
    compensate_window(context, lambda _: None)
    assert rows(shop) == ["O0", "O1"]
    assert sorted(record.key_text for record in shop.read()) == ["O0", "O1", "O2", "O3"]
    closed = close(shop, context, made[2:])
    assert rows(shop) == ["O0", "O1", "O2", "O3"]
    assert {outcome for outcome, _ in reasons(shop, context).values()} == {"repaired"}
    assert closed.state is WindowState.CERTIFIED
    assert shop.judge_and_ask_the_gate().window.revision == 2
    assert shop.sql("select row ->> 'id' from makewhole.quarantine") == [("O2",)]


def test_a_run_that_dies_between_the_two_goes_on_with_the_record(shop: ReconciledShop) -> None:
    shop.describe(compensation=BOTH)
    context, made = in_the_way(shop)
    plan_window(context)

    def die(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compensate_window(context, die)
    assert rows(shop) == ["O0", "O1"]
    assert sorted(record.key_text for record in shop.read()) == ["O0", "O1"]
    for _ in range(2):
        compensate_window(context, lambda _: None)
        assert sorted(record.key_text for record in shop.read()) == ["O0", "O1", "O2", "O3"]
    assert shop.sql("select row ->> 'id' from makewhole.quarantine") == [("O2",)]
    assert close(shop, context, made[2:]).state is WindowState.CERTIFIED


@pytest.mark.parametrize("what", ["partitions", "size"])
def test_the_row_stays_where_its_topic_would_not_take_the_record_any_more(shop: ReconciledShop, what: str) -> None:
    shop.describe(compensation=BOTH)
    context, _ = in_the_way(shop)
    frozen = plan_window(context)
    assert frozen.plan is not None
    if what == "partitions":
        partitions = shop.admin.list_topics(shop.topic).topics[shop.topic].partitions
        add_partitions(shop.admin, shop.topic, len(partitions) + 1)
    else:
        change_topic(shop.admin, shop.topic, {"max.message.bytes": 100})

    compensate_window(context, lambda _: None)

    assert rows(shop) == ["O0", "O1", "O2"]
    assert shop.sql("select count(*) from makewhole.quarantine") == [(0,)]
    why = "stale: its row stays, as its record would not be sent: the topic has"
    if what == "size":
        why = "unfit: its row stays, as its record would not be sent: with its lineage headers the record exceeds"
    with connect(shop.journal) as journal:
        done = list(plan_progress.actions_of(journal, frozen.plan.id))
    kept = [str(acted.refusal) for acted in done if acted.action.remedy is Remedy.QUARANTINE]
    assert [reason[: len(why)] for reason in kept] == [why]
    assert {acted.outcome for acted in done} == {"refused"}


@pytest.mark.parametrize("is_loaded", [False, True])
def test_an_undo_puts_the_row_back_unless_the_record_was_loaded(shop: ReconciledShop, is_loaded: bool) -> None:
    shop.describe(compensation=BOTH)
    context, made = in_the_way(shop)
    frozen = plan_window(context)
    assert frozen.plan is not None
    compensate_window(context, lambda _: None)
    if is_loaded:
        shop.write("warehouse", made[2:])
    undone(shop, context, frozen.plan.id)
    assert rows(shop) == ["O0", "O1", "O2", *(["O3"] if is_loaded else [])]


def undone(shop: ReconciledShop, context: WindowContext, plan: str) -> None:
    """Undo a plan, with a person's consent."""
    sources = FreezeSources(
        storage=context.storage.root, records=WindowRecords(context), connections=context.connections
    )
    undo = freeze_undo(shop.journal, UndoRequest(pipeline=context.pipeline, plan=plan), sources)
    assert undo.plan is not None
    answer = Answer(sha256=undo.plan.sha256, decision=Decision.APPROVED, by="anna")
    record_answer(shop.journal, undo.plan.id, answer, Approval(expires=timedelta(hours=1)))
    run_plan(shop.journal, undo.plan.id, targets_of(context.pipeline, context.connections))


def test_a_row_that_changed_meanwhile_stays_and_its_record_is_not_sent(shop: ReconciledShop) -> None:
    shop.describe(compensation=BOTH)
    context, _ = in_the_way(shop)
    plan_window(context)
    shop.sql("update warehouse set amount = 9 where id = 'O2'")
    compensate_window(context, lambda _: None)
    assert rows(shop) == ["O0", "O1", "O2"]
    assert sorted(record.key_text for record in shop.read()) == ["O0", "O1", "O3"]


def test_where_the_record_cannot_be_made_the_row_stays(shop: ReconciledShop) -> None:
    shop.describe(compensation=BOTH)
    context, _ = in_the_way(shop)
    shop.sql("delete from outbox where id = 'O2'")
    frozen = plan_window(context)
    assert steps(frozen) == [(Remedy.PRODUCE, "orders", "O3")]
    gone = ("refused", "erased: the ledger has no row of this key any more")
    assert [reasons(shop, context)[hop, "O2"] for hop in (LEDGER_HOP, STORE_HOP)] == [gone, gone]


def test_the_dry_run_says_that_the_record_waits_for_the_row(shop: ReconciledShop) -> None:
    shop.describe(compensation=BOTH)
    context, _ = in_the_way(shop)
    frozen = plan_window(context)
    assert frozen.plan is not None
    forecast = dry_run(shop.journal, frozen.plan.id, targets_of(context.pipeline, context.connections))
    assert [(part.remedy, {kind for kind, count in part.forecasts.items() if count}) for part in forecast.parts] == [
        ("quarantine", {Forecast.WOULD}),
        ("produce", {Forecast.WOULD, Forecast.WAITS}),
    ]


def _add_archive(shop: ReconciledShop) -> None:
    """Have a second store behind the topic."""
    shop.sql("create table archive as table warehouse")
    shop.describe(
        compensation=BOTH,
        more_points={"archive": store("db", "archive")},
        more_hops=[{"from": "orders", "to": "archive", "compensation": "{missing: upsert}"}],
        hop={"compensation": "{missing: upsert}"},
    )


def test_a_row_in_each_of_two_stores_is_put_aside_before_any_record_is_sent(shop: ReconciledShop) -> None:
    _add_archive(shop)
    made = orders(range(5))
    shop.trade(made, unsent=made[2:])
    shop.write("archive", [*made[:2], made[3]])
    shop.write("warehouse", made[2:3])
    context = shop.judge_and_ask_the_gate()
    frozen = plan_window(context)
    assert sorted(steps(frozen)[:2]) == sorted(
        [(Remedy.QUARANTINE, "archive", "O3"), (Remedy.QUARANTINE, "warehouse", "O2")]
    )
    compensate_window(context, lambda _: None)
    assert sorted(record.key_text for record in shop.read()) == ["O0", "O1", "O2", "O3", "O4"]
    shop.write("archive", made[2:])
    assert close(shop, context, made[2:]).state is WindowState.CERTIFIED


@pytest.mark.parametrize("is_in_the_way", [True, False])
def test_where_another_table_has_the_key_by_now_the_row_stays(shop: ReconciledShop, is_in_the_way: bool) -> None:
    """Add a row to the other table once the plan is made, or change its own row there, which is to go first."""
    _add_archive(shop)
    made = orders(range(3))
    shop.trade(made, unsent=made[2:])
    shop.write("archive", made if is_in_the_way else made[:2])
    shop.write("warehouse", made[2:])
    context = shop.judge_and_ask_the_gate()
    frozen = plan_window(context)
    *moved, sent = steps(frozen)
    assert (len(moved), sent) == (2 if is_in_the_way else 1, (Remedy.PRODUCE, "orders", "O2"))
    if is_in_the_way:
        shop.sql(f"update {moved[0][1]} set region = 'XX' where id = 'O2'")
    else:
        shop.write("archive", made[2:])

    compensate_window(context, lambda _: None)

    assert (rows(shop), rows(shop, "archive")) == (["O0", "O1", "O2"], ["O0", "O1", "O2"])
    assert sorted(record.key_text for record in shop.read()) == ["O0", "O1"]


def test_where_only_produce_is_on_the_reason_names_quarantine(shop: ReconciledShop) -> None:
    shop.describe(compensation={**BOTH, "unexpected": "report"})
    context, _ = in_the_way(shop)
    frozen = plan_window(context)
    assert steps(frozen) == [(Remedy.PRODUCE, "orders", "O3")]
    assert reasons(shop, context)[LEDGER_HOP, "O2"] == (
        "refused",
        "twice: warehouse holds the key, and would get it a second time; write `unexpected: quarantine` on hop "
        "orders→warehouse, which puts the row aside before the record is sent, or name the 'version' of warehouse if "
        "its loader overwrites",
    )


def test_a_row_that_a_later_window_calls_unexpected_is_put_aside_when_the_first_one_is_run_again(
    shop: ReconciledShop,
) -> None:
    shop.describe(compensation=BOTH)
    made = orders(range(4))
    shop.trade(made, unsent=made[2:3])
    shop.write("warehouse", [made[2] | {"at": orders([2], 1)[0]["at"]}])
    shop.trade(orders([101], 1))
    first, second = shop.judge_and_ask_the_gate(), shop.judge_and_ask_the_gate(1)
    assert shop.found(first, STORE_HOP) == {}
    assert shop.found(second, STORE_HOP) == {"O2": ("unexpected", "not_in_source")}
    plan_window(second)
    compensate_window(second, lambda _: None)
    assert rows(shop) == ["O0", "O1", "O101", "O2", "O3"]

    again = shop.judge_and_ask_the_gate()
    assert steps(plan_window(again)) == [(Remedy.QUARANTINE, "warehouse", "O2"), (Remedy.PRODUCE, "orders", "O2")]
    compensate_window(again, lambda _: None)
    assert rows(shop) == ["O0", "O1", "O101", "O3"]
    assert [record.key_text for record in shop.read()].count("O2") == 1
    assert close(shop, again, made[2:3]).state is WindowState.CERTIFIED


def test_a_row_that_is_gone_by_now_is_in_the_way_of_nothing(shop: ReconciledShop) -> None:
    shop.describe(compensation=BOTH)
    context, _ = in_the_way(shop)
    shop.sql("delete from warehouse where id = 'O2'")
    assert steps(plan_window(context)) == [(Remedy.PRODUCE, "orders", "O2"), (Remedy.PRODUCE, "orders", "O3")]
    compensate_window(context, lambda _: None)
    assert sorted(record.key_text for record in shop.read()) == ["O0", "O1", "O2", "O3"]
