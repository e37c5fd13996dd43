"""Test keys of which one side holds different values, or it is not known which: never matched, and for a person."""

import polars as pl
import pytest

from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.compute.keys import hash_hex, with_hash
from makewhole.model.plan import PLAN_HEADER
from makewhole.model.window import WindowState
from tests.world.combinations import with_every_change
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import add_partitions
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CONTRADICTS = ("conflict", "source_contradicts_itself")


def test_two_ledger_rows_of_a_key_with_different_values_are_a_conflict(shop: ReconciledShop) -> None:
    made = orders(range(10))
    changed = {**made[3], "amount": "99.00"}
    shop.trade(made)
    shop.write("outbox", [changed, made[5]])  # the second row of O5 says the same as the first

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, LEDGER_HOP) == {"O3": CONTRADICTS}
    assert shop.found(context, STORE_HOP) == {}
    counts = shop.counts(context, LEDGER_HOP)
    assert (counts.source_keys, counts.matched, counts.conflict) == (10, 9, 1)
    assert shop.evidence(context, LEDGER_HOP, "O3")["conflict"] == {
        "source": [_held("(0,11)", "99.00"), _held("(0,4)", "3.50")],
        "target": [_held("0:3", "3.50")],
    }
    assert plan_window(context).plan is None
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert shop.outcomes(context) == {"O3": "open"}
    closed = shop.certify(context)
    assert (closed.state, closed.reason) == (
        WindowState.GAPS,
        "outbox→orders: 1 key conflict, 0 allowed",
    )


def test_a_tolerated_conflict_is_counted_and_certified(shop: ReconciledShop) -> None:
    shop.describe(tolerance={"conflict": "1"})
    made = orders(range(10))
    shop.trade(made)
    shop.write("outbox", [{**made[3], "amount": "99.00"}])

    context, closed = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == {"O3": CONTRADICTS}
    assert closed.state is WindowState.CERTIFIED


def test_a_key_that_is_lost_is_missing_whatever_its_rows_say_and_none_of_them_is_sent(shop: ReconciledShop) -> None:
    shop.describe(ledger_hop={"compensation": "{missing: produce}"})
    made = orders(range(10))
    shop.trade(made, unsent=made[3:4])
    shop.write("outbox", [{**made[3], "amount": "99.00"}])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, LEDGER_HOP) == {"O3": ("missing", "never_produced")}
    assert plan_window(context).plan is None
    assert shop.journal_sql("select outcome, outcome_reason from makewhole.finding") == [
        (
            "refused",
            "conflict: outbox has this key with different values; say which is right, then run the window again",
        )
    ]


def test_records_of_a_key_with_different_values_leave_its_row_in_doubt(shop: ReconciledShop) -> None:
    """A row that agrees with either of them agrees with nothing that is certain."""
    made = orders(range(10))
    shop.trade(made)
    shop.send([{**made[3], "amount": "99.00"}])

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {"O3": CONTRADICTS}
    assert closed.state is WindowState.GAPS


def test_a_record_that_comes_again_with_another_value_days_later_overwrites_nothing(shop: ReconciledShop) -> None:
    """The store agrees with the first record; only a person knows whether the second one is right."""
    shop.describe(hop={"compensation": "{mismatched: upsert, missing: upsert}"})
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:5])
    plan_window(shop.judge_and_ask_the_gate())
    following = orders(range(100, 105), 1)
    shop.trade(following)
    shop.send([{**order, "at": following[0]["at"], "amount": "99.00"} for order in made[3:5]])

    second, closed = shop.whole_way(1)

    assert shop.found(second, STORE_HOP) == {"O3": CONTRADICTS, "O4": ("missing", "lost_after_topic")}
    evidence = shop.evidence(second, STORE_HOP, "O3")
    assert evidence["conflict"] == {"source": [_held("0:15", "99.00")], "target": [_held("(0,4)", "3.50")]}
    assert [copy["place"] for copy in evidence["source_elsewhere"]] == ["0:3"]
    assert plan_window(second).plan is None
    assert shop.sql("select id, amount::text from warehouse where id in ('O3', 'O4')") == [("O3", "3.50")]
    assert closed.state is WindowState.GAPS


def test_a_record_of_a_conflict_that_comes_again_is_a_duplicate_in_its_own_window(shop: ReconciledShop) -> None:
    """The conflict was reported in the window of the rows, and the gate counts only what lies in this one."""
    made = orders(range(10))
    shop.trade(made)
    shop.write("outbox", [{**made[3], "amount": "99.00"}])
    first = shop.judge_and_ask_the_gate()
    assert shop.found(first, LEDGER_HOP) == {"O3": CONTRADICTS}
    following = orders(range(100, 105), 1)
    shop.trade(following)
    shop.send([{**made[3], "at": following[0]["at"]}])

    second, closed = shop.whole_way(1)

    assert shop.found(second, LEDGER_HOP) == {"O3": ("duplicate", "retry_without_idempotence")}
    assert closed.state is WindowState.GAPS


@pytest.mark.parametrize(
    "compared", with_every_change(["{number: int}", "{amount: 'decimal(8,2)', number: int}"], first=1)
)
def test_values_that_were_compared_by_other_columns_contradict_nothing(shop: ReconciledShop, compared: str) -> None:
    made = orders(range(10))
    shop.trade(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.file.write_text(shop.file.read_text().replace('{amount: "decimal(8,2)"}', compared))
    following = orders(range(100, 105), 1)
    shop.trade(following)
    shop.send([{**made[3], "at": following[0]["at"]}])

    second = shop.judge_and_ask_the_gate(1)

    assert shop.found(second, STORE_HOP) == {}


@pytest.mark.parametrize("right_in", [0, 1])
def test_a_wrong_original_beside_a_right_replay_is_a_conflict_wherever_they_lie(
    shop: ReconciledShop, right_in: int
) -> None:
    add_partitions(shop.admin, shop.topic, 2)
    shop.partitions = 2
    shop.trade(orders(range(10)), unloaded=orders([2]))
    frozen = plan_window(shop.judge_and_ask_the_gate())
    assert frozen.plan is not None
    made = orders(range(100, 105), 1)
    shop.trade(made, unsent=made[4:])
    shop.send([{**made[4], "number": 1 - right_in, "amount": "77.00"}])
    _send_as_replay(shop, frozen.plan.id, {**made[4], "number": right_in})
    shop.write("warehouse", made[4:])

    second, closed = shop.whole_way(1)

    assert shop.found(second, LEDGER_HOP) == {"O104": ("conflict", "target_contradicts_itself")}
    assert shop.found(second, STORE_HOP) == {"O104": CONTRADICTS}
    assert shop.counts(second, LEDGER_HOP).target_rows == 6
    assert closed.state is WindowState.GAPS


def _send_as_replay(shop: ReconciledShop, plan: str, order: Order) -> None:
    """Send a record, and have the journal say that an action of this plan wrote it."""
    partition = int(order["number"])
    shop.send([order], headers={PLAN_HEADER: plan})
    offset = max(record.offset for record in shop.read() if record.partition == partition)
    ((topic_id,),) = shop.journal_sql("select distinct topic_id from makewhole.lane where topic = %s", shop.topic)
    key_hash = with_hash(pl.DataFrame({"key": [order["id"]]})).select(hash_hex()).item()
    shop.journal_sql(
        "insert into makewhole.planned_action (plan, seq, chunk, remedy, hop, target, key, key_hash, before)"
        " values (%s, 7, 0, 'redeliver', %s, 'orders', %s, %s, '{}')",
        plan,
        STORE_HOP,
        order["id"],
        key_hash,
    )
    shop.journal_sql(
        "insert into makewhole.replayed_position values (%s, 'orders', 7, %s, %s, %s, %s, '{7}', array[%s::bigint])",
        plan,
        topic_id,
        partition,
        offset,
        offset,
        offset,
    )


def test_a_key_that_was_handed_over_and_whose_row_is_gone_is_not_known(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unsent=made[3:4])
    client = shop.begin_transaction(made[3:4])
    context = shop.judged()
    assert shop.found(context, LEDGER_HOP) == {"O3": ("pending", "in_flight")}
    shop.end_transaction(client, is_committed=True)
    shop.write("warehouse", made[3:4])
    # The row is deleted, and the snapshot of the first window has been cleaned away.
    shop.sql("delete from outbox where id = 'O3'")
    shop.journal_sql(
        "update makewhole.snapshot set manifest = jsonb_set(manifest, '{files}', '{}') where point = 'outbox'"
    )
    shop.trade(orders(range(100, 105), 1))

    second, closed = shop.whole_way(1)

    assert shop.found(second, LEDGER_HOP) == {"O3": ("undecidable", "source_gone")}
    assert closed.state is WindowState.NOT_KNOWN


def test_a_row_that_the_filter_keeps_out_is_unexpected_in_whatever_window_it_comes(shop: ReconciledShop) -> None:
    shop.describe(hop={"where": "\"region = 'EU'\""})
    made = orders(range(10))
    shop.trade(made, unloaded=made[1::2])
    first, closed = shop.whole_way()
    assert (shop.found(first, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)
    following = orders(range(100, 105), 1)
    shop.trade(following, unloaded=following[1::2])
    shop.write("warehouse", [{**made[3], "at": following[0]["at"]}])

    second, closed = shop.whole_way(1)

    assert shop.found(second, STORE_HOP) == {"O3": ("unexpected", "not_in_source")}
    assert closed.state is WindowState.GAPS


def test_a_row_that_passed_the_filter_in_an_earlier_window_is_expected(shop: ReconciledShop) -> None:
    """One record of the key passes, and another one, in the same window, does not."""
    shop.describe(hop={"where": "\"region = 'EU'\""})
    made = orders(range(10))
    shop.trade(made, unloaded=made)
    shop.send([{**made[4], "region": "US"}])
    shop.write("warehouse", made[::2])
    shop.whole_way()
    following = orders(range(100, 105), 1)
    shop.trade(following, unloaded=following[1::2])
    shop.sql("update warehouse set at = %s where id = 'O4'", following[0]["at"])

    second, _ = shop.whole_way(1)

    assert shop.found(second, STORE_HOP) == {}


def _held(place: str, amount: str) -> dict[str, object]:
    return {"place": place, "values": {"amount": amount}}
