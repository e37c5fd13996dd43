"""Test that a repair for one hop which breaks another one of the place ends no window certified."""

import pytest

from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.window import WindowState
from tests.integration.spark.test_survivors import amounts, outcomes, repair, send
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings, ledger, topic
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

NEXT_HOP = "shelf→others"
WRITES: Settings = {"limits": "{share: 1.0}", "mismatched": "upsert", "unexpected": "quarantine"}


def with_a_table_in_the_middle(shop: ReconciledShop, *, is_upsert: bool = False) -> str:
    """Describe a warehouse that is filled from one topic and fills another; return that."""
    others = shop.add_topic()
    semantics = {"semantics": "upsert"} if is_upsert else {}
    shop.describe(
        has_ledger=False,
        is_upsert=is_upsert,
        more_points={"shelf": ledger("db", "warehouse"), "others": topic("log", others)},
        more_hops=[{"from": "shelf", "to": "others", **semantics}],
        compensation=WRITES,
    )
    return others


def priced(order: Order, amount: str) -> Order:
    return order | {"amount": amount}


def test_a_row_that_is_corrected_for_one_hop_is_held_to_the_record_that_was_made_of_it(shop: ReconciledShop) -> None:
    others = with_a_table_in_the_middle(shop)
    made = orders(range(6))
    shop.send(made)
    wrong = [priced(made[0], "7.00"), *made[1:]]
    shop.write("warehouse", wrong)
    send(shop, others, wrong)
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {"O0": ("mismatched", "value_differs")}
    assert shop.found(context, NEXT_HOP) == {}

    closed = repair(shop, context)

    assert amounts(shop, "O0") == ["0.50"]
    assert closed.state is WindowState.GAPS, closed.reason
    assert shop.found(context, NEXT_HOP) == {"O0": ("mismatched", "changed_by_repair")}
    verdict, outcome, reason = outcomes(shop, context)[NEXT_HOP, "O0"]
    assert (verdict, outcome) == ("mismatched", "open")
    assert reason is not None
    assert "for orders→warehouse, and it has other values than others now; have the key sent to others" in reason
    assert outcomes(shop, context)[STORE_HOP, "O0"] == ("mismatched", "repaired", None)
    counts = shop.verified_counts(context, NEXT_HOP)
    assert (counts.matched, counts.mismatched) == (5, 1)


def test_a_row_that_is_moved_aside_leaves_its_record_without_a_source(shop: ReconciledShop) -> None:
    others = with_a_table_in_the_middle(shop)
    made = orders(range(6))
    shop.send(made[:5])
    shop.write("warehouse", made)
    send(shop, others, made)
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {"O5": ("unexpected", "not_in_source")}

    closed = repair(shop, context)

    assert amounts(shop, "O5") == []
    assert closed.state is WindowState.GAPS, closed.reason
    assert shop.found(context, NEXT_HOP) == {"O5": ("unexpected", "changed_by_repair")}


def test_a_row_of_an_earlier_window_is_held_to_its_record_until_the_topic_has_the_new_version(
    shop: ReconciledShop,
) -> None:
    others = with_a_table_in_the_middle(shop, is_upsert=True)
    made = orders(range(6))
    shop.send(made)
    shop.write("warehouse", made)
    send(shop, others, made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    newer = priced(made[0], "9.00") | {"at": orders([1], 1)[0]["at"]}
    day = orders([100], 1)
    shop.send([newer, *day])
    shop.write("warehouse", day)
    send(shop, others, day)
    context = shop.judge_and_ask_the_gate(1)
    assert set(shop.found(context, STORE_HOP)) == {"O0"}
    assert shop.found(context, NEXT_HOP) == {}

    closed = repair(shop, context)

    assert amounts(shop, "O0") == ["9.00"]
    assert closed.state is WindowState.GAPS, closed.reason
    assert shop.found(context, NEXT_HOP) == {"O0": ("mismatched", "changed_by_repair")}

    send(shop, others, [newer])
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert outcomes(shop, context)[NEXT_HOP, "O0"] == ("mismatched", "repaired", None)
    assert shop.certify(context).state is WindowState.CERTIFIED
