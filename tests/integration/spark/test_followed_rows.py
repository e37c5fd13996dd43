"""Test that a row which compensation wrote is looked at again when its original may have come beside it."""

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import orders
from tests.world.pipeline_file import Settings
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

UPSERT: Settings = {"compensation": "{missing: upsert, duplicate: quarantine}"}
BY_KEY: Settings = {"kind": "store", "connection": "db", "table": "warehouse", "key": "id"}
LATE = ("duplicate", "late_original")


def test_a_store_without_time_that_loads_the_original_late_is_reported_in_the_next_window(shop: ReconciledShop) -> None:
    shop.describe(hop=UPSERT, more_points={"warehouse": BY_KEY})
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    repaired(shop)
    shop.write("warehouse", made[4:5])  # the loader, which was late; O5 it never loads

    shop.trade(orders(range(100, 105), 1))
    second = shop.judge_and_ask_the_gate(1)

    assert shop.found(second, STORE_HOP) == {"O4": LATE}
    assert shop.evidence(second, STORE_HOP, "O4")["target_copies"] == 2
    counts = shop.counts(second, STORE_HOP)
    assert (counts.source_keys, counts.matched, counts.duplicate, counts.unexpected) == (5, 5, 1, 0)
    frozen = plan_window(second)
    assert [(action.remedy.value, action.key) for action in frozen.actions] == [("quarantine", "O4")]
    compensate_window(second, lambda _: None)
    verify_window(second, lambda *_: None, patience_seconds=0)
    assert shop.certify(second).state is WindowState.CERTIFIED
    assert shop.sql("select count(*) from warehouse where id = 'O4'") == [(1,)]

    shop.trade(orders(range(200, 205), 2))
    third, closed = shop.whole_way(2)
    assert (shop.found(third, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def test_the_window_that_was_repaired_reports_it_when_it_is_run_again(shop: ReconciledShop) -> None:
    shop.describe(hop=UPSERT, more_points={"warehouse": BY_KEY})
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:5])
    repaired(shop)
    shop.write("warehouse", made[4:5])

    again = shop.judged(0)

    assert (again.window.revision, shop.found(again, STORE_HOP)) == (2, {"O4": LATE})


def test_a_row_from_the_ledger_is_followed_as_well_and_the_ledger_says_that_it_is_known(shop: ReconciledShop) -> None:
    shop.sql("create table direct (like warehouse)")
    hop = {"from": "outbox", "to": "direct", **UPSERT}
    shop.describe(more_points={"direct": {**BY_KEY, "table": "direct"}}, more_hops=[hop])
    made = orders(range(10))
    shop.trade(made)
    shop.write("direct", made[:4] + made[5:])
    repaired(shop)
    shop.write("direct", made[4:5])

    tomorrow = orders(range(100, 105), 1)
    shop.trade(tomorrow)
    shop.write("direct", tomorrow)
    second = shop.judged(1)

    assert shop.found(second, "outbox→direct") == {"O4": LATE}
    counts = shop.counts(second, "outbox→direct")
    assert (counts.source_keys, counts.matched, counts.duplicate, counts.unexpected) == (5, 5, 1, 0)


def test_no_row_is_followed_for_ever(shop: ReconciledShop) -> None:
    """Longer than a key may wait, and than one window: the next window finds it as it looks at rows of known keys, and
    the window of the row knows why when it is run again."""
    shop.describe(hop=UPSERT, more_points={"warehouse": BY_KEY})
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:5])
    repaired(shop)
    shop.journal_sql("update makewhole.chunk set observed_at = observed_at - interval '25 hours'")
    shop.write("warehouse", made[4:5])
    shop.trade(orders(range(100, 105), 1))

    assert shop.found(shop.judged(1), STORE_HOP) == {"O4": ("duplicate", "written_before_committed")}
    assert shop.found(shop.judged(0), STORE_HOP) == {"O4": LATE}


def repaired(shop: ReconciledShop) -> WindowContext:
    """A window that was certified after rows were written straight into the store."""
    context = shop.judge_and_ask_the_gate(0)
    frozen = plan_window(context)
    assert {action.remedy.value for action in frozen.actions} == {"upsert"}
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert shop.certify(context).state is WindowState.CERTIFIED
    return context
