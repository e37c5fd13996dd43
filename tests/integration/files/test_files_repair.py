"""Test the repair of datasets of Parquet files: rows that are added, written again, moved aside, and put back."""

import pyarrow as pa
import pytest

from makewhole.model.window import WindowState
from tests.integration.files.files_shop import FilesShop
from tests.integration.files.test_files_windows import EVERY, FOUND, MADE, other
from tests.world.files_lake import ORDERS, rows_of
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

ALL = {
    "missing": "upsert",
    "mismatched": "upsert",
    "duplicate": "quarantine",
    "unexpected": "quarantine",
    "limits": "{share: 1.0}",
    "approval": "{above_actions: 0}",
}
NOTED = ORDERS.append(pa.field("note", pa.list_(pa.string())))
"""A column that nothing names."""


def trade_badly(shop: FilesShop) -> None:
    """Do as `test_files_windows.trade_badly`, with a column that nothing names in one of the files."""
    shop.send(MADE)
    rows = rows_of([*MADE[:2], *MADE[4:6], other(MADE[6]), *MADE[7:]])
    shop.place.add("a.parquet", [{**row, "note": [row["id"], None]} for row in rows], NOTED, row_group_size=4)
    shop.load("b.parquet", [MADE[4], *orders([90])])


@EVERY
def test_a_dataset_is_repaired_proven_and_taken_back(shop: FilesShop) -> None:
    shop.describe_files(compensation=ALL, hop={"leave": "[note]"})
    trade_badly(shop)
    before = shop.place.rows()
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == FOUND

    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)

    assert shop.refused(plan) == {}
    rows = {row["id"]: row for row in shop.place.rows()}
    assert {key: {**row, "note": None} for key, row in rows.items()} == {
        row["id"]: {**row, "note": None} for row in rows_of(MADE)
    }
    assert len(shop.place.rows()) == len(MADE)
    kept = {row["id"]: row["note"] for row in shop.place.table("a.parquet").to_pylist()}
    assert kept == {key: [key, None] for key in ("O0", "O1", "O4", "O5", "O6", "O7", "O8", "O9", "O10", "O11")}
    assert shop.place.table("b.parquet").num_rows == 0
    assert shop.close(context).state is WindowState.CERTIFIED

    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert shop.refused(undo) == {}
    assert [{**row, "note": row.get("note")} for row in shop.place.rows()] != []
    assert sorted(({**row, "note": row.get("note")} for row in shop.place.rows()), key=str) == sorted(
        ({**row, "note": row.get("note")} for row in before), key=str
    )


def test_what_other_writers_changed_is_refused_and_left_as_it_is(shop: FilesShop) -> None:
    shop.describe_files(compensation=ALL)
    shop.send(MADE)
    shop.load("a.parquet", [*MADE[:2], *MADE[4:6], other(MADE[6]), *MADE[7:]])
    shop.load("b.parquet", [MADE[4], *orders([90])])
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    shop.load("late.parquet", [MADE[2]])
    shop.load("b.parquet", [{**MADE[4], "region": "elsewhere"}])

    shop.run(context, plan)

    refused = {key: str(refusal) for key, refusal in shop.refused(plan).items()}
    assert refused == {
        "O2": "arrived: a row of this key appeared after the plan was made",
        "O4": "stale: rows of this key changed after the plan was made",
        "O90": "erased: an extra row of this key is gone already",
    }
    assert [row["region"] for row in shop.place.rows() if row["id"] == "O4"] == ["EU", "elsewhere"]
    assert [row["amount"] for row in shop.place.rows() if row["id"] == "O6"] == [rows_of(MADE)[6]["amount"]]


def test_rows_are_added_to_the_folder_that_their_values_name(shop: FilesShop) -> None:
    shop.describe_files(compensation=ALL)
    shop.send(MADE)
    without_region = pa.schema([field for field in ORDERS if field.name != "region"])
    for region, start in (("EU", 0), ("US", 1)):
        rows = [row for row in rows_of(MADE[start::2]) if row["id"] not in ("O2", "O3")]
        shop.place.add(f"region={region}/a.parquet", rows, without_region)
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)

    assert shop.refused(plan) == {}
    assert sorted(
        name.rpartition("/")[0] for name in shop.place.names() if "makewhole-" in name and name[0] != "_"
    ) == [
        "region=EU",
        "region=US",
    ]
    assert shop.close(context).state is WindowState.CERTIFIED
