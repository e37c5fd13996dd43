"""Test that keys of an Iceberg table that are judged alone have the verdicts that their whole window gives them."""

import pytest

from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.spark.test_judged_keys import alone, as_whole, verdicts
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(12))
KEYS = [f"O{number}" for number in range(12)]
WRONG = {"O2": "missing", "O4": "duplicate", "O6": "mismatched"}


def test_keys_have_the_verdicts_of_their_window_before_and_after_the_table_was_changed(shop: IcebergShop) -> None:
    shop.describe_lake()
    shop.send(MADE)
    shop.load([*MADE[:2], *MADE[3:6], {**MADE[6], "amount": "99.99"}, *MADE[7:]])
    shop.load([MADE[4]])
    context = shop.judge_and_ask_the_gate()
    answers = verdicts(alone(shop, context, *KEYS), STORE_HOP)
    assert answers == as_whole(shop, context, STORE_HOP, KEYS) == dict.fromkeys(KEYS, "matched") | WRONG

    shop.load([MADE[2]])
    shop.lake.table(TABLE).delete("id = 'O8'")
    answers = verdicts(alone(shop, context, *KEYS), STORE_HOP)
    again = shop.judged()
    assert answers == as_whole(shop, again, STORE_HOP, KEYS)
    assert (answers["O2"], answers["O8"]) == ("matched", "missing")
