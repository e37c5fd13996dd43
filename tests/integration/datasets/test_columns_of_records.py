"""Test that columns of a dataset equal what records say of them, and that a repair writes what then compares equal."""

from datetime import time
from typing import Any

import pyarrow as pa
import pytest

from makewhole.model.window import WindowState
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_windows import ALL
from tests.world.iceberg_lake import ORDERS, in_order, rows_of
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TIMES: list[tuple[Any, Any]] = [
    ("10:00:00", time(10)),
    ("23:59:59.5", time(23, 59, 59, 500_000)),
    ("00:00:00.000001", time(0, 0, 0, 1)),
    (None, None),
]
"""What a record says, and what a row has."""


def repaired(shop: IcebergShop, compare: str, kind: Any, values: list[tuple[Any, Any]], other: Any) -> None:
    """Require that rows with these values are right, that one with another value and one that is missing are found, and
    that their repair writes the values."""
    shop.lake.make_table(TABLE, ORDERS.append(pa.field("x", kind)))
    shop.describe_lake(compensation=ALL, compare=compare)
    made = orders(range(2 * len(values)))
    records = [{**order, "x": values[at // 2][0]} for at, order in enumerate(made)]
    right = [{**row, "x": values[at // 2][1]} for at, row in enumerate(rows_of(made))]
    shop.send(records)
    shop.lake.append(TABLE, [*right[1:-1], {**right[-1], "x": other}])

    context = shop.judge_and_ask_the_gate()
    found = {key: verdict for key, (verdict, _) in shop.found(context, STORE_HOP).items()}
    assert found == {made[0]["id"]: "missing", made[-1]["id"]: "mismatched"}

    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {}
    assert shop.lake.rows(TABLE) == in_order(right)
    assert shop.close(context).state is WindowState.CERTIFIED


def test_times_of_a_day_are_compared_and_written(shop: IcebergShop) -> None:
    repaired(shop, "{x: string}", pa.time64("us"), TIMES, time(10))


def test_lists_of_times_are_compared_and_written(shop: IcebergShop) -> None:
    values = [([text], [clock]) for text, clock in TIMES]
    repaired(shop, "{x: string}", pa.list_(pa.time64("us")), values, [])
