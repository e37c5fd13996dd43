"""Test a `compare` that changes between windows: what a ledger's rows of before differ in by the change alone stays."""

import pytest

from makewhole.model.window import WindowState
from tests.integration.spark.test_latest_ever import DIFFERS
from tests.integration.spark.test_purged_ledgers import HOP
from tests.integration.spark.test_survivors import repair
from tests.world.combinations import with_every_change
from tests.world.orders import COLUMNS, Order, orders
from tests.world.pipeline_file import fed_by_ledgers
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

CHANGED = ("undecidable", "compare_changed")
MORE = '{amount: "decimal(8,2)", number: int}'


def describe(shop: ReconciledShop, kind: str, compare: str = '{amount: "decimal(8,2)"}') -> None:
    """A ledger that feeds a table: of events, or of versions with numbers or without."""
    has_version = kind == "numbered"
    text = fed_by_ledgers(
        ["outbox"],
        hop={"semantics": "event" if kind == "event" else "upsert"},
        columns=COLUMNS if has_version else COLUMNS | {"version": "int"},
        has_version=has_version,
        late="3d",
        compare=compare,
        compensation="{limits: {share: 1.0}, missing: upsert, mismatched: upsert}",
    )
    shop.file.write_text(text)


def certified_day(shop: ReconciledShop, kind: str) -> list[Order]:
    """Certify a day of orders that the table numbers by itself, and compare the numbers, too, from then on."""
    shop.sql("alter table outbox add status text, add version int; alter table warehouse add version int")
    describe(shop, kind)
    made = versions(range(8))
    shop.write("outbox", made)
    shop.write("warehouse", [order | {"number": 1000 + order["number"]} for order in made])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    describe(shop, kind, MORE)
    return made


def versions(numbers: range, day: int = 0) -> list[Order]:
    return [order | {"version": 1} for order in orders(numbers, day)]


def numbered_by_the_table(shop: ReconciledShop) -> int:
    return int(shop.sql("select count(*) from warehouse where number >= 1000")[0][0])


CASES = ("event ledger 1", "numbered store 2", "bare both 1", "event store 2", "numbered ledger 1", "event both 2")


@pytest.mark.parametrize("case", with_every_change(CASES, first=2))
def test_rows_that_were_touched_after_more_was_compared_are_reported_and_stay(shop: ReconciledShop, case: str) -> None:
    """Rows of the ledger, of the store or of both are written, so many windows after the change."""
    kind, touched, days = case.split()
    made = certified_day(shop, kind)
    for day in range(1, int(days) + 1):
        if day == int(days) and touched != "store":
            shop.sql("update outbox set status = 'shipped'")
        if day == int(days) and touched != "ledger":
            shop.sql("update warehouse set at = at + interval '1 day' where at < '2025-03-02'")
        more = versions(range(day * 100, day * 100 + 8), day)
        shop.write("outbox", more)
        shop.write("warehouse", more)
        context = shop.judge_and_ask_the_gate(day)
    assert shop.found(context, HOP) == {order["id"]: CHANGED for order in made}

    assert repair(shop, context).state is WindowState.NOT_KNOWN
    assert numbered_by_the_table(shop) == 8


def test_what_differs_in_what_was_compared_before_is_mismatched_and_the_window_itself_judges_by_the_file_of_now(
    shop: ReconciledShop,
) -> None:
    made = certified_day(shop, "event")
    shop.sql("update outbox set status = 'shipped'")
    shop.sql("update warehouse set amount = 99 where id = 'O3'")
    shop.write("outbox", versions(range(100, 108), 1))
    shop.write("warehouse", versions(range(100, 108), 1))
    context = shop.judge_and_ask_the_gate(1)
    assert shop.found(context, HOP) == {order["id"]: CHANGED for order in made} | {"O3": DIFFERS}

    again = shop.judge_and_ask_the_gate()
    assert shop.found(again, HOP) == {order["id"]: DIFFERS for order in made}
    assert repair(shop, again).state is WindowState.CERTIFIED
    assert (numbered_by_the_table(shop), shop.whole_way(1)[1].state) == (0, WindowState.CERTIFIED)
