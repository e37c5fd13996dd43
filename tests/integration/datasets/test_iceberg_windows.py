"""Test whole windows over an Iceberg table: what is found, and where it lies."""

import json
import re
from collections.abc import Mapping

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.preview.dry_report import Forecast
from makewhole.model.window import WindowState
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.world.iceberg_lake import ORDERS, POSITION, in_order, rows_of
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings, dataset
from tests.world.shop import STORE_HOP
from tests.world.windows import Found

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

ALL: Settings = {
    "limits": "{share: 1.0}",
    "approval": "{above_actions: 0}",
    "missing": "upsert",
    "duplicate": "quarantine",
    "mismatched": "upsert",
    "unexpected": "quarantine",
}
"""Every remedy that writes a store's rows, and each plan waits for a person."""
MADE = orders(range(12))
FOUND: Found = {
    "O2": ("missing", "lost_after_topic"),
    "O3": ("missing", "lost_after_topic"),
    "O4": ("duplicate", "written_before_committed"),
    "O6": ("mismatched", "value_differs"),
    "O90": ("unexpected", "not_in_source"),
}


def other(order: Order) -> Order:
    """Return an order with another amount."""
    return {**order, "amount": "99.99"}


def trade_badly(shop: IcebergShop) -> None:
    """Send orders of which the loader lost O2 and O3, wrote O4 twice and O6 wrongly; O90 it took from elsewhere."""
    shop.send(MADE)
    shop.load([*MADE[:2], *MADE[4:6], other(MADE[6]), *MADE[7:]])
    shop.load([MADE[4], *orders([90])])


def test_a_window_finds_what_is_missing_there_twice_wrong_and_from_elsewhere(shop: IcebergShop) -> None:
    shop.describe_lake()
    trade_badly(shop)

    context = shop.judge_and_ask_the_gate()
    counts = shop.counts(context, STORE_HOP)

    assert shop.found(context, STORE_HOP) == FOUND
    assert (counts.source_keys, counts.matched) == (12, 8)
    assert (counts.missing, counts.duplicate, counts.mismatched, counts.unexpected) == (2, 1, 1, 1)
    snapshots = [entry.snapshot_id for entry in shop.lake.table(TABLE).history()]
    places = [copy["place"] for copy in shop.evidence(context, STORE_HOP, "O4")["target"]]
    assert {place.rpartition(".parquet:")[2] for place in places} == {
        f"2 (snapshot {snapshots[0]})",
        f"0 (snapshot {snapshots[1]})",
    }


def test_a_correct_table_is_certified(shop: IcebergShop) -> None:
    shop.describe_lake()
    shop.send(MADE)
    shop.load(MADE)

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {}
    assert closed.state is WindowState.CERTIFIED


def test_a_window_is_repaired_certified_and_undone(shop: IcebergShop) -> None:
    shop.describe_lake(compensation=ALL)
    trade_badly(shop)
    before = shop.lake.rows(TABLE)

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == FOUND
    plan = shop.planned(context)
    assert plan.counts == {"upsert": 3, "quarantine": 2}
    assert shop.forecast_of(context, plan) == {"upsert": {Forecast.WOULD: 3}, "quarantine": {Forecast.WOULD: 2}}
    assert shop.lake.rows(TABLE) == before

    shop.approve(plan)
    for _ in range(2):
        shop.run(context, plan)
        assert shop.refused(plan) == {}
        assert shop.lake.rows(TABLE) == in_order(rows_of(MADE))
    summaries = [
        snapshot.summary.additional_properties
        for snapshot in shop.lake.table(TABLE).metadata.snapshots
        if snapshot.summary
    ]
    assert [summary.get("makewhole.plan") for summary in summaries] == [None, None, plan.id]

    closed = shop.close(context)
    assert shop.outcomes(context) == dict.fromkeys(FOUND, "repaired")
    assert (closed.state, closed.reason, shop.certificates()) == (WindowState.CERTIFIED, None, 1)

    undo = shop.undo(context, plan)
    assert (undo.counts, undo.undoes) == ({"restore": 5}, plan.id)
    shop.approve(undo)
    for _ in range(2):
        shop.run(context, undo)
        assert shop.refused(undo) == {}
        assert shop.lake.rows(TABLE) == before


def checked(shop: IcebergShop) -> tuple[int, list[Mapping[str, str]]]:
    """Return the exit code of `makewhole check --tables`, and what it says of the pipeline file."""
    result = CliRunner().invoke(app, ["check", "--tables", "--json", str(shop.file)], catch_exceptions=False)
    problems = json.loads(result.stdout)["problems"]
    return result.exit_code, [{name: problem[name] for name in ("path", "found")} for problem in problems]


def test_check_says_what_a_table_lacks_and_what_cannot_be_done_with_it(shop: IcebergShop) -> None:
    shop.describe_lake(compensation=ALL)
    assert checked(shop) == (0, [])
    shop.describe_lake(warehouse=dataset("lake", "dw.elsewhere"))
    text = "there is no table dw.elsewhere in the catalogue of connection lake"
    assert checked(shop) == (2, [{"path": "points.warehouse.table", "found": text}])
    shop.describe_lake(warehouse=dataset("lake", TABLE, key="number", time="stamp"))
    assert checked(shop) == (2, [{"path": "points.warehouse.stamp", "found": "dw.warehouse has no column stamp"}])
    shop.describe_lake(warehouse=dataset("lake", TABLE, erased="{column: region}"))
    text = "dw.warehouse (point warehouse) is a table of Iceberg, which cannot name erased keys"
    assert checked(shop) == (2, [{"path": "points.warehouse.erased", "found": text}])


def test_check_proposes_lines_for_the_columns_of_a_position_that_it_takes(shop: IcebergShop) -> None:
    shop.lake.make_table(TABLE, ORDERS.append(pa.field("_kafka_metadata", POSITION)))
    warehouse = dataset("lake", TABLE, position="_kafka_metadata")
    shop.describe_lake(warehouse=warehouse, compensation=ALL)
    result = CliRunner().invoke(app, ["check", "--tables", "--json", str(shop.file)], catch_exceptions=False)
    [problem] = json.loads(result.stdout)["problems"]
    assert problem["remedy"] == (
        "Name them first, under `columns` of point warehouse: `partition: _kafka_metadata.partition, offset: "
        "_kafka_metadata.offset, timestamp: _kafka_metadata.timestamp`. Then write `write: {partition: int, "
        "offset: bigint, timestamp: bigint}` on this hop for those that the record has under the same name, and "
        "`leave: [partition, offset, timestamp]` for those that stay empty"
    )

    named = re.search(r"warehouse: `(.*?)`", problem["remedy"])
    leave = re.search(r"`leave: \[(.*?)\]`", problem["remedy"])
    assert named is not None
    assert leave is not None
    warehouse["columns"] = f"{{{named[1]}}}"
    shop.describe_lake(warehouse=warehouse, compensation=ALL, hop={"leave": f"[{leave[1]}]"})
    assert checked(shop) == (0, [])


@pytest.mark.on_spark
@pytest.mark.timeout(300)
def test_python_workers_of_spark_read_the_files_of_a_snapshot(shop: IcebergShop) -> None:
    shop.describe_lake()
    trade_badly(shop)
    context = shop.judged()
    assert shop.found(context, STORE_HOP) == FOUND
    assert shop.manifests(context)["warehouse"]["rows"] == 12


def test_rows_that_come_late_are_found_by_the_next_window(shop: IcebergShop) -> None:
    """Of a slice that was read before only the rows are read that came since."""
    shop.describe_lake()
    shop.send(MADE)
    shop.load(MADE)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    later = orders(range(100, 104), 1)
    shop.send(later)
    shop.load([*later, MADE[5], *orders([91])])

    second = shop.judged(1)

    assert shop.found(second, STORE_HOP) == {
        "O5": ("duplicate", "written_before_committed"),
        "O91": ("unexpected", "not_in_source"),
    }
