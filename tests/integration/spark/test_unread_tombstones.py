"""Test keys of which a tombstone may be in what a window itself could not read."""

import pytest

from tests.world.orders import orders
from tests.world.pipeline_file import store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ERASED = ("erased", "erased_on_purpose")
MISSING = ("missing", "lost_after_topic")
UNREADABLE = ("undecidable", "unreadable_record")
EXPIRED = ("undecidable", "expired")


def describe(shop: ReconciledShop, **more: object) -> None:
    """Describe a pipeline whose warehouse has erasures named by tombstones."""
    points = {"warehouse": store("db", "warehouse", key="id", erased="tombstones")}
    shop.describe(topic_key="kafka.key", more_points=points, **more)  # type: ignore[arg-type]


def test_a_key_that_was_handed_over_may_have_its_tombstone_in_what_the_next_window_could_not_read(
    shop: ReconciledShop,
) -> None:
    """The record of O105 lies behind what is gone: a tombstone there was no later one."""
    describe(shop, settle="1h")
    made = orders(range(10))
    shop.trade(made, unloaded=[made[3]])
    first, _ = shop.whole_way()
    assert {verdict for verdict, _ in shop.found(first, STORE_HOP).values()} == {"pending"}
    shop.delete(["O3"], day=1.1)
    later = orders(range(100, 110), 1)
    shop.trade(later, unloaded=[later[5]])
    describe(shop, settle="0s")
    second = shop.open(1)
    shop.delete_records({0: 12})

    shop.judge(second)

    assert shop.found(second, STORE_HOP) == {"O3": EXPIRED, "O100": EXPIRED, "O105": MISSING}
    assert shop.found(second, LEDGER_HOP) == {"O100": EXPIRED}


def test_a_tombstone_may_be_in_a_record_that_could_not_be_read_and_may_be_of_any_key(shop: ReconciledShop) -> None:
    describe(shop, has_ledger=False)
    made = orders(range(10))
    shop.send(made[:8])
    shop.delete(["O2"])
    shop.send_raw(b"{}", key=None)
    shop.send(made[8:])
    shop.write("warehouse", [order for order in made if order["id"] not in ("O2", "O3", "O9")])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {"O2": ERASED, "O3": UNREADABLE, "O9": MISSING}
