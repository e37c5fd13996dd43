"""Test versions with more digits than a column of theirs has: what it rounds, or a loader cuts off, is the same one."""

from typing import NamedTuple

import pytest

from makewhole.model.window import WindowState
from tests.integration.spark.test_latest_ever import DIFFERS, STALE
from tests.integration.spark.test_survivors import repair
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


class Rounded(NamedTuple):
    """A type of a column, versions of six orders, and the version before that of the last."""

    type: str
    versions: tuple[str, ...]
    before: str


def _at(*texts: str) -> tuple[str, ...]:
    return tuple(f"2025-03-01T{text}Z" for text in texts)


ROUNDED = [
    Rounded(
        "timestamptz(3)",
        _at("00:00:00.111400", "00:00:01.666800", "00:00:02", "00:00:03.1234", "00:00:04.9999", "00:00:05.5004"),
        *_at("00:00:05.4"),
    ),
    Rounded(
        "timestamp(0)",
        _at("00:00:00.4", "00:00:01.6", "00:00:02", "00:00:03.1", "00:00:04.9", "00:00:05.2"),
        *_at("00:00:03.9"),
    ),
    Rounded("date", _at("10:00:00", "23:59:59.9", "00:00:00", "12:00:00", "00:00:01", "18:00:00"), "2025-02-28"),
    Rounded("numeric(6,1)", ("1.14", "1.15", "2", "3.04", "4.06", "5.01"), "4.9"),
]


def described(shop: ReconciledShop, column_type: str, *, has_ledger: bool = False, source_type: str = "text") -> None:
    """Give the warehouse versions of a type, and the outbox of another."""
    shop.sql(f"alter table warehouse add version {column_type}; alter table outbox add version {source_type}")
    shop.describe(
        has_ledger=has_ledger,
        is_upsert=True,
        has_version=True,
        late="1h",
        compensation={"limits": "{share: 1.0}", "missing": "upsert" if not has_ledger else "report"},
        hop={"compensation": "{missing: upsert, mismatched: upsert}"},
        ledger_hop={"compensation": "{missing: report}"},
    )


def versioned(versions: tuple[str, ...]) -> list[Order]:
    """Return orders with these versions."""
    return [order | {"version": version} for order, version in zip(orders(range(6)), versions, strict=True)]


@pytest.mark.parametrize("rounded", ROUNDED, ids=lambda column: column.type)
def test_a_version_that_the_store_rounds_is_no_older_one(shop: ReconciledShop, rounded: Rounded) -> None:
    described(shop, rounded.type)
    made = versioned(rounded.versions)
    shop.send([made[5] | {"version": rounded.before, "amount": "5.00"}, *made])
    shop.write("warehouse", [*made[:4], made[5] | {"version": rounded.before, "amount": "5.00"}])
    shop.sql("update warehouse set amount = 77 where id = 'O1'")

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {
        "O1": DIFFERS,
        "O4": ("missing", "lost_after_topic"),
        "O5": STALE,
    }
    closed = repair(shop, context)
    assert shop.outcomes(context) == dict.fromkeys(("O1", "O4", "O5"), "repaired")
    assert closed.state is WindowState.CERTIFIED, closed.reason
    assert shop.sql("select array_agg(amount::text order by id) from warehouse") == [([o["amount"] for o in made],)]


def test_a_version_that_a_loader_cuts_off_is_no_older_one(shop: ReconciledShop) -> None:
    described(shop, "timestamptz(3)")
    made = versioned(_at(*(f"00:00:0{second}.7899" for second in range(6))))
    shop.send(made)
    shop.write("warehouse", versioned(_at(*(f"00:00:0{second}.789" for second in range(6)))))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED


def test_a_version_that_the_ledger_rounds_is_the_same_in_topic_and_store(shop: ReconciledShop) -> None:
    described(shop, "timestamptz", has_ledger=True, source_type="timestamptz(0)")
    made = versioned(_at(*(f"00:00:0{second}.6" for second in range(6))))
    for table in ("outbox", "warehouse"):
        shop.write(table, made)
    shop.send(made)
    context, closed = shop.whole_way()
    assert (shop.found(context, LEDGER_HOP), shop.found(context, STORE_HOP)) == ({}, {})
    assert closed.state is WindowState.CERTIFIED, closed.reason


def test_a_rounded_row_that_is_set_back_is_found_in_the_next_window(shop: ReconciledShop) -> None:
    described(shop, "timestamptz(3)")
    made = versioned(_at(*(f"00:00:0{second}.1234" for second in range(6))))
    older = [order | {"version": f"2025-03-01T00:00:0{at}.1Z", "amount": "0.10"} for at, order in enumerate(made)]
    shop.send([*older, *made])
    shop.write("warehouse", made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    next_day = [order | {"version": "2025-03-02T00:00:00.9996Z"} for order in orders(range(20, 24), 1)]
    shop.send(next_day)
    shop.write("warehouse", next_day)
    shop.sql("update warehouse set at = at + interval '1 day', version = version where number in (1, 2)")
    shop.sql("update warehouse set amount = 0.10, version = '2025-03-01 00:00:02.1Z' where number = 2")
    context = shop.judge_and_ask_the_gate(1)
    assert shop.found(context, STORE_HOP) == {"O2": STALE}
    assert repair(shop, context).state is WindowState.CERTIFIED
    assert shop.sql("select version::text, amount::text from warehouse where number = 2") == [
        ("2025-03-01 00:00:02.123+00", "2.50")
    ]
