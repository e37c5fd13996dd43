"""Test tables that stand on another server now: the transaction ids of the server before say nothing of their rows."""

from datetime import timedelta

import pytest

from makewhole.model.window import WindowState
from tests.integration.spark.test_baseline import undated
from tests.integration.spark.test_late_unmatched_rows import day_with, days, renamed
from tests.world.combinations import with_every_change
from tests.world.orders import BORN, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

FAR = "4000000000:4000000000:"
"""Seen on a server whose transaction ids were far higher: every row looks old."""
LOW = "3:3:"
"""Seen on a server whose transaction ids were far lower: every row looks new."""
OF_FILES, OF_ICEBERG = "q6urq6urq6s=", '{"uuid": "u", "snapshot": 1}'
"""Seen of a table of another system."""
ELSEWHERE = "postgresql:7000000000000000000/1/5/16384"
MISSING, UNEXPECTED = ("missing", "never_produced"), ("unexpected", "not_in_source")


def have_been_elsewhere(shop: ReconciledShop, seen: str = FAR, *, has_name: bool = True) -> None:
    """Have all tables read on another server so far, under a connection of another name or of this one."""
    shop.journal_sql(
        "update makewhole.snapshot set manifest = manifest || jsonb_build_object('pg_snapshot', %s::text, 'place', "
        "%s::text) where manifest ? 'pg_snapshot'",
        seen,
        ELSEWHERE,
    )
    shop.journal_sql(
        "update makewhole.observation set pg_snapshot = %s, place = %s where topic_id is null", seen, ELSEWHERE
    )
    if has_name:
        shop.journal_sql("update makewhole.slice_count set source = 'former'")


@pytest.mark.parametrize("has_name", with_every_change([True, False], first=1), ids=["another", "the same"])
def test_rows_that_came_late_to_a_table_that_was_moved_are_judged(shop: ReconciledShop, has_name: bool) -> None:
    days(shop, 0, 1, 2)
    have_been_elsewhere(shop, has_name=has_name)
    shop.write("outbox", [renamed(orders([203], 2)[0], "lost"), renamed(orders([3])[0], "lost long ago")])
    shop.write("warehouse", [renamed(orders([204], 2)[0], "foreign"), renamed(orders([4])[0], "ancient")])

    context, state = day_with(shop, 3)

    assert shop.found(context, LEDGER_HOP) == dict.fromkeys(("lost", "lost long ago"), MISSING)
    assert shop.found(context, STORE_HOP) == dict.fromkeys(("foreign", "ancient"), UNEXPECTED)
    assert (shop.counts(context, LEDGER_HOP).matched, state) == (80 if has_name else 60, WindowState.GAPS)

    shop.write("outbox", [renamed(orders([305], 3)[0], "lost since")])
    context, _ = day_with(shop, 4)
    assert shop.found(context, LEDGER_HOP) == {"lost since": MISSING}
    assert shop.counts(context, LEDGER_HOP).matched == 20


@pytest.mark.parametrize("seen", with_every_change([LOW, OF_FILES, FAR, OF_ICEBERG], first=1))
def test_rows_without_a_time_of_a_table_that_was_moved_may_be_older_than_the_baseline(
    shop: ReconciledShop, seen: str
) -> None:
    """Rows that came to it afterwards are judged."""
    shop.describe(start=BORN.isoformat())
    shop.write("outbox", undated(range(900, 902)))
    days(shop, 0)
    have_been_elsewhere(shop, seen)
    late = renamed(orders([3])[0], "lost")
    shop.write("outbox", [late])

    context, _ = day_with(shop, 1)
    assert shop.found(context, LEDGER_HOP) == {"lost": MISSING}
    assert shop.counts(context, LEDGER_HOP).before_baseline == 2

    shop.write("outbox", undated(range(910, 911)))
    again = shop.judged(1)
    assert shop.counts(again, LEDGER_HOP).before_baseline == 3

    context, _ = day_with(shop, 2)
    assert shop.found(context, LEDGER_HOP) == {"O910": MISSING}


def test_a_row_of_a_moved_ledger_counts_a_settle_time_after_it_was_seen_where_it_is(shop: ReconciledShop) -> None:
    shop.describe(settle="1h", max_age="1d")
    made = orders(range(10))
    shop.trade(made[:9], unsent=made[8:])
    young = ("pending", "in_flight")
    assert shop.found(shop.judged(), LEDGER_HOP) == {"O8": young}

    have_been_elsewhere(shop)
    shop.let_pass(timedelta(hours=1.1))
    shop.write("outbox", made[9:])
    assert shop.found(shop.judged(), LEDGER_HOP) == {"O8": young, "O9": young}

    shop.let_pass(timedelta(hours=1.1))
    assert shop.found(shop.judged(), LEDGER_HOP) == dict.fromkeys(("O8", "O9"), MISSING)
