"""Test older windows that are run again, or whose plans are undone, after newer windows: nothing newer is set back."""

import pytest

from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.integration.spark.test_latest_ever import UPSERT, bury, load, repaired, version, versioned
from tests.integration.spark.test_undone import repaired as repaired_first_day
from tests.integration.spark.test_undone import undone
from tests.world.orders import orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_a_key_that_a_tombstone_of_a_newer_window_deletes_is_not_written_again(shop: ReconciledShop) -> None:
    versioned(shop, "bigint", hop={"compensation": "{missing: report, mismatched: report}"})
    made = version(range(4), 2, 2)
    shop.send(made)
    shop.write("warehouse", [*made[2:], *version([1], 1, 1)])
    first, closed = shop.whole_way()
    assert {*shop.found(first, STORE_HOP)} == {"O0", "O1"}
    assert closed.state is WindowState.GAPS
    bury(shop, ["O0", "O1"], 1)
    shop.sql("delete from warehouse where id = 'O1'")
    shop.send(version([9], 2, 2, day=1))
    shop.write("warehouse", version([9], 2, 2, day=1))
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED

    versioned_again = {"topic_key": "kafka.key", "is_upsert": True, "has_version": True, "has_ledger": False}
    shop.describe(**versioned_again, hop=UPSERT)  # type: ignore[arg-type]
    again = shop.judge_and_ask_the_gate()

    assert shop.found(again, STORE_HOP) == {}
    assert plan_window(again).plan is None
    assert shop.sql("select count(*) from warehouse where id in ('O0', 'O1')") == [(0,)]


def test_a_row_that_an_undo_puts_back_does_not_survive_a_newer_version(shop: ReconciledShop) -> None:
    versioned(shop, "bigint", hop={"compensation": "{duplicate: quarantine, mismatched: upsert}"})
    made = [*version([1], 4, 4), *version(range(3), 5, 5)]
    shop.send(made)
    shop.write("warehouse", made)
    first, plan, closed = repaired_first_day(shop)
    assert (closed.state, versions(shop)) == (WindowState.CERTIFIED, [5])
    newer = version([1], 6, 6, day=1)
    shop.send(newer)
    load(shop, newer)
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED

    undone(shop, first, plan)
    for day in (0, 1):
        context = shop.judge_and_ask_the_gate(day)
        if plan_window(context).plan is not None:
            repaired(shop, day)

    assert versions(shop) == [6]
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED


def versions(shop: ReconciledShop) -> list[int]:
    return [number for (number,) in shop.sql("select version from warehouse where id = 'O1' order by 1")]


def test_a_window_that_is_certified_after_the_next_one_judged_its_keys_in_flight_is_certified(
    shop: ReconciledShop,
) -> None:
    """Its plan waited for a person, or what was accepted of it is asked again: its comparison is as old as it was."""
    shop.describe(hop={"consumer_group": "loader"})
    made, day = orders(range(10)), orders(range(100, 105), 1)
    shop.trade(made, unloaded=made[8:])
    shop.commit_group("loader", 8)
    first = shop.judge_and_ask_the_gate()
    assert {*shop.found(first, STORE_HOP)} == {"O8", "O9"}
    shop.trade(day)
    shop.write("warehouse", made[8:])
    shop.commit_group("loader", 15)
    second, closed = shop.whole_way(1)
    assert (shop.found(second, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)

    closed = shop.certify(first)

    assert (closed.state, closed.reason, closed.handed_over) == (WindowState.CERTIFIED, None, 2)


def test_a_revision_with_keys_in_flight_that_the_next_window_was_not_given_is_not_known(shop: ReconciledShop) -> None:
    shop.describe(hop={"consumer_group": "loader"})
    made, day = orders(range(10)), orders(range(100, 105), 1)
    shop.trade(made, unloaded=made[8:])
    shop.commit_group("loader", 8)
    shop.judge_and_ask_the_gate()
    shop.trade(day)
    shop.commit_group("loader", 10)
    second, closed = shop.whole_way(1)
    assert ({*shop.found(second, STORE_HOP)}, closed.state) == ({"O8", "O9"}, WindowState.GAPS)

    shop.commit_group("loader", 8)
    again, closed = shop.whole_way()

    assert {verdict for verdict, _ in shop.found(again, STORE_HOP).values()} == {"pending"}
    assert closed.state is WindowState.NOT_KNOWN
    assert closed.reason is not None and closed.reason.startswith("2 keys are still in flight, and window 2,")
