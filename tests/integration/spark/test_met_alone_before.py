"""Test rows of a store that come before their record, where the window before that met them is not what it was: judged
again, of another time column or other semantics."""

import pytest

from tests.world.orders import Order, at_day
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

TWICE = ("duplicate", "written_before_committed")


def test_what_the_last_revision_of_the_window_before_met_counts(shop: ReconciledShop, days: list[list[Order]]) -> None:
    shop.write("warehouse", [at_day(0.5, days[1][1])])
    shop.judged(0)
    shop.sql("delete from warehouse where id = 'O101' and at < '2025-03-02'")
    shop.write("warehouse", [at_day(0.5, days[1][0])])
    again = shop.judged(0)
    shop.write("warehouse", [at_day(1.5, days[1][0])])

    then = shop.judged(1)

    assert again.window.revision == 2
    assert shop.found(then, STORE_HOP) == {"O100": TWICE}
    assert shop.counts(then, STORE_HOP).matched == 4


def test_what_came_between_the_revisions_of_the_window_before_is_known(
    shop: ReconciledShop, days: list[list[Order]]
) -> None:
    """Two windows later, too: the window between has not read it."""
    shop.write("warehouse", [days[1][0]])
    shop.judged(0)
    shop.judged(1)
    shop.write("warehouse", [at_day(0.5, days[2][0])])
    shop.judged(0)
    again = shop.judged(1)
    shop.write("warehouse", [at_day(2.5, days[2][0])])

    then = shop.judged(2)

    assert again.window.revision == 2
    assert shop.found(then, STORE_HOP) == {"O200": TWICE}


def test_a_table_that_is_read_by_another_time_is_looked_up(shop: ReconciledShop, days: list[list[Order]]) -> None:
    """By the former column the row was of no window that was judged; by the new one its window is judged already."""
    shop.sql("alter table warehouse add column loaded timestamptz")
    shop.sql("update warehouse set loaded = at")
    text = shop.file.read_text()
    by_loading = text.replace("table: warehouse, key: id, time: at", "table: warehouse, key: id, time: loaded")
    assert by_loading != text
    shop.file.write_text(by_loading)
    shop.write("warehouse", [at_day(0.5, days[1][0])])
    shop.sql("update warehouse set loaded = '2025-03-03 05:00Z' where id = 'O100'")
    shop.judged(0)
    shop.file.write_text(text)
    shop.write("warehouse", [at_day(1.5, days[1][0])])

    then = shop.judged(1)

    assert shop.found(then, STORE_HOP) == {"O100": TWICE}


def test_a_table_of_versions_that_became_one_of_events_is_looked_up(
    shop: ReconciledShop, days: list[list[Order]]
) -> None:
    shop.describe(has_ledger=False, is_upsert=True)
    shop.write("warehouse", [at_day(0.5, days[1][0])])
    shop.judged(0)
    shop.describe(has_ledger=False)
    shop.write("warehouse", [at_day(1.5, days[1][0])])

    assert shop.found(shop.judged(1), STORE_HOP) == {"O100": TWICE}
