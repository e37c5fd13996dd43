"""Test filters that change at a ledger: rows of earlier windows, touched since, are judged by what the file said."""

from datetime import timedelta

import pytest

from makewhole.model.window import WindowState
from tests.integration.spark.test_changed_filters import of, rows
from tests.integration.spark.test_purged_ledgers import HOP
from tests.integration.spark.test_survivors import repair
from tests.world.combinations import with_every_change
from tests.world.orders import COLUMNS, Order, orders
from tests.world.pipeline_file import fed_by_ledgers
from tests.world.shop import LEDGER_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

CHANGED = ("undecidable", "filter_changed")


def describe(shop: ReconciledShop, kind: str, where: str) -> None:
    """A ledger with a filter that feeds a table: of events, or of versions with numbers or without."""
    has_version = kind == "numbered"
    text = fed_by_ledgers(
        ["outbox"],
        hop={"semantics": "event" if kind == "event" else "upsert", "where": f'"{where}"'},
        columns=COLUMNS if has_version else COLUMNS | {"version": "int"},
        has_version=has_version,
        late="3d",
        compensation="{limits: {share: 1.0}, missing: upsert, unexpected: quarantine}",
    )
    shop.file.write_text(text)


def with_more_columns(shop: ReconciledShop) -> None:
    shop.sql("alter table outbox add status text, add version int")
    shop.sql("alter table warehouse add version int")


def first_versions(numbers: range, day: int = 0) -> list[Order]:
    return [order | {"version": 1, "status": "new"} for order in orders(numbers, day)]


@pytest.mark.parametrize(
    "case", with_every_change(["event 1", "numbered 2", "event 2", "numbered 1", "bare 1"], first=2)
)
def test_rows_that_were_touched_after_the_filter_changed_are_reported_and_stay(shop: ReconciledShop, case: str) -> None:
    """Another column of the ledger is written, so many windows after the change; the store's rows are loaded again."""
    kind, days = case.split()[0], int(case.split()[1])
    with_more_columns(shop)
    describe(shop, kind, "region = 'EU'")
    made = first_versions(range(8))
    shop.write("outbox", made)
    shop.write("warehouse", of("EU", made))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    describe(shop, kind, "region = 'US'")
    for day in range(1, days + 1):
        if day == days:
            shop.sql("update outbox set status = 'shipped'")
            shop.sql("update warehouse set at = at + interval '1 day' where at < '2025-03-02'")
        more = first_versions(range(day * 100, day * 100 + 8), day)
        shop.write("outbox", more)
        shop.write("warehouse", of("US", more))
        context = shop.judge_and_ask_the_gate(day)
    assert shop.found(context, HOP) == {order["id"]: CHANGED for order in made}
    before = rows(shop)

    assert repair(shop, context).state is WindowState.NOT_KNOWN
    assert rows(shop) == before


def test_what_a_ledger_has_only_because_its_filter_was_widened_is_not_produced(shop: ReconciledShop) -> None:
    with_more_columns(shop)
    shop.describe(ledger_hop={"where": "\"region = 'EU'\""}, is_observing=False, late="3d")
    made = first_versions(range(8))
    shop.write("outbox", made)
    shop.send(of("EU", made))
    shop.write("warehouse", of("EU", made))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    shop.describe(late="3d")
    shop.sql("update outbox set status = 'shipped'")
    shop.trade(first_versions(range(100, 108), 1))
    context = shop.judge_and_ask_the_gate(1)
    assert shop.found(context, LEDGER_HOP) == {order["id"]: CHANGED for order in of("US", made)}
    repair(shop, context)

    assert len(shop.read()) == 4 + 8


def test_a_row_that_came_into_the_filter_with_a_new_version_is_missing(shop: ReconciledShop) -> None:
    with_more_columns(shop)
    describe(shop, "numbered", "region = 'EU'")
    made = first_versions(range(8))
    shop.write("outbox", made)
    shop.write("warehouse", of("EU", made))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    moved = of("US", made)[0]["id"]
    at = orders([100], 1)[0]["at"]
    shop.sql("update outbox set region = 'EU', version = 2, at = %s where id = %s", at, moved)
    shop.sql("update outbox set status = 'shipped' where region = 'US'")
    context = shop.judge_and_ask_the_gate(1)
    assert shop.found(context, HOP) == {moved: ("missing", "never_written")}

    assert repair(shop, context).state is WindowState.CERTIFIED
    assert rows(shop) == {order["id"] for order in of("EU", made)} | {moved}


def test_a_former_filter_whose_column_is_gone_is_not_asked_for(shop: ReconciledShop) -> None:
    with_more_columns(shop)
    describe(shop, "event", "status = 'new'")
    made = first_versions(range(8))
    shop.write("outbox", made)
    shop.write("warehouse", made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    describe(shop, "event", "region = 'EU'")
    shop.sql("alter table outbox drop column status")
    more = first_versions(range(100, 108), 1)
    shop.write("outbox", more)
    shop.write("warehouse", of("EU", more))

    context, closed = shop.whole_way(1)
    assert (shop.found(context, HOP), closed.state) == ({}, WindowState.CERTIFIED)


def test_rows_in_flight_that_a_narrowed_filter_keeps_out_are_not_lost(shop: ReconciledShop) -> None:
    """A row that passes both filters is; a row that was changed just now, and passes, waits as any that is young."""
    shop.describe(settle="1h", late="1d")
    made = orders(range(10))
    shop.trade(made, unsent=made[6:])
    first, closed = shop.whole_way()
    assert (shop.found(first, LEDGER_HOP), closed.state) == (
        {order["id"]: ("pending", "in_flight") for order in made[6:]},
        WindowState.CERTIFIED,
    )

    shop.describe(settle="1h", late="1d", ledger_hop={"where": "\"region = 'EU'\""})
    shop.let_pass(timedelta(hours=2))
    shop.trade(orders(range(100, 105), 1))
    shop.sql("update outbox set region = 'EU' where id = 'O7'")
    context = shop.judged(1)

    verdicts = {key: what for key, what in shop.found(context, LEDGER_HOP).items() if key in {o["id"] for o in made}}
    lost = ("missing", "never_produced")
    assert verdicts == {"O6": lost, "O7": ("pending", "in_flight"), "O8": lost, "O9": CHANGED}
