"""Test older windows that are run again, or whose plans are undone, after newer windows: nothing newer is set back."""

import pytest

from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.integration.spark.test_latest_ever import UPSERT, bury, load, repaired, version, versioned
from tests.integration.spark.test_undone import repaired as repaired_first_day
from tests.integration.spark.test_undone import undone
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
