"""Test where windows meet: late records, open transactions, repeats, replays, slow consumers. Judged once, by name."""

import hashlib
import json
from collections import Counter
from itertools import chain

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import plan_progress
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.results import handover_keys
from makewhole.model.gate import GateAnswer
from makewhole.model.plan import PlanState
from makewhole.model.verdict import Verdict
from makewhole.model.window import WindowState
from makewhole.window.certifying.certificate_content import certificate_body, certified_content
from makewhole_spark.reconcile import judge_window
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

RESENT = ("duplicate", "retry_without_idempotence")


def test_a_whole_window_is_certified_without_a_finding_and_so_is_the_next(shop: ReconciledShop) -> None:
    for day in (0, 1):
        shop.trade(orders(range(day * 100, day * 100 + 50), day))
        context, closed = shop.whole_way(day)
        assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
        for hop in (LEDGER_HOP, STORE_HOP):
            counts = shop.counts(context, hop)
            assert (counts.source_keys, counts.matched, counts.target_rows) == (50, 50, 50)
            assert shop.found(context, hop) == {}


def test_what_never_came_is_missing_and_what_was_not_loaded_is_lost_after_the_topic(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unsent=made[3:4], unloaded=made[7:8])

    context, closed = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == {"O3": ("missing", "never_produced")}
    assert shop.found(context, STORE_HOP) == {"O7": ("missing", "lost_after_topic")}
    assert closed.state is WindowState.GAPS


def test_a_record_that_comes_after_the_cut_is_not_missing_and_not_judged_twice(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unsent=made[5:6])
    first = shop.open()
    shop.send(made[5:6])
    shop.write("warehouse", made[5:6])
    shop.judge(first)
    shop.validate(first)

    assert shop.certify(first).state is WindowState.CERTIFIED
    assert shop.counts(first, LEDGER_HOP).matched == 10
    assert shop.counts(first, STORE_HOP).source_keys == 9

    shop.trade(orders(range(100, 105), 1))
    second, closed = shop.whole_way(1)
    assert closed.state is WindowState.CERTIFIED
    assert shop.counts(second, LEDGER_HOP).source_keys == 5
    assert shop.counts(second, STORE_HOP).matched == 6


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_record_in_an_open_transaction_is_handed_over_and_judged_by_name_in_the_next_window(
    shop: ReconciledShop, is_committed: bool
) -> None:
    made = orders(range(10))
    shop.trade(made, unsent=made[8:])
    transaction = shop.begin_transaction(made[8:])

    first, closed = shop.whole_way()

    pending = {"O8": ("pending", "in_flight"), "O9": ("pending", "in_flight")}
    assert shop.found(first, LEDGER_HOP) == pending
    assert shop.counts(first, LEDGER_HOP).matched == 8
    assert closed.state is WindowState.CERTIFIED
    assert closed.certificate is not None
    assert closed.certificate.body["handed_over"]["keys"] == 2

    shop.end_transaction(transaction, is_committed=is_committed)
    shop.write("warehouse", made[8:] if is_committed else [])
    shop.trade(orders(range(100, 105), 1))
    second, closed = shop.whole_way(1)
    assert shop.counts(second, LEDGER_HOP).source_keys == 7
    if is_committed:
        assert shop.found(second, LEDGER_HOP) == {}
        assert closed.state is WindowState.CERTIFIED
    else:
        assert shop.found(second, LEDGER_HOP) == dict.fromkeys(("O8", "O9"), ("missing", "aborted_transaction"))
        assert closed.state is WindowState.GAPS


def test_every_key_in_flight_is_handed_over_though_the_journal_keeps_fewer_findings(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = orders(range(20))
    shop.trade(made, unsent=made[10:], unloaded=made[:3])
    transaction = shop.begin_transaction(made[10:])
    with monkeypatch.context() as limit:
        limit.setattr(judge_window, "_JOURNAL_FINDINGS", 4)
        first = shop.open()
        shop.judge(first)

    with connect(shop.journal) as journal:
        handed_over = list(chain(*handover_keys.handovers(journal, first.pipeline.name, first.window.number)))
        assert len(window_findings.findings(journal, first.window)) == 4
        content = certified_content(journal, first.window)
    assert sorted(key for (_, key, _, _) in handed_over) == sorted(order["id"] for order in made[10:])
    identities = sorted(f"{hop}|{key_hash}" for (hop, _, key_hash, _) in handed_over)
    text = json.dumps(identities, separators=(",", ":"), ensure_ascii=False)
    assert content["handed_over"] == {"keys": 10, "digest": hashlib.sha256(text.encode()).hexdigest()}
    assert shop.validate(first).answer is GateAnswer.FAIL  # for the three that were not loaded

    shop.end_transaction(transaction, is_committed=False)
    shop.trade(orders(range(100, 105), 1))
    second, closed = shop.whole_way(1)
    assert shop.counts(second, LEDGER_HOP).source_keys == 15
    assert shop.found(second, LEDGER_HOP) == {order["id"]: ("missing", "aborted_transaction") for order in made[10:]}
    assert closed.state is WindowState.GAPS


def test_a_window_with_more_findings_than_the_journal_keeps_is_never_planned_in_part(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(compensation={"missing": "upsert", "limits": "{share: 1.0}"})
    made = orders(range(10))
    shop.trade(made, unloaded=made[:6])
    with monkeypatch.context() as limit:
        limit.setattr(judge_window, "_JOURNAL_FINDINGS", 4)
        first = shop.judge_and_ask_the_gate()

    refused = plan_window(first)

    assert refused.plan is not None
    assert (refused.plan.state, refused.plan.counts, refused.actions) == (PlanState.REFUSED, {}, ())
    assert refused.plan.reason == (
        "2 findings that a plan needs are in the files of the results alone, because the journal keeps no more of "
        "a window: a plan would be of a part. Find out what broke, let the loader load again or restore the store, "
        "then run this window again: a plan is made of what is left"
    )
    assert plan_window(first).plan == refused.plan
    shop.write("warehouse", made[:2])
    verified = verify_window(first, lambda *_: None, patience_seconds=0)
    assert verified.gaps == 6
    assert verified.gate.answer is GateAnswer.FAIL
    assert shop.certify(first).state is WindowState.GAPS
    with connect(shop.journal) as journal:
        assert window_findings.count_left_out(journal, first.window) == {("orders→warehouse", Verdict.MISSING): 2}
        assert certificate_body(journal, first.pipeline, first.window)["how"]["findings_left_out"] == {"missing": 2}
        assert sum(window_findings.count_open(journal, first.window).values()) == 6 - verified.whole

    again = shop.judge_and_ask_the_gate()
    frozen = plan_window(again)
    assert again.window.revision == 2
    assert sorted(action.key for action in frozen.actions) == [order["id"] for order in made[2:6]]


def test_a_flood_that_is_only_reported_does_not_keep_what_is_lost_from_being_repaired(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(compensation={"missing": "upsert", "limits": "{share: 1.0}"})
    made = orders(range(6))
    shop.trade(made, unloaded=made[:2])
    shop.write("warehouse", [dict(order, id=f"unmatched-{order['id']}") for order in made])
    with monkeypatch.context() as limit:
        limit.setattr(judge_window, "_JOURNAL_FINDINGS", 3)
        first = shop.judge_and_ask_the_gate()

    frozen = plan_window(first)

    assert frozen.plan is not None
    assert sorted(action.key for action in frozen.actions) == [order["id"] for order in made[:2]]
    with connect(shop.journal) as journal:
        left_out = window_findings.count_left_out(journal, first.window)
    assert left_out == {("orders→warehouse", Verdict.UNEXPECTED): 5}
    compensate_window(first, lambda _: None)
    verified = verify_window(first, lambda *_: None, patience_seconds=0)
    assert (verified.whole, verified.gaps) == (2, 8)
    assert shop.certify(first).state is WindowState.GAPS


def test_a_key_in_flight_that_the_journal_did_not_take_is_an_error_of_the_gate(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unsent=made[8:])
    shop.begin_transaction(made[8:])
    shop.journal_sql(
        "create function drop_one() returns trigger language plpgsql as "
        "$$ begin return case when new.key = 'O9' then null else new end; end $$"
    )
    shop.journal_sql(
        "create trigger lossy before insert on makewhole.handover for each row execute function drop_one()"
    )

    context = shop.open()
    shop.judge(context)
    report = shop.validate(context)

    assert report.answer is GateAnswer.ERROR
    assert report.failures == (
        f"{LEDGER_HOP}: 2 keys pending, 1 in the journal as handed over: the next window judges only these. "
        "Run the window again for a new revision",
    )
    assert shop.certify(context).state is WindowState.ERROR


def test_an_aborted_transaction_loses_its_records_and_a_store_that_has_them_read_uncommitted(
    shop: ReconciledShop,
) -> None:
    made = orders(range(10))
    shop.trade(made, unsent=made[8:])
    shop.end_transaction(shop.begin_transaction(made[8:]), is_committed=False)
    shop.write("warehouse", made[9:])
    shop.write("warehouse", orders([77]))

    context, closed = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == dict.fromkeys(("O8", "O9"), ("missing", "aborted_transaction"))
    assert shop.found(context, STORE_HOP) == {
        "O9": ("unexpected", "read_uncommitted"),
        "O77": ("unexpected", "not_in_source"),
    }
    (aborted,) = shop.evidence(context, LEDGER_HOP, "O9")["target"]
    assert (aborted["aborted"], aborted["offset"]) == (True, 9)
    assert closed.state is WindowState.GAPS
    accounting = shop.manifests(context)["orders"]["accounting"]
    assert (accounting["span"], accounting["data"], accounting["aborted"], accounting["control"]) == (11, 8, 2, 1)


def test_a_repeat_in_a_later_window_is_found_there_with_its_first_copy_and_nowhere_else(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made)
    first, _ = shop.whole_way()
    assert shop.found(first, LEDGER_HOP) == {}

    shop.send([{**made[3], "at": orders([3], 1)[0]["at"]}])
    shop.trade(orders(range(100, 105), 1))
    second, closed = shop.whole_way(1)

    assert shop.found(second, LEDGER_HOP) == {"O3": RESENT}
    assert shop.evidence(second, LEDGER_HOP, "O3")["elsewhere"] == ["0:3"]
    assert shop.counts(second, LEDGER_HOP).extra_copies == 1
    assert shop.found(second, STORE_HOP) == {}
    assert closed.state is WindowState.GAPS

    shop.trade(orders(range(200, 205), 2))
    third, closed = shop.whole_way(2)
    assert (shop.found(third, LEDGER_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def test_a_repeat_is_named_by_how_the_producer_repeated_it(shop: ReconciledShop) -> None:
    made = orders(range(4))
    shop.write("outbox", made)
    shop.write("warehouse", made)
    shop.send(made[:3], settings={"enable.idempotence": True})
    shop.send([made[1], made[3], made[3]])
    shop.send(made[2:3], settings={"enable.idempotence": True})

    context, _ = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == {
        "O1": ("duplicate", "application_resend"),
        "O2": ("duplicate", "application_resend"),
        "O3": RESENT,
    }


def test_replays_are_no_duplicates_later_and_forged_lineage_is(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    first = shop.judge_and_ask_the_gate()
    frozen = plan_window(first)
    assert frozen.plan is not None
    compensate_window(first, lambda _: None)
    shop.write("warehouse", made[4:6])
    verified = verify_window(first, lambda *_: None)
    assert (verified.whole, verified.gaps) == (2, 2)
    assert shop.certify(first).state is WindowState.CERTIFIED
    with connect(shop.journal) as journal:
        actions = [stored.action for stored in plan_progress.actions_of(journal, frozen.plan.id)]
    assert Counter(action.remedy for action in actions) == {"redeliver": 2}

    genuine = {"makewhole-plan": frozen.plan.id}
    shop.send(made[5:6], headers=genuine)  # the plan replayed it, once
    shop.send(made[6:7], headers=genuine)  # the plan never replayed it
    shop.send(made[7:8], headers={"makewhole-plan": "shop-1-000000000000"})  # no such plan
    shop.trade(orders(range(100, 105), 1))
    second, closed = shop.whole_way(1)

    assert set(shop.found(second, LEDGER_HOP)) == {"O5", "O6", "O7"}
    assert {verdict for verdict, _ in shop.found(second, LEDGER_HOP).values()} == {"duplicate"}
    assert shop.found(second, STORE_HOP) == {}
    assert closed.state is WindowState.GAPS


def test_what_the_consumer_group_has_not_reached_is_pending_and_what_it_passed_is_lost(shop: ReconciledShop) -> None:
    shop.describe(hop={"consumer_group": "loader"})
    made = orders(range(10))
    shop.trade(made, unloaded=[made[2], *made[6:]])
    shop.commit_group("loader", 6)

    first, closed = shop.whole_way()

    assert shop.found(first, STORE_HOP) == {
        "O2": ("missing", "committed_before_written"),
        **dict.fromkeys(("O6", "O7", "O8", "O9"), ("pending", "not_yet_consumed")),
    }
    assert shop.counts(first, STORE_HOP).pending == 4
    assert closed.state is WindowState.GAPS

    shop.write("warehouse", made[6:8])
    shop.trade(orders(range(100, 105), 1))
    shop.commit_group("loader", 15)
    second, _ = shop.whole_way(1)
    assert shop.found(second, STORE_HOP) == dict.fromkeys(("O8", "O9"), ("missing", "committed_before_written"))
    assert shop.counts(second, STORE_HOP).source_keys == 9


def test_a_consumer_that_stays_behind_for_days_loses_nothing_by_it(shop: ReconciledShop) -> None:
    shop.describe(hop={"consumer_group": "loader"})
    made = orders(range(10))
    shop.trade(made, unloaded=made[8:])
    shop.commit_group("loader", 8)
    behind = dict.fromkeys(("O8", "O9"), ("pending", "not_yet_consumed"))
    assert shop.found(shop.whole_way()[0], STORE_HOP) == behind

    for day in (1, 2):
        later = orders(range(day * 100, day * 100 + 5), day)
        shop.trade(later, unloaded=later[4:])
        behind[later[4]["id"]] = ("pending", "not_yet_consumed")
        context, closed = shop.whole_way(day)
        assert shop.found(context, STORE_HOP) == behind
        assert closed.state is WindowState.CERTIFIED

    shop.commit_group("loader", 25)
    shop.write("warehouse", [{**made[8], "amount": "1.00"}])
    shop.trade(orders(range(300, 305), 3))
    shop.commit_group("loader", 25)
    last, _ = shop.whole_way(3)
    assert shop.found(last, STORE_HOP) == {
        "O8": ("mismatched", "value_differs"),
        **dict.fromkeys(("O9", "O104", "O204"), ("missing", "committed_before_written")),
    }
    assert shop.evidence(last, STORE_HOP, "O9")["source"][0]["place"] == "0:9"


def test_a_revision_that_died_before_it_judged_takes_nothing_from_the_next_window(shop: ReconciledShop) -> None:
    """A key in flight and a row that was written late belong to the next window, whatever became of a second look."""
    made = orders(range(10))
    shop.trade(made[:9], unsent=made[8:9])
    transaction = shop.begin_transaction(made[8:9])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.write("outbox", made[9:])
    shop.end_transaction(transaction, is_committed=False)

    assert shop.open().window.revision == 2  # and there it ended
    shop.trade(orders(range(100, 105), 1))
    second, closed = shop.whole_way(1)

    assert shop.found(second, LEDGER_HOP) == {
        "O8": ("missing", "aborted_transaction"),
        "O9": ("missing", "never_produced"),
    }
    assert closed.state is WindowState.GAPS


def test_a_window_with_nothing_but_pending_keys_is_not_certified(shop: ReconciledShop) -> None:
    shop.describe(hop={"consumer_group": "loader"})
    made = orders(range(5))
    shop.trade(made, unloaded=made)
    shop.commit_group("loader", 0)

    context, closed = shop.whole_way()

    assert shop.counts(context, STORE_HOP).pending == 5
    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)


def test_a_transaction_that_spans_the_end_of_the_interval_loses_nothing(shop: ReconciledShop) -> None:
    """Its records carry the times of two days; the first window ends inside it."""
    before, after = orders(range(5)), orders(range(100, 105), 1)
    shop.write("outbox", [*before, *after])
    shop.write("warehouse", [*before, *after])
    shop.end_transaction(shop.begin_transaction([*before, *after]), is_committed=True)

    for day, number in ((0, 5), (1, 5)):
        context, closed = shop.whole_way(day)
        assert closed.state is WindowState.CERTIFIED
        assert [shop.counts(context, hop).matched for hop in (LEDGER_HOP, STORE_HOP)] == [number, number]
