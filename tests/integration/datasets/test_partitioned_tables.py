"""Test repairs of Iceberg tables that are partitioned: each row is written into the partition that its values say, in
which every reader looks for it."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from math import nan
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.update.spec import UpdateSpec
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.utils.datetime import datetime_to_micros

from makewhole.model.errors import RefusedError
from makewhole.model.window import WindowState
from makewhole.tables.tables import Tables
from tests.integration.datasets.iceberg_shop import TABLE as WAREHOUSE
from tests.integration.datasets.iceberg_shop import IcebergShop
from tests.integration.datasets.test_iceberg_chunks import chunk_id, extra_copy, images, new_amount, new_row, write
from tests.integration.datasets.test_iceberg_faults import STRING, describe, write_file
from tests.integration.datasets.test_iceberg_faults import rows as positioned
from tests.integration.datasets.test_iceberg_windows import ALL, FOUND, MADE, trade_badly
from tests.world.iceberg_lake import ORDERS, Lake, in_order, row_of, rows_of
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

DAY: DayTransform[Any] = DayTransform()  # type: ignore[no-untyped-call]
MONTH: MonthTransform[Any] = MonthTransform()  # type: ignore[no-untyped-call]
YEAR: YearTransform[Any] = YearTransform()  # type: ignore[no-untyped-call]
HOUR: HourTransform[Any] = HourTransform()  # type: ignore[no-untyped-call]
TABLE = "dw.orders"
Partitioned = Callable[[UpdateSpec], Any]

SPECS: dict[str, Partitioned] = {
    "hour": lambda spec: spec.add_field("at", HOUR, "part"),
    "day": lambda spec: spec.add_field("at", DAY, "part"),
    "month": lambda spec: spec.add_field("at", MONTH, "part"),
    "year": lambda spec: spec.add_field("at", YEAR, "part"),
    "bucket of a key": lambda spec: spec.add_field("id", BucketTransform(4), "part"),
    "bucket of a number": lambda spec: spec.add_field("number", BucketTransform(3), "part"),
    "truncated text": lambda spec: spec.add_field("id", TruncateTransform(2), "part"),
    "truncated amount": lambda spec: spec.add_field("amount", TruncateTransform(500), "part"),
    "amount": lambda spec: spec.add_field("amount", IdentityTransform(), "part"),
    "day and bucket": lambda spec: spec.add_field("at", DAY).add_field("id", BucketTransform(4)),
}


def partition(lake: Lake, partitioned: Partitioned, table: str = TABLE) -> None:
    """Have what is written from now on be partitioned."""
    with lake.table(table).update_spec() as update:
        partitioned(update)


def partition_of(table: Any, spec: PartitionSpec, row: dict[str, Any]) -> Record:
    """Return the partition of a row by the plain functions of the format, which are not those that write."""
    values = []
    for field in spec.fields:
        source, name = table.schema().find_field(field.source_id), table.schema().find_column_name(field.source_id)
        within = name.removesuffix(source.name).rstrip(".")
        value = (row[within] or {}).get(source.name) if within else row[name.replace(".", "_x2E")]
        if isinstance(value, datetime):
            value = datetime_to_micros(value)
        values.append(field.transform.transform(source.field_type)(value))
    return Record(*values)


def assert_each_row_is_where_it_is_looked_for(lake: Lake, name: str = TABLE) -> None:
    """Hold the partition of each file against each of its rows, and find each row by each of its values."""
    table = lake.table(name)
    for task in table.scan().plan_files():
        rows = pq.read_table(task.file.file_path.removeprefix("file://"), partitioning=None).to_pylist()
        assert rows
        spec = table.specs()[task.file.spec_id]
        assert {repr(partition_of(table, spec, row)) for row in rows} == {repr(task.file.partition)}
    for row in lake.rows(name):
        for column in ORDERS.names:
            value = row[column].isoformat() if isinstance(row[column], datetime) else row[column]
            chosen = table.scan(row_filter=EqualTo(column, value)).to_arrow().to_pylist()
            assert row in chosen, f"{row['id']} by {column}"


@pytest.mark.parametrize("partitioned", SPECS.values(), ids=SPECS)
def test_a_chunk_writes_each_row_into_its_partition(lake: Lake, tables: Tables, partitioned: Partitioned) -> None:
    lake.make_table(TABLE)
    partition(lake, partitioned)
    for day in range(3):
        lake.append(TABLE, rows_of(orders(range(10 * day, 10 * day + 4), day)))
    lake.append(TABLE, rows_of(orders([3])))
    files = {task.file.file_path for task in lake.table(TABLE).scan().plan_files()}

    receipt = write(
        tables,
        chunk_id(),
        new_amount(tables, 0, "O11", "77.25"),
        extra_copy(tables, 1, "O3"),
        new_row(2, 50),
        new_row(3, 51),
    )

    assert (receipt.actions, receipt.refused) == (4, {})
    wanted = [*orders(range(4)), *orders(range(10, 14), 1), *orders(range(20, 24), 2), *orders([50, 51])]
    assert lake.rows(TABLE) == in_order(
        row_of({**order, "amount": "77.25"} if order["id"] == "O11" else order) for order in wanted
    )
    assert_each_row_is_where_it_is_looked_for(lake)
    assert files & {task.file.file_path for task in lake.table(TABLE).scan().plan_files()}


NESTED = ORDERS.append(pa.field("ship.to", pa.string())).append(
    pa.field("sent", pa.struct([pa.field("country", pa.string()), pa.field("day", pa.date32())]))
)


def test_rows_of_a_table_whose_partitions_changed_leave_their_old_ones(lake: Lake, tables: Tables) -> None:
    """Files of every age are written again, and what is left of them goes where it belongs now."""
    lake.make_table(TABLE, NESTED)
    lake.append(TABLE, rows_of(orders(range(4))))
    with lake.table(TABLE).update_spec() as spec:
        spec.add_field("region", IdentityTransform()).add_field("at", MONTH)
    lake.append(TABLE, rows_of(orders(range(10, 14), 1)))
    with lake.table(TABLE).update_spec() as spec:
        spec.remove_field("region").remove_field("at_month").add_field("at", DAY)
    with lake.table(TABLE).update_spec() as spec:
        spec.add_field("sent.country", TruncateTransform(1)).add_field("ship.to", IdentityTransform())
    more = {"ship.to": "x.y", "sent": {"country": "DE", "day": None}}
    lake.append(TABLE, [{**row, **more} for row in rows_of(orders(range(20, 24), 2))])
    lake.append(TABLE, rows_of(orders([3])))
    before = lake.rows(TABLE)

    changes = [new_amount(tables, seq, f"O{10 * seq + 1}", "77.25") for seq in range(3)]
    receipt = write(tables, chunk_id(), *changes, extra_copy(tables, 3, "O3"))

    assert (receipt.actions, receipt.refused) == (4, {})
    changed = [{**row, "amount": Decimal("77.25")} if row["number"] in (1, 11, 21) else row for row in before]
    changed.remove(next(row for row in changed if row["id"] == "O3"))
    assert lake.rows(TABLE) == in_order(changed)
    assert_each_row_is_where_it_is_looked_for(lake)


def test_a_partition_that_was_removed_from_a_table_of_the_first_format_is_of_no_value(
    lake: Lake, tables: Tables
) -> None:
    lake.make_table(TABLE, properties={"format-version": "1"})
    with lake.table(TABLE).update_spec() as spec:
        spec.add_field("at", DAY)
    lake.append(TABLE, rows_of(orders(range(4))))
    with lake.table(TABLE).update_spec() as spec:
        spec.remove_field("at_day")
    lake.append(TABLE, rows_of(orders(range(10, 14), 1)))

    changes = [new_amount(tables, seq, f"O{10 * seq + 1}", "77.25") for seq in range(2)]
    receipt = write(tables, chunk_id(), *changes, new_row(2, 50))

    assert (receipt.actions, receipt.refused) == (3, {})
    assert len(lake.rows(TABLE)) == 9
    assert_each_row_is_where_it_is_looked_for(lake)


@pytest.mark.parametrize("weights", [[1.0, nan, None], [0.0, -0.0, 1.0]], ids=["nan", "zeros"])
def test_a_row_that_is_in_no_partition_or_in_two_is_not_lost_and_not_doubled(
    lake: Lake, tables: Tables, weights: list[float | None]
) -> None:
    lake.make_table(TABLE, ORDERS.append(pa.field("weight", pa.float64())))
    rows = rows_of(orders(range(3)))
    lake.append(TABLE, [{**row, "weight": weight} for row, weight in zip(rows, weights, strict=True)])
    with lake.table(TABLE).update_spec() as spec:
        spec.add_field("weight", IdentityTransform())
    before = images(lake)

    with pytest.raises(RefusedError, match=r"not each of 2 rows is in one partition of the table \(one with NaN"):
        write(tables, chunk_id(), new_amount(tables, 0, "O2", "77.25"))

    assert images(lake) == before


def test_a_table_whose_partitions_cannot_be_computed_is_not_written_to(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(3))))
    with lake.table(TABLE).update_spec() as spec:
        spec.add_field("id", IdentityTransform()).add_field("id", BucketTransform(4))
    snapshot = lake.table(TABLE).current_snapshot()

    with pytest.raises(RefusedError, match=r"dw.orders is partitioned by identity\(id\), bucket\[4\]\(id\), of which"):
        write(tables, chunk_id(), new_row(0, 50))

    assert lake.table(TABLE).current_snapshot() == snapshot


def test_a_window_over_partitions_is_repaired_certified_and_undone(shop: IcebergShop) -> None:
    shop.describe_lake(compensation=ALL)
    partition(shop.lake, SPECS["day and bucket"], WAREHOUSE)
    trade_badly(shop)
    before = shop.lake.rows(WAREHOUSE)
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == FOUND
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {}
    assert shop.lake.rows(WAREHOUSE) == in_order(rows_of(MADE))
    assert_each_row_is_where_it_is_looked_for(shop.lake, WAREHOUSE)
    assert shop.close(context).state is WindowState.CERTIFIED
    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert (shop.refused(undo), shop.lake.rows(WAREHOUSE)) == ({}, before)
    assert_each_row_is_where_it_is_looked_for(shop.lake, WAREHOUSE)


def test_an_orphan_is_adopted_as_it_is_only_into_the_partition_of_each_of_its_rows(shop: IcebergShop) -> None:
    """Statistics of a file count no rows without a value, and may be missing: readers would not look for these rows in
    the partition that is taken from there."""
    describe(shop, leave="[stamp, more]", orphans="adopt")
    with shop.lake.table(WAREHOUSE).update_schema() as update:
        update.add_column("more", STRING)
    with shop.lake.table(WAREHOUSE).update_spec() as spec:
        spec.add_field("at", DAY).add_field("more", TruncateTransform(1))
    made = [{**row, "more": None if row["number"] == 5 else f"x{row['number']}"} for row in positioned(shop)]
    shop.lake.append(WAREHOUSE, made[:2])
    write_file(shop, "of-one", made[2:4])
    write_file(shop, "some-without-a-value", made[4:6])
    path = write_file(shop, "no-statistics", made[6:]).removeprefix("file://")
    pq.write_table(pq.read_table(path, partitioning=None), path, write_statistics=False)

    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)

    assert shop.refused(plan) == {}
    listed = {task.file.file_path.rpartition("/")[2] for task in shop.lake.table(WAREHOUSE).scan().plan_files()}
    assert {"of-one.parquet", "some-without-a-value.parquet", "no-statistics.parquet"} & listed == {"of-one.parquet"}
    assert_each_row_is_where_it_is_looked_for(shop.lake, WAREHOUSE)
