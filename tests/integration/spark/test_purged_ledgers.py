"""Test ledgers whose rows are purged, on a hop that goes straight into a store: what both had is never unexpected."""

import pytest

from makewhole.model.window import WindowState
from tests.integration.spark.test_survivors import repair
from tests.world.combinations import with_every_change
from tests.world.orders import COLUMNS, Order, orders
from tests.world.pipeline_file import fed_by_ledgers
from tests.world.shop import LEDGER_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

HOP = "outbox→warehouse"


def describe(shop: ReconciledShop, late: str = "1h", **hop: str) -> None:
    compensation = "{limits: {share: 1.0}, unexpected: quarantine}"
    shop.file.write_text(fed_by_ledgers(["outbox"], hop=hop, columns=COLUMNS, late=late, compensation=compensation))


def write_both(shop: ReconciledShop, made: list[Order]) -> None:
    shop.write("outbox", made)
    shop.write("warehouse", made)


def test_rows_that_a_certified_window_saw_on_both_sides_stay_though_the_ledger_was_purged(
    shop: ReconciledShop,
) -> None:
    describe(shop)
    first, second, third = (orders(range(day * 100, day * 100 + 6), day) for day in range(3))
    write_both(shop, first)
    assert shop.whole_way(0)[1].state is WindowState.CERTIFIED
    write_both(shop, second)
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED

    shop.sql("delete from outbox where at < '2025-03-02'")
    shop.sql("update warehouse set at = at + interval '2 days' where at < '2025-03-02'")
    write_both(shop, third)
    shop.write("warehouse", orders([277], 2))
    context = shop.judge_and_ask_the_gate(2)
    assert shop.found(context, HOP) == {"O277": ("unexpected", "not_in_source")}
    closed = repair(shop, context)

    assert {row[0] for row in shop.sql("select id from warehouse")} == {
        order["id"] for order in (*first, *second, *third)
    }
    assert closed.state is WindowState.CERTIFIED


def test_a_record_that_is_sent_again_is_a_duplicate_though_the_ledger_was_purged(shop: ReconciledShop) -> None:
    shop.describe(late="1h", is_observing=True)
    first, second, third = (orders(range(day * 100, day * 100 + 6), day) for day in range(3))
    shop.trade(first)
    assert shop.whole_way(0)[1].state is WindowState.CERTIFIED
    shop.trade(second)
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED

    shop.sql("delete from outbox where at < '2025-03-02'")
    shop.trade(third)
    later = third[0]["at"]
    shop.send([first[2] | {"at": later}, orders([277], 2)[0]])
    context, _ = shop.whole_way(2)

    assert shop.found(context, LEDGER_HOP) == {
        "O2": ("duplicate", "retry_without_idempotence"),
        "O277": ("unexpected", "not_in_source"),
    }


def test_a_record_that_is_sent_again_is_a_duplicate_though_its_row_was_judged_in_another_window(
    shop: ReconciledShop,
) -> None:
    """The first record of `O4` lies behind the cut of the window that judged its row, that of `O106` before the cut of
    the window before. Neither window with the record judged the key."""
    shop.describe(late="1h", is_observing=True)
    first, second, third = (orders(range(day * 100, day * 100 + 6), day) for day in (0, 1, 3))
    ahead = orders([106], 1)
    shop.trade(first[:4])
    shop.send([ahead[0] | {"at": first[3]["at"]}])
    shop.write("warehouse", ahead)
    shop.write("outbox", [*first[4:5], *ahead])
    context = shop.open(0)
    shop.send([first[4] | {"at": second[0]["at"]}])
    shop.write("warehouse", first[4:5])
    shop.judge(context)
    shop.validate(context)
    assert shop.certify(context).state is WindowState.CERTIFIED
    shop.trade(second)
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED
    shop.trade(orders(range(200, 203), 2))
    assert shop.whole_way(2)[1].state is WindowState.CERTIFIED

    shop.sql("delete from outbox")
    shop.trade(third)
    later = third[0]["at"]
    shop.send([first[4] | {"at": later}, ahead[0] | {"at": later}, orders([377], 3)[0]])
    context, _ = shop.whole_way(3)

    assert shop.found(context, LEDGER_HOP) == {
        "O4": ("duplicate", "retry_without_idempotence"),
        "O106": ("duplicate", "retry_without_idempotence"),
        "O377": ("unexpected", "not_in_source"),
    }


def test_rows_of_a_purged_ledger_stay_when_the_filter_changes(shop: ReconciledShop) -> None:
    describe(shop, late="3d")
    first, second = (orders(range(day * 100, day * 100 + 6), day) for day in range(2))
    write_both(shop, first)
    assert shop.whole_way(0)[1].state is WindowState.CERTIFIED

    shop.file.write_text(shop.file.read_text().replace("to: warehouse", "to: warehouse, where: \"region = 'EU'\""))
    shop.sql("delete from outbox")
    shop.sql("update warehouse set at = at + interval '1 day'")
    shop.write("outbox", second)
    shop.write("warehouse", [order for order in second if order["region"] == "EU"])
    context = shop.judge_and_ask_the_gate(1)
    assert shop.found(context, HOP) == {order["id"]: ("undecidable", "filter_changed") for order in first}
    repair(shop, context)
    assert len(shop.sql("select 1 from warehouse")) == 9


OTHERWISE = {
    "settle": ("settle: 0s", "settle: 1s"),
    "gate": ("settle: 0s", "settle: 0s\ngate: {tolerance: {missing: 1}}"),
    "a column that is compared, too": ('{amount: "decimal(8,2)"}', '{amount: "decimal(8,2)", number: int}'),
}


@pytest.mark.parametrize("what", with_every_change(["settle", "a column that is compared, too", "gate"], first=2))
def test_rows_of_a_purged_ledger_stay_known_while_the_filter_is_the_same(shop: ReconciledShop, what: str) -> None:
    """The window is judged again after another part of the pipeline's file changed."""
    describe(shop, where="\"region = 'EU'\"")
    made = orders(range(6))
    inside = [order for order in made if order["region"] == "EU"]
    shop.write("outbox", made)
    shop.write("warehouse", [*inside[1:], *orders([77])])
    first = shop.judge_and_ask_the_gate()
    gaps = {inside[0]["id"]: ("missing", "never_written"), "O77": ("unexpected", "not_in_source")}
    assert shop.found(first, HOP) == gaps

    was, now = OTHERWISE[what]
    assert was in shop.file.read_text()
    shop.file.write_text(shop.file.read_text().replace(was, now))
    shop.sql("delete from outbox where id = %s", inside[1]["id"])
    again = shop.judge_and_ask_the_gate()
    verdicts = shop.found(again, HOP)

    assert inside[1]["id"] not in verdicts
    assert verdicts["O77"] == ("unexpected", "not_in_source")
