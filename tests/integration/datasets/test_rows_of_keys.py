"""Test that the rows of many keys of a dataset are read part by part, and that what a view had no row of is looked for
in what came after it alone: whatever came, went or came back meanwhile."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from makewhole.model.window import WindowState
from makewhole.tables.shape import TableShape
from makewhole.tables.tables import Tables
from tests.integration.datasets.iceberg_shop import TABLE as WAREHOUSE
from tests.integration.datasets.iceberg_shop import IcebergShop
from tests.integration.datasets.test_iceberg_tables import TABLE, by_position, remove_position, shape_of
from tests.world.iceberg_lake import ORDERS, POSITION, Lake, rows_of, with_position
from tests.world.orders import orders
from tests.world.pipeline_file import dataset
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(12))


def by_parts(tables: Tables, shape: TableShape, keys: pl.DataFrame, parts: int) -> list[str]:
    """Return the keys of the rows that readers of parts find."""
    with tables.hold_view(shape) as view:
        assert view.reads_keys_by_parts
        plan = view.plan(None, parts)
        readers = [(tables.reader(shape, plan.view), part) for part in plan.parts]
        frames = [frame for reader, part in readers for frame in reader.keys_in_part(keys, part)]
        assert sum(reader.counted for reader, _ in readers) == sum(map(len, frames))
    return sorted(key for frame in frames for key in frame["key"])


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_rows_of_keys_are_read_part_by_part_each_once(lake: Lake, tables: Tables, parts: int) -> None:
    lake.make_table(TABLE, ORDERS.append(pa.field("_kafka_metadata", POSITION)))
    rows = with_position(MADE, "orders")
    for start in (0, 4, 8):
        lake.append(TABLE, rows[start : start + 4])
    lake.list_again(TABLE)
    lake.append(TABLE, with_position(MADE[:2], "another"))

    by_text = by_parts(tables, shape_of({}), pl.DataFrame({"key": ["O1", "O5", "O9", "O77"]}), parts)
    places = pl.DataFrame({"partition": [0, 0, 0, 1], "offset": [1, 5, 9, 1]})
    by_number = by_parts(tables, by_position({}), places, parts)
    texts = pl.DataFrame({"key": ['["0","1"]', '["0","5"]', '["0","9"]', '["1","1"]']})

    assert by_text == ["O1", "O1", "O5", "O9", "O9"]
    assert (
        by_number == by_parts(tables, by_position({}), texts, parts) == ['["0","1"]', '["0","5"]', *['["0","9"]'] * 2]
    )
    assert by_parts(tables, shape_of({}), pl.DataFrame(schema={"key": pl.String}), parts) == []


def nothing(lake: Lake) -> None:
    """Leave the table as it is."""


def come(lake: Lake) -> None:
    """Append the row."""
    lake.append(TABLE, rows_of(MADE[7:8]))


def others_come(lake: Lake) -> None:
    """Append other rows."""
    lake.append(TABLE, rows_of(MADE[8:]))


def come_and_forget(lake: Lake) -> None:
    """Append the row, and expire the snapshot of the view."""
    seen = lake.table(TABLE).current_snapshot()
    assert seen is not None
    come(lake)
    lake.table(TABLE).maintenance.expire_snapshots().by_id(seen.snapshot_id).commit()


def come_with_another_column(lake: Lake) -> None:
    """Append the row once a column has another name."""
    with lake.table(TABLE).update_schema() as update:
        update.rename_column("region", "area")
    [row] = rows_of(MADE[7:8])
    lake.append(TABLE, [{"area" if name == "region" else name: value for name, value in row.items()}])


@pytest.mark.parametrize(
    ("happens", "expected"),
    [(nothing, []), (others_come, []), (come, ["O7"]), (come_and_forget, ["O7"]), (come_with_another_column, ["O7"])],
)
def test_a_row_that_came_after_a_view_is_found(
    lake: Lake, tables: Tables, happens: Callable[[Lake], None], expected: list[str]
) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(MADE[:6]))
    with tables.hold_view(shape_of({})) as view:
        seen = view.seen
    happens(lake)

    assert keys_since(tables, ["O7"], seen) == expected


def keys_since(tables: Tables, keys: list[str], seen: str) -> list[str]:
    """Return the keys of the rows that are found of such as a view did not have."""
    return [key for frame in tables.reader(shape_of({})).keys(keys, seen) for key in frame["key"]]


def test_a_row_whose_delete_was_taken_back_is_found_in_its_old_file(lake: Lake, tables: Tables, tmp_path: Path) -> None:
    lake.make_table(TABLE)
    table = lake.append(TABLE, rows_of(MADE[:8]))
    with_row = table.current_snapshot()
    assert with_row is not None
    [path] = table.inspect.files()["file_path"].to_pylist()
    remove_position(lake.table(TABLE), tmp_path, str(path), [7])
    with tables.hold_view(shape_of({})) as view:
        seen = view.seen
    assert keys_since(tables, ["O7"], seen) == []
    lake.append(TABLE, rows_of(MADE[8:]))
    assert keys_since(tables, ["O7"], seen) == []

    with lake.table(TABLE).manage_snapshots() as manage:
        manage.rollback_to_snapshot(with_row.snapshot_id)

    assert keys_since(tables, ["O7"], seen) == ["O7"]


def test_files_that_a_view_has_seen_are_not_read_again(lake: Lake, tables: Tables) -> None:
    """They are gone from the folder, which is not noticed."""
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(MADE[:6]))
    with tables.hold_view(shape_of({})) as view:
        seen = view.seen
    lake.append(TABLE, rows_of(MADE[7:8]))
    first = min((lake.folder / "warehouse").rglob("*.parquet"), key=lambda path: path.stat().st_mtime)
    first.unlink()

    assert keys_since(tables, ["O7"], seen) == ["O7"]


def describe(shop: IcebergShop, **hop: str) -> None:
    """Describe a shop whose warehouse is read by the keys of its topic."""
    warehouse = dataset("lake", WAREHOUSE, position="_kafka_metadata")
    for name in ("key", "time"):
        del warehouse[name]
    shop.describe_lake(warehouse=warehouse, topic_key="position", hop=hop)
    shop.lake.make_table(WAREHOUSE, ORDERS.append(pa.field("_kafka_metadata", POSITION)))


def test_rows_that_are_committed_between_reading_and_judging_are_not_missing(shop: IcebergShop) -> None:
    describe(shop)
    shop.send(MADE)
    rows = with_position(MADE, shop.topic)
    shop.lake.append(WAREHOUSE, rows[:9])
    context = shop.open()
    shop.snapshot(context)
    shop.lake.append(WAREHOUSE, rows[9:11])

    shop.reconcile(context)

    assert shop.found(context, STORE_HOP) == {'["0","11"]': ("missing", "lost_after_topic")}


def test_a_row_of_a_key_that_was_handed_over_is_found_where_it_lies(shop: IcebergShop) -> None:
    """The view of the second window was not read by that key, so that its absence from the slice says nothing."""
    describe(shop, consumer_group=shop.topic)
    first, second = MADE[:4], orders(range(100, 103), 1)
    shop.send(first)
    shop.commit_group(shop.topic, 3)
    shop.lake.append(WAREHOUSE, with_position(first[:3], shop.topic))
    context, closed = shop.whole_way()
    assert shop.found(context, STORE_HOP) == {'["0","3"]': ("pending", "not_yet_consumed")}
    assert closed.state is WindowState.CERTIFIED
    shop.send(second)
    shop.lake.append(WAREHOUSE, with_position([*first[3:], *second], shop.topic, 3))
    shop.commit_group(shop.topic, 7)

    context, closed = shop.whole_way(1)

    assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)
    assert shop.counts(context, STORE_HOP).matched == 4
