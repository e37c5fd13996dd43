"""Test rows that change between the snapshot that has them and the look-up that confirms their verdict."""

import pytest

from tests.world.orders import orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


def test_a_row_that_changes_after_it_was_read_is_still_one_row(shop: ReconciledShop) -> None:
    """Its record is of the window before, so that it is looked up: it has another place by then, and another time."""
    shop.trade(orders(range(6)))
    shop.whole_way()
    shop.trade(orders(range(100, 103), 1))
    shop.sql("update warehouse set at = at + interval '1 day' where id in ('O1', 'O2', 'O3')")
    context = shop.open(1)
    shop.snapshot(context)
    shop.sql(
        "update warehouse set at = at where id = 'O1'; update warehouse set at = at + interval '1 h' where id = 'O2'"
    )
    shop.sql("insert into warehouse select * from warehouse where id = 'O3'")

    shop.reconcile(context)

    assert shop.found(context, STORE_HOP) == {"O3": ("duplicate", "written_before_committed")}
