"""Test that one more late row of a key is judged where the window that reported the key is closed."""

import pytest

from makewhole.model.window import WindowState
from tests.integration.spark.test_late_unmatched_rows import day_with, renamed
from tests.world.orders import orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("is_tolerated", [True, False], ids=["tolerated", "open"])
def test_one_more_row_of_a_key_that_a_certified_window_reported_is_reported(
    shop: ReconciledShop, is_tolerated: bool
) -> None:
    """A window that is still open reads the row when it is run again."""
    shop.describe(tolerance={"duplicate": "1", "unexpected": "1"} if is_tolerated else {})
    made = orders(range(20))
    shop.trade(made)
    shop.write("warehouse", [made[5], renamed(made[3], "unknown")])
    assert shop.whole_way(0)[1].state is (WindowState.CERTIFIED if is_tolerated else WindowState.GAPS)
    shop.sql("update warehouse set region = 'XX' where id in ('O5', 'unknown')")
    second, _ = day_with(shop, 1)
    assert shop.found(second, STORE_HOP) == {}
    shop.write("warehouse", [made[5], renamed(made[3], "unknown")])

    again = shop.judged(1)

    expected = {"O5": ("duplicate", "written_before_committed"), "unknown": ("unexpected", "not_in_source")}
    assert shop.found(again, STORE_HOP) == (expected if is_tolerated else {})
    if is_tolerated:
        assert [shop.evidence(again, STORE_HOP, key)["target_copies"] for key in expected] == [3, 2]
