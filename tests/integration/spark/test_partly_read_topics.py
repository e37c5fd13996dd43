"""Judge a topic of which a reader takes some partitions: what is missing, and that all of it is of the others."""

from typing import Any

import pytest

from makewhole.cli.documents import window_document
from makewhole.journal.database import connect
from makewhole.window.context import WindowContext
from tests.world.orders import orders
from tests.world.shop import STORE_HOP
from tests.world.topics import add_partitions
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def partitions(shop: ReconciledShop, context: WindowContext) -> list[dict[str, Any] | None]:
    with connect(shop.journal) as journal:
        return [hop.get("partitions") for hop in window_document(journal, context.window)["hops"]]


@pytest.fixture
def parted(shop: ReconciledShop) -> ReconciledShop:
    """A topic of three partitions."""
    shop.partitions = 3
    add_partitions(shop.admin, shop.topic, 3)
    return shop


def test_what_is_missing_of_whole_partitions_is_said(parted: ReconciledShop) -> None:
    made = orders(range(30))
    parted.trade(made, unloaded=[order for order in made if order["number"] % 3 == 1 or order["number"] == 6])

    context = parted.judged()

    assert len(parted.found(context, STORE_HOP)) == 11
    assert partitions(parted, context) == [{"whole": {"1": 10}, "others": {"missing": 1, "records": 20}}, None]


def test_a_partition_of_which_something_came_is_not_named(parted: ReconciledShop) -> None:
    made = orders(range(30))
    parted.trade(made, unloaded=[order for order in made if order["number"] % 3 == 1][1:])

    assert partitions(parted, parted.judged()) == [None, None]


def test_records_of_other_windows_are_in_no_number(parted: ReconciledShop) -> None:
    parted.describe(hop={"consumer_group": "late"})
    first, second = orders(range(9)), orders(range(100, 109), 1)
    parted.commit_group("late", 0)
    parted.trade(first, unloaded=[order for order in first if order["number"] % 3 == 0])
    assert partitions(parted, parted.whole_way()[0]) == [None, None]
    parted.trade(second)
    parted.commit_group("late", 6)

    context = parted.judged(1)

    assert len(parted.found(context, STORE_HOP)) == 3
    assert partitions(parted, context) == [None, None]
