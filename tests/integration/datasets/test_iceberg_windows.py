"""Test whole windows over an Iceberg table: what is found, and where it lies."""

import pytest

from makewhole.model.window import WindowState
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.world.orders import Order, orders
from tests.world.shop import STORE_HOP
from tests.world.windows import Found

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(12))
FOUND: Found = {
    "O2": ("missing", "lost_after_topic"),
    "O3": ("missing", "lost_after_topic"),
    "O4": ("duplicate", "written_before_committed"),
    "O6": ("mismatched", "value_differs"),
    "O90": ("unexpected", "not_in_source"),
}


def other(order: Order) -> Order:
    """Return an order with another amount."""
    return {**order, "amount": "99.99"}


def trade_badly(shop: IcebergShop) -> None:
    """Send orders of which the loader lost O2 and O3, wrote O4 twice and O6 wrongly; O90 it took from elsewhere."""
    shop.send(MADE)
    shop.load([*MADE[:2], *MADE[4:6], other(MADE[6]), *MADE[7:]])
    shop.load([MADE[4], *orders([90])])


def test_a_window_finds_what_is_missing_there_twice_wrong_and_from_elsewhere(shop: IcebergShop) -> None:
    shop.describe_lake()
    trade_badly(shop)

    context = shop.judge_and_ask_the_gate()
    counts = shop.counts(context, STORE_HOP)

    assert shop.found(context, STORE_HOP) == FOUND
    assert (counts.source_keys, counts.matched) == (12, 8)
    assert (counts.missing, counts.duplicate, counts.mismatched, counts.unexpected) == (2, 1, 1, 1)
    snapshots = [entry.snapshot_id for entry in shop.lake.table(TABLE).history()]
    places = [copy["place"] for copy in shop.evidence(context, STORE_HOP, "O4")["target"]]
    assert {place.rpartition(".parquet:")[2] for place in places} == {
        f"2 (snapshot {snapshots[0]})",
        f"0 (snapshot {snapshots[1]})",
    }


def test_a_correct_table_is_certified(shop: IcebergShop) -> None:
    shop.describe_lake()
    shop.send(MADE)
    shop.load(MADE)

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {}
    assert closed.state is WindowState.CERTIFIED
