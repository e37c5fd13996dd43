"""Where windows meet: late records, open transactions, repeats, replays, consumers behind. Judged once, by name."""

import pytest

from makewhole.compensation.plan_window import compensate_window, plan_window, verify_window
from makewhole.compensation.planning.draft import count_remedies
from makewhole.journal import plans
from makewhole.journal.database import connect
from makewhole.model.window import WindowState
from tests.integration.spark.world import LEDGER_HOP, STORE_HOP, World, orders

pytestmark = pytest.mark.integration

RESENT = ("duplicate", "retry_without_idempotence")


def test_a_whole_window_is_certified_without_a_finding_and_so_is_the_next(world: World) -> None:
    for day in (0, 1):
        world.trade(orders(range(day * 100, day * 100 + 50), day))
        context, closed = world.whole_way(day)
        assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
        for hop in (LEDGER_HOP, STORE_HOP):
            counts = world.counts(context, hop)
            assert (counts.source_keys, counts.matched, counts.target_rows) == (50, 50, 50)
            assert world.found(context, hop) == {}


def test_what_never_came_is_missing_and_what_was_not_loaded_is_lost_after_the_topic(world: World) -> None:
    made = orders(range(10))
    world.trade(made, unsent=made[3:4], unloaded=made[7:8])

    context, closed = world.whole_way()

    assert world.found(context, LEDGER_HOP) == {"O3": ("missing", "never_produced")}
    assert world.found(context, STORE_HOP) == {"O7": ("missing", "lost_after_topic")}
    assert closed.state is WindowState.GAPS


def test_a_record_that_comes_after_the_cut_is_not_missing_and_not_judged_twice(world: World) -> None:
    made = orders(range(10))
    world.trade(made, unsent=made[5:6])
    first = world.open()
    world.send(made[5:6])
    world.write("warehouse", made[5:6])
    world.judge(first)
    world.validate(first)

    assert world.certify(first).state is WindowState.CERTIFIED
    assert world.counts(first, LEDGER_HOP).matched == 10
    assert world.counts(first, STORE_HOP).source_keys == 9

    world.trade(orders(range(100, 105), 1))
    second, closed = world.whole_way(1)
    assert closed.state is WindowState.CERTIFIED
    assert world.counts(second, LEDGER_HOP).source_keys == 5
    assert world.counts(second, STORE_HOP).matched == 6


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_record_in_an_open_transaction_is_handed_over_and_judged_by_name_in_the_next_window(
    world: World, is_committed: bool
) -> None:
    made = orders(range(10))
    world.trade(made, unsent=made[8:])
    transaction = world.begin_transaction(made[8:])

    first, closed = world.whole_way()

    pending = {"O8": ("pending", "in_flight"), "O9": ("pending", "in_flight")}
    assert world.found(first, LEDGER_HOP) == pending
    assert world.counts(first, LEDGER_HOP).matched == 8
    assert closed.state is WindowState.CERTIFIED
    assert closed.certificate is not None
    assert closed.certificate.body["handed_over"]["keys"] == 2

    world.end_transaction(transaction, is_committed=is_committed)
    world.write("warehouse", made[8:] if is_committed else [])
    world.trade(orders(range(100, 105), 1))
    second, closed = world.whole_way(1)
    assert world.counts(second, LEDGER_HOP).source_keys == 7
    if is_committed:
        assert world.found(second, LEDGER_HOP) == {}
        assert closed.state is WindowState.CERTIFIED
    else:
        assert world.found(second, LEDGER_HOP) == dict.fromkeys(("O8", "O9"), ("missing", "aborted_transaction"))
        assert closed.state is WindowState.GAPS


def test_an_aborted_transaction_loses_its_records_and_a_store_that_has_them_read_uncommitted(world: World) -> None:
    made = orders(range(10))
    world.trade(made, unsent=made[8:])
    world.end_transaction(world.begin_transaction(made[8:]), is_committed=False)
    world.write("warehouse", made[9:])
    world.write("warehouse", orders([77]))

    context, closed = world.whole_way()

    assert world.found(context, LEDGER_HOP) == dict.fromkeys(("O8", "O9"), ("missing", "aborted_transaction"))
    assert world.found(context, STORE_HOP) == {
        "O9": ("unexpected", "read_uncommitted"),
        "O77": ("unexpected", "not_in_source"),
    }
    (aborted,) = world.evidence(context, LEDGER_HOP, "O9")["target"]
    assert (aborted["aborted"], aborted["offset"]) == (True, 9)
    assert closed.state is WindowState.GAPS
    accounting = world.manifests(context)["orders"]["accounting"]
    assert (accounting["span"], accounting["data"], accounting["aborted"], accounting["control"]) == (11, 8, 2, 1)


def test_a_repeat_in_a_later_window_is_found_there_with_its_first_copy_and_nowhere_else(world: World) -> None:
    made = orders(range(10))
    world.trade(made)
    first, _ = world.whole_way()
    assert world.found(first, LEDGER_HOP) == {}

    world.send([{**made[3], "at": orders([3], 1)[0]["at"]}])
    world.trade(orders(range(100, 105), 1))
    second, closed = world.whole_way(1)

    assert world.found(second, LEDGER_HOP) == {"O3": RESENT}
    assert world.evidence(second, LEDGER_HOP, "O3")["elsewhere"] == ["0:3"]
    assert world.counts(second, LEDGER_HOP).extra_copies == 1
    assert world.found(second, STORE_HOP) == {}
    assert closed.state is WindowState.GAPS

    world.trade(orders(range(200, 205), 2))
    third, closed = world.whole_way(2)
    assert (world.found(third, LEDGER_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def test_a_repeat_is_named_by_how_the_producer_repeated_it(world: World) -> None:
    made = orders(range(4))
    world.write("outbox", made)
    world.write("warehouse", made)
    world.send(made[:3], settings={"enable.idempotence": True})
    world.send([made[1], made[3], made[3]])
    world.send(made[2:3], settings={"enable.idempotence": True})

    context, _ = world.whole_way()

    assert world.found(context, LEDGER_HOP) == {
        "O1": ("duplicate", "application_resend"),
        "O2": ("duplicate", "application_resend"),
        "O3": RESENT,
    }


def test_replays_are_no_duplicates_later_and_forged_lineage_is(world: World) -> None:
    made = orders(range(10))
    world.trade(made, unloaded=made[4:6])
    first = world.judge_and_ask_the_gate()
    frozen = plan_window(first)
    assert frozen.plan is not None
    compensate_window(first, lambda _: None)
    world.write("warehouse", made[4:6])
    verified = verify_window(first, lambda *_: None)
    assert (verified.whole, verified.gaps) == (2, 2)
    assert world.certify(first).state is WindowState.CERTIFIED
    with connect(world.journal) as journal:
        actions = [stored.action for stored in plans.actions_of(journal, frozen.plan.id)]
    assert count_remedies(actions) == {"redeliver": 2}

    genuine = {"makewhole-plan": frozen.plan.id}
    world.send(made[5:6], headers=genuine)  # the plan replayed it, once
    world.send(made[6:7], headers=genuine)  # the plan never replayed it
    world.send(made[7:8], headers={"makewhole-plan": "shop-1-000000000000"})  # no such plan
    world.trade(orders(range(100, 105), 1))
    second, closed = world.whole_way(1)

    assert set(world.found(second, LEDGER_HOP)) == {"O5", "O6", "O7"}
    assert {verdict for verdict, _ in world.found(second, LEDGER_HOP).values()} == {"duplicate"}
    assert world.found(second, STORE_HOP) == {}
    assert closed.state is WindowState.GAPS


def test_what_the_consumer_group_has_not_reached_is_pending_and_what_it_passed_is_lost(world: World) -> None:
    world.describe(hop=", consumer_group: loader")
    made = orders(range(10))
    world.trade(made, unloaded=[made[2], *made[6:]])
    world.commit_group("loader", 6)

    first, closed = world.whole_way()

    assert world.found(first, STORE_HOP) == {
        "O2": ("missing", "committed_before_written"),
        **dict.fromkeys(("O6", "O7", "O8", "O9"), ("pending", "not_yet_consumed")),
    }
    assert world.counts(first, STORE_HOP).pending == 4
    assert closed.state is WindowState.GAPS

    world.write("warehouse", made[6:8])
    world.trade(orders(range(100, 105), 1))
    world.commit_group("loader", 15)
    second, _ = world.whole_way(1)
    assert world.found(second, STORE_HOP) == dict.fromkeys(("O8", "O9"), ("missing", "committed_before_written"))
    assert world.counts(second, STORE_HOP).source_keys == 9


def test_a_consumer_that_stays_behind_for_days_loses_nothing_by_it(world: World) -> None:
    world.describe(hop=", consumer_group: loader")
    made = orders(range(10))
    world.trade(made, unloaded=made[8:])
    world.commit_group("loader", 8)
    behind = dict.fromkeys(("O8", "O9"), ("pending", "not_yet_consumed"))
    assert world.found(world.whole_way()[0], STORE_HOP) == behind

    for day in (1, 2):
        later = orders(range(day * 100, day * 100 + 5), day)
        world.trade(later, unloaded=later[4:])
        behind[later[4]["id"]] = ("pending", "not_yet_consumed")
        context, closed = world.whole_way(day)
        assert world.found(context, STORE_HOP) == behind
        assert closed.state is WindowState.CERTIFIED

    world.commit_group("loader", 25)
    world.write("warehouse", [{**made[8], "amount": "1.00"}])
    world.trade(orders(range(300, 305), 3))
    world.commit_group("loader", 25)
    last, _ = world.whole_way(3)
    assert world.found(last, STORE_HOP) == {
        "O8": ("mismatched", "value_differs"),
        **dict.fromkeys(("O9", "O104", "O204"), ("missing", "committed_before_written")),
    }
    assert world.evidence(last, STORE_HOP, "O9")["source"][0]["place"] == "0:9"


def test_a_revision_that_died_before_it_judged_takes_nothing_from_the_next_window(world: World) -> None:
    """A key in flight and a row that was written late belong to the next window, whatever became of a second look."""
    made = orders(range(10))
    world.trade(made[:9], unsent=made[8:9])
    transaction = world.begin_transaction(made[8:9])
    assert world.whole_way()[1].state is WindowState.CERTIFIED
    world.write("outbox", made[9:])
    world.end_transaction(transaction, is_committed=False)

    assert world.open().window.revision == 2  # and there it ended
    world.trade(orders(range(100, 105), 1))
    second, closed = world.whole_way(1)

    assert world.found(second, LEDGER_HOP) == {
        "O8": ("missing", "aborted_transaction"),
        "O9": ("missing", "never_produced"),
    }
    assert closed.state is WindowState.GAPS


def test_a_window_with_nothing_but_pending_keys_is_not_certified(world: World) -> None:
    world.describe(hop=", consumer_group: loader")
    made = orders(range(5))
    world.trade(made, unloaded=made)
    world.commit_group("loader", 0)

    context, closed = world.whole_way()

    assert world.counts(context, STORE_HOP).pending == 5
    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)


def test_a_transaction_that_spans_the_end_of_the_interval_loses_nothing(world: World) -> None:
    """Its records carry the times of two days; the first window ends inside it."""
    before, after = orders(range(5)), orders(range(100, 105), 1)
    world.write("outbox", [*before, *after])
    world.write("warehouse", [*before, *after])
    world.end_transaction(world.begin_transaction([*before, *after]), is_committed=True)

    for day, number in ((0, 5), (1, 5)):
        context, closed = world.whole_way(day)
        assert closed.state is WindowState.CERTIFIED
        assert [world.counts(context, hop).matched for hop in (LEDGER_HOP, STORE_HOP)] == [number, number]
