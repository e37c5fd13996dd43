"""Test that columns of a dataset equal what records say of them, and that a repair writes what then compares equal."""

from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from makewhole.compensation.preview.dry_report import Forecast
from makewhole.model.window import WindowState
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_windows import ALL, checked
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
"""Values of a record, each with that of its row."""


def repaired(shop: IcebergShop, compare: str, kind: Any, values: list[tuple[Any, Any]], other: Any) -> None:
    """Require that rows with these values are right, that one with another value and one that is missing are found, and
    that their repair writes the values. Of a column of parts no missing row is written: they are named alone for it."""
    is_written = not pa.types.is_struct(kind)
    shop.lake.make_table(TABLE, ORDERS.append(pa.field("x", kind)))
    shop.describe_lake(compensation=ALL if is_written else None, compare=compare)
    made = orders(range(2 * len(values)))
    records = [{**order, "x": values[at // 2][0]} for at, order in enumerate(made)]
    right = [{**row, "x": values[at // 2][1]} for at, row in enumerate(rows_of(made))]
    shop.send(records)
    shop.lake.append(TABLE, [*right[is_written:-1], {**right[-1], "x": other}])

    context = shop.judge_and_ask_the_gate()
    verdicts = {key: verdict for key, (verdict, _) in shop.found(context, STORE_HOP).items()}
    missing = {made[0]["id"]: "missing"} if is_written else {}
    assert verdicts == {**missing, made[-1]["id"]: "mismatched"}
    if not is_written:
        return

    plan = shop.planned(context)
    assert shop.forecast_of(context, plan) == {"upsert": {Forecast.WOULD: len(verdicts)}}
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


MOMENT = datetime(2025, 3, 1, 10, 0, 0, 120_000, UTC)
LINE: Any = pa.struct([("sku", pa.string()), ("at", pa.timestamp("us", "UTC"))])
SHIP: Any = pa.struct([("to", pa.struct([("zip", pa.string())])), ("at", pa.timestamp("us", "UTC")), ("n", pa.int32())])
NESTED: dict[str, tuple[Any, list[tuple[Any, Any]], Any]] = {
    "map": (
        pa.map_(pa.string(), pa.decimal128(9, 3)),
        [({"a": None, "b": 1.5}, [("a", None), ("b", Decimal("1.500"))]), ({}, []), (None, None)],
        [("b", Decimal(2))],
    ),
    "map of numbers": (
        pa.map_(pa.int64(), pa.list_(pa.string())),
        [({"9": None, "10": ["x"]}, [(9, None), (10, ["x"])]), ({}, [])],
        [(10, ["x"])],
    ),
    "map of moments": (
        pa.map_(pa.string(), pa.timestamp("us", "UTC")),
        [
            ({"a": "2025-03-01T10:00:00.12Z"}, [("a", MOMENT)]),
            ({"a": "2025-03-01T12:00:00.120+02:00"}, [("a", MOMENT)]),
        ],
        [],
    ),
    "struct": (
        SHIP,
        [
            ({"to": {"zip": "53111"}}, {"to": {"zip": "53111"}, "at": None, "n": None}),
            ({"to": None, "n": 7, "at": None}, {"to": None, "at": None, "n": 7}),
            ({"at": "2025-03-01T10:00:00.120Z", "other": None}, {"to": None, "at": MOMENT, "n": None}),
            ({"at": "2025-03-01 10:00:00.12+00"}, {"to": None, "at": MOMENT, "n": None}),
            (None, None),
        ],
        {"to": {"zip": "53112"}, "at": None, "n": None},
    ),
    "list of structs": (
        pa.list_(LINE),
        [
            (
                [{"sku": "a"}, {"at": "2025-03-01T10:00:00.12Z"}],
                [{"sku": "a", "at": None}, {"sku": None, "at": MOMENT}],
            ),
            ([], []),
        ],
        [{"sku": "b", "at": None}],
    ),
    "list of moments": (pa.list_(pa.timestamp("us", "UTC")), [(["2025-03-01T10:00:00.12Z", None], [MOMENT, None])], []),
}
"""A type, what records say with what rows have, and what another row has."""


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("declared", ["json", "string"])
def test_columns_of_parts_and_maps_are_compared_and_written(shop: IcebergShop, name: str, declared: str) -> None:
    kind, values, other = NESTED[name]
    repaired(shop, f"{{x: {declared}}}", kind, values, other)


def test_a_column_of_parts_is_corrected_by_its_parts_alone(shop: IcebergShop) -> None:
    shop.lake.make_table(TABLE, ORDERS.append(pa.field("x", SHIP)))
    shop.describe_lake(compensation={**ALL, "missing": "report"}, compare="{x: json}")
    assert checked(shop) == (
        2,
        [
            {
                "path": "hops orders→warehouse.compensation.mismatched",
                "found": "dw.warehouse.x has parts, and 'upsert' writes each part by its name",
            }
        ],
    )


def test_a_map_that_has_a_key_twice_equals_no_object(shop: IcebergShop) -> None:
    shop.lake.make_table(TABLE, ORDERS.append(pa.field("x", pa.map_(pa.string(), pa.int32()))))
    shop.describe_lake(compare="{x: json}")
    made = orders(range(2))
    shop.send([{**order, "x": {"a": 1}} for order in made])
    twice, once = rows_of(made)
    shop.lake.append(TABLE, [{**twice, "x": [("a", 1), ("a", 1)]}, {**once, "x": [("a", 1)]}])

    assert shop.found(shop.judged(), STORE_HOP) == {"O0": ("mismatched", "value_differs")}
