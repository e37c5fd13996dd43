"""Test that an Iceberg table is only taken for unchanged where its commits show it."""

import pytest

from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.spark.test_unchanged_windows import reused, why_read
from tests.world.orders import at_day, orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(12))
BOTH = {"orders": 1, "warehouse": 1}
OTHER = {"warehouse": "other files or deletes than then have rows of it, or it has another schema"}


@pytest.fixture
def judged(shop: IcebergShop) -> WindowContext:
    shop.describe_lake()
    shop.send(MADE)
    shop.load(MADE[:6])
    shop.load(MADE[6:])
    return shop.judge_and_ask_the_gate()


@pytest.mark.usefixtures("judged")
def test_commits_of_other_times_change_nothing(shop: IcebergShop) -> None:
    assert reused(shop, shop.judge_and_ask_the_gate()) == BOTH
    shop.load([at_day(3, MADE[0])])
    second = shop.judge_and_ask_the_gate()
    assert (reused(shop, second), why_read(shop, second)) == (BOTH, {})


@pytest.mark.usefixtures("judged")
def test_rows_that_came_or_went_are_read(shop: IcebergShop) -> None:
    shop.load(MADE[3:4])
    second = shop.judge_and_ask_the_gate()
    assert why_read(shop, second) == OTHER
    assert shop.found(second, STORE_HOP) == {"O3": ("duplicate", "written_before_committed")}
    shop.lake.table(TABLE).delete("id = 'O3'")
    third = shop.judge_and_ask_the_gate()
    assert (why_read(shop, third), set(shop.found(third, STORE_HOP))) == (OTHER, {"O3"})


def test_rows_without_a_time_are_new_since_what_the_window_before_has_read_by_now(shop: IcebergShop) -> None:
    """That window is judged again, and takes a row: it is no other window's any more."""
    shop.describe_lake(late="0s")
    for day in range(2):
        shop.send(orders(range(day * 100, day * 100 + 5), day))
        shop.load(orders(range(day * 100, day * 100 + 5), day))
        assert shop.whole_way(day)[1].state is WindowState.CERTIFIED
    shop.load([{**MADE[7], "at": None}])
    later = orders(range(200, 205), 2)
    shop.send(later)
    shop.load(later)
    undated = {MADE[7]["id"]: ("unexpected", "not_in_source")}
    assert shop.found(shop.judge_and_ask_the_gate(2), STORE_HOP) == undated
    assert shop.found(shop.judge_and_ask_the_gate(1), STORE_HOP) == undated

    again = shop.judge_and_ask_the_gate(2)

    assert shop.found(again, STORE_HOP) == {}
    assert why_read(shop, again) == {"warehouse": "other rows may have come late"}
