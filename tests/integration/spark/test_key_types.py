"""Test that keys are compared by their values: one key has other spellings in a ledger, in JSON and in a store."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from makewhole.journal.database import connect
from makewhole.model.errors import ConfigurationError, RefusedError
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

Spelling = Callable[[int], Any]


def uuid_text(number: int) -> str:
    return f"{number:08x}-00ab-4cde-8f01-23456789abcd"


def rows(numbers: Sequence[int], spelling: Spelling, day: int = 0) -> list[dict[str, Any]]:
    """Return orders whose id is spelled so."""
    made = zip(numbers, orders(numbers, day), strict=True)
    return [{**order, "id": spelling(number)} for number, order in made]


def set_types(shop: ReconciledShop, ledger: str, store: str) -> None:
    """Make the key columns of the two tables, which are empty, ones of these types."""
    for table, column_type in (("outbox", ledger), ("warehouse", store)):
        shop.sql(f"alter table {table} drop column id; alter table {table} add column id {column_type}")


def trade(shop: ReconciledShop, spellings: tuple[Spelling, Spelling, Spelling], day: int = 0) -> None:
    """Take ten orders of a day through the shop, of which one is not sent and another one is not loaded."""
    in_ledger, in_topic, in_store = spellings
    numbers = range(1 + 10 * day, 11 + 10 * day)
    shop.write("outbox", rows(numbers, in_ledger, day))
    for record in rows(numbers[:-1], in_topic, day):
        shop.send_raw(json.dumps(record).encode(), day)
    shop.write("warehouse", rows(numbers[:-2], in_store, day))


def findings(shop: ReconciledShop, context: WindowContext) -> dict[str, dict[str, tuple[str, str]]]:
    return {hop: shop.found(context, hop) for hop in (LEDGER_HOP, STORE_HOP)}


def whole_text(number: int) -> str:
    return str(number)


def two_places(number: int) -> str:
    return f"{number}.00"


@pytest.mark.parametrize(
    ("ledger", "store", "spellings", "key"),
    [
        pytest.param("numeric(10,2)", "numeric(12,4)", (int, int, int), str, id="a number with places"),
        pytest.param("numeric(10,2)", "text", (int, float, two_places), str, id="a number in a text column"),
        pytest.param("bigint", "text", (int, float, lambda n: f"{n:04d}"), str, id="an integer in a text column"),
        pytest.param("uuid", "text", (uuid_text, lambda n: uuid_text(n).upper(), lambda n: uuid_text(n).upper()),
                     uuid_text, id="a uuid in capitals"),
        pytest.param("timestamptz", "timestamp", (
            lambda n: f"2013-01-01T00:00:{n:02d}Z",
            lambda n: f"2013-01-01T01:00:{n:02d}.000+01:00",
            lambda n: f"2013-01-01 00:00:{n:02d}",
        ), lambda n: f"2013-01-01T00:00:{n:02d}.000000Z", id="a moment"),
        pytest.param("date", "date", (lambda n: f"2013-01-{n:02d}",) * 3, lambda n: f"2013-01-{n:02d}", id="a date"),
        pytest.param("char(6)", "char(6)", (whole_text, lambda n: f"{n:<6}", whole_text), str, id="a padded text"),
    ],
)  # fmt: skip
def test_equal_values_are_one_key_however_they_are_spelled(
    shop: ReconciledShop, ledger: str, store: str, spellings: tuple[Spelling, Spelling, Spelling], key: Spelling
) -> None:
    set_types(shop, ledger, store)
    trade(shop, spellings)

    context = shop.judge_and_ask_the_gate()

    assert findings(shop, context) == {
        LEDGER_HOP: {key(10): ("missing", "never_produced")},
        STORE_HOP: {key(9): ("missing", "lost_after_topic")},
    }
    assert shop.counts(context, STORE_HOP).matched == 8
