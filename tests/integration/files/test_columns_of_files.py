"""Test that columns of Parquet files of every type equal what records say, and are written by repairs."""

import json
from datetime import time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.model.window import WindowState
from tests.integration.files.files_shop import FilesShop
from tests.integration.files.test_files_repair import ALL
from tests.world.files_lake import ORDERS, rows_of
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

COLUMNS: dict[str, tuple[Any, str, Any, Any]] = {
    "long": (
        pa.decimal128(38, 9), '"decimal(38,9)"',
        "12345678901234567890123456789.123456789", Decimal("12345678901234567890123456789.123456789"),
    ),
    "wide": (pa.decimal256(60, 2), '"decimal(38,2)"', "1" * 36 + ".5", Decimal("1" * 36 + ".50")),
    "clock": (pa.time64("us"), "string", "10:00:00.5", time(10, 0, 0, 500_000)),
    "raw": (pa.binary(), "string", r"\x00ff", b"\x00\xff"),
    "uid": (pa.uuid(), "string", "6F9619FF-8B86-D011-B42D-00C04FC964FF", UUID("6f9619ff-8b86-d011-b42d-00c04fc964ff")),
    "tags": (pa.list_(pa.string()), "string", ["a", None], ["a", None]),
    "rates": (pa.map_(pa.string(), pa.float64()), "json", {"a": 0.5}, [("a", 0.5)]),
}  # fmt: skip
"""A type, the declared one, what a record says, and what its row has."""
WITH_COLUMNS = pa.schema([*ORDERS, *(pa.field(name, kind) for name, (kind, _, _, _) in COLUMNS.items())])


def test_columns_of_each_type_are_compared_written_and_compared_again(shop: FilesShop) -> None:
    compare = ", ".join(f"{name}: {declared}" for name, (_, declared, _, _) in COLUMNS.items())
    shop.describe_files(compensation=ALL, compare=f"{{{compare}}}")
    made = orders(range(4))
    said, held = ({name: column[at] for name, column in COLUMNS.items()} for at in (2, 3))
    right = [{**row, **held} for row in rows_of(made)]
    shop.send([{**order, **said} for order in made])
    shop.place.add("a.parquet", [right[0], right[1], {**right[2], **dict.fromkeys(COLUMNS)}], WITH_COLUMNS)

    context = shop.judge_and_ask_the_gate()
    verdicts = {key: verdict for key, (verdict, _) in shop.found(context, STORE_HOP).items()}
    assert verdicts == {"O2": "mismatched", "O3": "missing"}

    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {}
    assert shop.place.rows() == sorted(right, key=str)
    assert shop.close(context).state is WindowState.CERTIFIED


def test_check_refuses_a_column_of_a_type_that_sql_has_not(shop: FilesShop) -> None:
    shop.describe_files(compare="{took: string}")
    shop.place.add("a.parquet", rows_of(orders(range(2))), ORDERS.append(pa.field("took", pa.duration("us"))))

    result = CliRunner().invoke(app, ["check", "--tables", "--json", str(shop.file)], catch_exceptions=False)

    problems = [(problem["path"], problem["found"]) for problem in json.loads(result.stdout)["problems"]]
    assert problems == [
        (
            "compare.took",
            f"{shop.place.path}.took (point warehouse) is of type duration[us], which no type reads",
        )
    ]
