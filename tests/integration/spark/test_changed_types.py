"""Test that what was read by other types of columns is compared with nothing that is read by those of now."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.model.window import WindowState
from tests.world.orders import Order, at_day, orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

SEEN = "2013-01-01T00:00:00Z"
OBSERVED: dict[str, Any] = {
    "has_ledger": False,
    "compare": "{seen: string}",
    "hop": {"compensation": "{missing: report}"},
}


def seen(made: list[Order]) -> list[Order]:
    """Return orders with a moment, as their records write it."""
    return [order | {"seen": SEEN} for order in made]


def send(shop: ReconciledShop, made: list[Order]) -> None:
    for order in made:
        shop.send_raw(json.dumps(order).encode(), key=None)


def test_a_record_that_was_handed_over_is_read_by_the_types_of_now(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse add column seen text")
    shop.describe(**OBSERVED | {"hop": {"consumer_group": "loader", "compensation": "{missing: report}"}})
    made = seen(orders(range(5)))
    send(shop, made)
    shop.write("warehouse", made[:4])
    shop.commit_group("loader", 4)
    _, closed = shop.whole_way()
    assert (closed.state, closed.handed_over) == (WindowState.CERTIFIED, 1)

    shop.sql("alter table warehouse alter column seen type timestamptz using seen::timestamptz")
    later = seen(orders(range(100, 103), 1))
    send(shop, later)
    shop.write("warehouse", [*made[4:], *later])
    shop.commit_group("loader", 8)
    second, closed = shop.whole_way(1)

    assert (shop.found(second, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def test_an_index_that_was_written_again_has_the_types_of_its_windows(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse add column seen timestamptz")
    shop.describe(**OBSERVED)
    made = seen(orders(range(6)))
    send(shop, made)
    shop.write("warehouse", made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    rebuilt = CliRunner().invoke(app, ["index", "rebuild", shop.pipeline.name, "--json"], catch_exceptions=False)
    assert json.loads(rebuilt.stdout)["topics"][0]["from_snapshots"] == 1
    later = seen(orders(range(100, 103), 1))
    send(shop, later)
    shop.write("warehouse", later)
    shop.sql("update warehouse set seen = seen + interval '1 day', at = at + interval '1 day' where id = 'O2'")
    second, _ = shop.whole_way(1)

    assert shop.found(second, STORE_HOP) == {"O2": ("mismatched", "value_differs")}


def test_a_filter_that_reads_a_column_by_another_type_says_nothing_of_records_of_before(shop: ReconciledShop) -> None:
    """As a text `1.00` is not `1.0`, and as a number it is: what did not pass then may pass now."""
    shop.sql("alter table warehouse add column code text")
    shop.describe(has_ledger=False, hop={"where": "\"code = '1.0'\""}, compensation={"unexpected": "quarantine"})
    made = [order | {"code": "1.00" if number < 2 else "1.0"} for number, order in enumerate(orders(range(6)))]
    send(shop, made)
    shop.write("warehouse", made[2:])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    shop.sql("alter table warehouse alter column code type numeric(6, 2) using code::numeric")
    later = [order | {"code": "1.0"} for order in orders(range(100, 103), 1)]
    send(shop, later)
    shop.write("warehouse", [at_day(1, made[0]), *later])
    context = shop.judge_and_ask_the_gate(1)

    assert shop.found(context, STORE_HOP) == {"O0": ("undecidable", "filter_changed")}
