"""Test stores of events whose source is a table: no key index shows in which windows a key was before."""

import pytest

from tests.world.orders import Order, at_day, orders
from tests.world.pipeline_file import ledger, store, topic
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

HOP = "outbox→archive"
TWICE = ("duplicate", "written_before_committed")


def archived(shop: ReconciledShop, made: list[Order]) -> None:
    for table in ("outbox", "archive"):
        shop.write(table, made)


@pytest.fixture
def archive(shop: ReconciledShop) -> ReconciledShop:
    """A shop whose ledger leads into a table, besides."""
    shop.describe(
        allow_empty=True,
        more_points={"archive": store("db", "archive")},
        more_hops=[{"from": "outbox", "to": "archive"}],
        is_observing=True,
    )
    shop.sql("create table archive (like warehouse)")
    return shop


def test_a_key_that_both_tables_have_again_in_a_later_window_is_a_duplicate(archive: ReconciledShop) -> None:
    archived(archive, orders(range(5)))
    first = archive.judged(0)
    archived(archive, [*orders(range(100, 103), 1), at_day(1.5, orders([2])[0])])

    then = archive.judged(1)

    assert archive.found(first, HOP) == {}
    assert archive.found(then, HOP) == {"O2": TWICE}
    assert archive.counts(then, HOP).matched == 3


def test_a_row_that_another_topic_brought_is_known_when_that_topic_is_in_the_file_no_more(shop: ReconciledShop) -> None:
    others = shop.add_topic()
    shop.describe(
        has_ledger=False,
        more_points={"others": topic("log", others)},
        more_hops=[{"from": "others", "to": "warehouse"}],
        is_observing=True,
    )
    own, shop.topic = shop.topic, others
    shop.send(orders([50]))
    shop.topic = own
    shop.write("warehouse", orders([50]))
    shop.send(orders(range(5)))
    shop.write("warehouse", orders(range(5)))
    first = shop.judged(0)
    assert (shop.found(first, STORE_HOP), shop.found(first, "others→warehouse")) == ({}, {})
    shop.describe(has_ledger=False)
    made = [*orders(range(100, 103), 1), at_day(1.5, orders([50])[0])]
    shop.send(made)
    shop.write("warehouse", made)

    assert shop.found(shop.judged(1), STORE_HOP) == {"O50": TWICE}


def test_a_row_beside_that_of_another_ledger_in_an_earlier_window_is_a_duplicate(shop: ReconciledShop) -> None:
    shop.describe(
        more_points={"desk": ledger("db", "desk")}, more_hops=[{"from": "desk", "to": "warehouse"}], is_observing=True
    )
    shop.sql("create table desk (like warehouse)")
    shop.trade(orders(range(5)))
    at_the_desk = orders([50])
    for table in ("desk", "warehouse"):
        shop.write(table, at_the_desk)
    first = shop.judged(0)
    assert (shop.found(first, STORE_HOP), shop.found(first, "desk→warehouse")) == ({}, {})
    shop.trade([*orders(range(100, 103), 1), at_day(1.5, at_the_desk[0])])

    then = shop.judged(1)

    assert shop.found(then, STORE_HOP) == {"O50": TWICE}
    assert shop.counts(then, STORE_HOP).matched == 3
