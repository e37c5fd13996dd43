"""Test what is read of Iceberg tables: whatever happened to their files, schema and snapshots."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
)
from pyiceberg.table import Table, Transaction
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, StringType

from makewhole.compute.normalise import table_frame
from makewhole.datasets.iceberg.held_view import OtherTableError
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.points import KeyType, PointKind, TablePoint
from makewhole.tables.shape import TableShape, TimeBounds
from makewhole.tables.tables import Tables
from tests.world.iceberg_lake import ORDERS, POSITION, Lake, rows_of, with_position
from tests.world.orders import BORN, DAY, orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

TABLE = "dw.orders"
LONG: LongType = LongType()  # type: ignore[no-untyped-call]
STRING: StringType = StringType()  # type: ignore[no-untyped-call]
COMPARE = {"amount": "decimal(8,2)"}
BY_POSITION = DatasetPlace(
    format="iceberg",
    partition="_kafka_metadata.partition",
    offset="_kafka_metadata.offset",
    topic="_kafka_metadata.topic",
    of_topics=("orders",),
)


def shape_of(compare: Mapping[str, str] | None = None, **settings: Any) -> TableShape:
    """Return what is read of the table of orders."""
    settings = {"key": ("id",), "time": "at"} | settings
    point = TablePoint(name="lake", kind=PointKind.STORE, connection="lake", table=TABLE, **settings)
    return TableShape(point=point, compare=COMPARE if compare is None else compare, filters={})


def by_position(compare: Mapping[str, str] | None = None) -> TableShape:
    """Return what is read of a table whose rows are known by their positions."""
    layout = (KeyType.BIGINT, KeyType.BIGINT)
    return shape_of(compare, key=BY_POSITION.position, time=None, dataset=BY_POSITION, key_layout=layout)


def read(tables: Tables, shape: TableShape, bounds: TimeBounds | None = None, parts: int = 2) -> pl.DataFrame:
    """Read a table as a window does, under a view that is held; the frame has the keys' order."""
    with tables.hold_view(shape) as view:
        plan = view.plan(bounds, parts)
        readers = [(tables.reader(shape, plan.view), part) for part in plan.parts]
        frames = [
            table_frame(frame, dict(shape.compare))[0]
            for reader, part in readers
            for frame in reader.part(bounds, part)
        ]
        assert sum(reader.counted for reader, _ in readers) == sum(len(frame) for frame in frames)
    return pl.concat(frames).sort("key", "place") if frames else pl.DataFrame()


def texts(frame: pl.DataFrame, column: str = "amount") -> dict[str, str | None]:
    """Return the text of a compared column by key."""
    return dict(zip(frame["key"], frame[f"c:{column}"], strict=True))


def remove_position(table: Table, folder: Path, path: str, positions: list[int]) -> None:
    """Commit a file of positional deletes, as other engines do that merge on read."""
    file = folder / "deletes.parquet"
    fields: Any = [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
    ]
    schema = pa.schema(fields)
    rows = [{"file_path": path, "pos": position} for position in positions]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)
    commit_deletes(table, file, DataFileContent.POSITION_DELETES, len(rows))


class DeletesWriter(ManifestWriterV2):
    """Writes a list of files of deletes, which pyiceberg reads and never writes."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def commit_deletes(table: Table, file: Path, content: DataFileContent, rows: int, ids: list[int] | None = None) -> None:
    """Commit a file of deletes; pyiceberg writes none, so that its list of files is written by hand."""
    data = DataFile.from_args(
        content=content,
        file_path=f"file://{file}",
        file_format=FileFormat.PARQUET,
        partition=None,
        record_count=rows,
        file_size_in_bytes=file.stat().st_size,
        equality_ids=ids,
    )
    transaction = Transaction(table, autocommit=False)
    with transaction.update_snapshot().overwrite() as change:
        own = change._process_manifests

        def with_deletes(manifests: list[Any]) -> list[Any]:
            with DeletesWriter(
                table.spec(), table.schema(), change.new_manifest_output(), change.snapshot_id, "null"
            ) as writer:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED, snapshot_id=change.snapshot_id, data_file=data
                    )
                )
            return own([writer.to_manifest_file(), *manifests])

        change._process_manifests = with_deletes  # type: ignore[method-assign]
    table.catalog.commit_table(table, transaction._requirements, transaction._updates)


def test_rows_that_positional_deletes_took_away_are_not_read(lake: Lake, tables: Tables, tmp_path: Path) -> None:
    lake.make_table(TABLE)
    table = lake.append(TABLE, rows_of(orders(range(5))))
    path = next(iter(table.scan().plan_files())).file.file_path
    remove_position(table, tmp_path, path, [1, 3])

    frame = read(tables, shape_of())

    assert frame["key"].to_list() == ["O0", "O2", "O4"]
    assert [place.partition(".parquet:")[2].partition(" ")[0] for place in frame["place"]] == ["0", "2", "4"]


def test_one_file_is_read_by_several_tasks_each_row_once(lake: Lake, tables: Tables, tmp_path: Path) -> None:
    table = lake.make_table(TABLE, properties={"write.parquet.row-group-limit": "4"})
    lake.append(TABLE, rows_of(orders(range(22))))
    lake.append(TABLE, rows_of(orders(range(30, 33))))
    path = max(table.refresh().scan().plan_files(), key=lambda task: task.file.record_count).file.file_path
    remove_position(table, tmp_path, path, [5, 21])
    whole = read(tables, shape_of(), parts=1)

    with tables.hold_view(shape_of()) as view:
        parts = view.plan(None, 3).parts
    groups = sorted((file.file.file_path == path, file.groups) for part in parts for file in part if file.groups)

    assert groups == [(True, (number,)) for number in range(6)]
    assert [len(part) for part in parts if not part] == []
    assert len(whole) == 23
    for number in (2, 3, 7):
        assert read(tables, shape_of(), parts=number).equals(whole)


def test_equality_deletes_are_refused_by_name(lake: Lake, tables: Tables, tmp_path: Path) -> None:
    lake.make_table(TABLE)
    table = lake.append(TABLE, rows_of(orders(range(5))))
    file = tmp_path / "equal.parquet"
    schema = pa.schema([pa.field("id", pa.string(), metadata={"PARQUET:field_id": "1"})])
    pq.write_table(pa.Table.from_pylist([{"id": "O1"}], schema=schema), file)
    commit_deletes(table, file, DataFileContent.EQUALITY_DELETES, 1, [1])

    with pytest.raises(RefusedError, match=r"^dw\.orders has equality deletes .* cannot apply them"):
        read(tables, shape_of())


def test_a_view_has_the_rows_of_its_snapshot_whatever_is_written_meanwhile(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(3))))
    shape = shape_of()
    with tables.hold_view(shape) as view:
        plan = view.plan(None, 1)
        lake.table(TABLE).delete("id = 'O1'")
        lake.append(TABLE, rows_of(orders([7])))
        with lake.table(TABLE).update_schema() as update:
            update.rename_column("amount", "total")
            update.rename_column("id", "order_id")
        frames = list(tables.reader(shape, plan.view).part(None, plan.parts[0]))
        keys = [key for frame in tables.reader(shape, plan.view).keys(["O1", "O7"]) for key in frame["key"]]

    assert keys == ["O1"]
    assert pl.concat(frames)["key"].to_list() == ["O0", "O1", "O2"]
    assert pl.concat(frames)["c:amount"].to_list() == ["0.50", "1.50", "2.50"]


def test_a_snapshot_that_is_expired_meanwhile_is_named(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(3))))
    shape = shape_of()
    with tables.hold_view(shape) as view:
        plan = view.plan(None, 1)
        snapshot = lake.table(TABLE).current_snapshot()
        assert snapshot is not None
        lake.append(TABLE, rows_of(orders([7])))
        lake.table(TABLE).maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
        with pytest.raises(TransientError, match=f"snapshot {snapshot.snapshot_id} of dw.orders was expired"):
            list(tables.reader(shape, plan.view).part(None, plan.parts[0]))


def test_a_table_that_was_made_again_is_another_one(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(3))))
    shape = shape_of()
    before = tables.describe_columns([shape])[0]["lake"].identity
    with tables.hold_view(shape) as view:
        plan = view.plan(None, 1)
        lake.make_table(TABLE)
        lake.append(TABLE, rows_of(orders(range(3))))
        with pytest.raises(OtherTableError, match=r"dw\.orders is another table than when the window was opened"):
            list(tables.reader(shape, plan.view).part(None, plan.parts[0]))
    assert tables.describe_columns([shape])[0]["lake"].identity != before


def test_columns_are_found_by_what_they_are_in_files_of_every_age(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE, ORDERS.set(1, pa.field("number", pa.int32())))
    lake.append(TABLE, rows_of(orders([1])))
    with lake.table(TABLE).update_schema() as update:
        update.rename_column("amount", "total")
        update.update_column("number", LONG)
        update.add_column("note", STRING)
    lake.append(TABLE, [{**rows_of(orders([2]))[0], "total": 7, "number": 2**40, "note": "new"}])

    frame = read(tables, shape_of({"total": "decimal(8,2)", "number": "bigint", "note": "string"}))

    assert texts(frame, "total") == {"O1": "1.50", "O2": "7.00"}
    assert texts(frame, "number") == {"O1": "1", "O2": str(2**40)}
    assert texts(frame, "note") == {"O1": None, "O2": "new"}


def test_an_empty_table_and_one_that_lost_all_rows_have_none(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    assert len(read(tables, shape_of())) == 0
    lake.append(TABLE, rows_of(orders(range(3))))
    lake.table(TABLE).delete("number >= 0")
    assert len(read(tables, shape_of())) == 0


def test_rows_of_a_partitioned_table_are_read_by_time_and_key(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    with lake.table(TABLE).update_spec() as update:
        update.add_identity("region")
    for day in range(3):
        lake.append(TABLE, rows_of(orders(range(10 * day, 10 * day + 4), day)))
    bounds = TimeBounds(start=BORN + DAY, end=BORN + 2 * DAY)

    assert read(tables, shape_of(), bounds)["key"].to_list() == ["O10", "O11", "O12", "O13"]
    with tables.hold_view(shape_of()) as view:
        assert sum(len(part) for part in view.plan(bounds, 4).parts) == 2
        assert sum(len(part) for part in view.plan(None, 4).parts) == 6
    assert sorted(frame_keys(tables, shape_of(), ["O2", "O21", "O99"])) == ["O2", "O21"]


def frame_keys(tables: Tables, shape: TableShape, keys: list[str]) -> list[str]:
    """Return the keys of the rows that a look-up finds."""
    return [key for frame in tables.reader(shape).keys(keys) for key in frame["key"]]


def test_a_file_listed_twice_has_its_rows_twice_each_in_its_place(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(2))))
    path = lake.list_again(TABLE)

    frame = read(tables, shape_of())

    assert frame["key"].to_list() == ["O0", "O0", "O1", "O1"]
    name = path.rpartition("/")[2]
    assert all(name in place for place in frame["place"])
    assert sorted("listing 2" in place for place in frame["place"]) == [False, False, True, True]


def test_rows_are_known_by_position_and_those_of_other_topics_are_left_out(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE, ORDERS.append(pa.field("_kafka_metadata", POSITION)))
    lake.append(TABLE, with_position(orders(range(3)), "orders"))
    lake.append(TABLE, with_position(orders(range(5)), "returns"))
    lake.append(TABLE, [{**rows_of(orders([9]))[0], "_kafka_metadata": None}])

    with tables.hold_view(by_position()) as view:
        plan = view.plan(None, 1)
        frames = list(tables.reader(by_position(), plan.view).part(None, plan.parts[0]))
    keys = ['["0","0"]', '["0","1"]', '["0","2"]']
    assert pl.concat(frames)["key"].to_list() == keys
    assert frame_keys(tables, by_position(), ['["0","1"]', '["0","4"]', '["3","1"]']) == ['["0","1"]']


def test_rows_that_came_since_a_view_are_known_also_when_its_snapshot_is_gone(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(3))))
    with tables.hold_view(shape_of()) as view:
        seen = view.seen
    lake.append(TABLE, rows_of([*orders([5]), {**orders([6])[0], "at": None}]))
    bounds = TimeBounds(start=BORN + DAY, end=BORN + 2 * DAY, seen_before=seen)

    assert read(tables, shape_of(), bounds)["key"].to_list() == ["O6"]
    snapshot = lake.table(TABLE).history()[0].snapshot_id
    lake.table(TABLE).maintenance.expire_snapshots().by_id(snapshot).commit()
    assert read(tables, shape_of(), bounds)["key"].to_list() == ["O6"]
    assert read(tables, shape_of(), TimeBounds(start=None, end=BORN + DAY))["key"].to_list() == [
        "O0",
        "O1",
        "O2",
        "O5",
        "O6",
    ]


def test_rows_ahead_of_the_clock_are_counted(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    ahead = {**orders([5])[0], "at": datetime(2999, 1, 1).astimezone().isoformat()}
    lake.append(TABLE, rows_of([*orders(range(3)), ahead]))
    with tables.hold_view(shape_of()) as view:
        counted, rows = view.count_rows_and_ahead([])
    assert (counted, rows.rows) == ({}, 1)
    assert str(rows.oldest).startswith("2998-12-31") or str(rows.oldest).startswith("2999-01-01")


def test_a_column_that_only_the_partition_has_is_read_and_looked_up_by(
    lake: Lake, tables: Tables, tmp_path: Path
) -> None:
    """Files that were taken over from a table of Hive lack the columns that it is partitioned by."""
    lake.make_table(TABLE)
    with lake.table(TABLE).update_spec() as update:
        update.add_identity("region")
    table, file = lake.table(TABLE), tmp_path / "taken.parquet"
    rows = pa.Table.from_pylist(rows_of(orders(range(2))), schema=table.schema().as_arrow())
    pq.write_table(rows.drop_columns(["region"]), file)
    data = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file://{file}",
        file_format=FileFormat.PARQUET,
        partition=Record("XX"),
        record_count=2,
        file_size_in_bytes=file.stat().st_size,
    )
    data.spec_id = table.spec().spec_id
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(data)
    shape = shape_of({"region": "string"}, key=("region", "id"))

    assert texts(read(tables, shape), "region") == {'["XX","O0"]': "XX", '["XX","O1"]': "XX"}
    assert frame_keys(tables, shape, ['["XX","O1"]', '["US","O1"]']) == ['["XX","O1"]']


def test_a_file_that_is_damaged_or_gone_is_named(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    table = lake.append(TABLE, rows_of(orders(range(3))))
    path = next(iter(table.scan().plan_files())).file.file_path
    file = Path(path.removeprefix("file://"))
    file.write_bytes(file.read_bytes()[:-20])
    with tables.hold_view(shape_of()) as view:
        plan = view.plan(None, 1)
        reader = tables.reader(shape_of(), plan.view)
        assert list(reader.part(None, plan.parts[0])) == []
        assert ([skipped.path for skipped in reader.unreadable], plan.unreadable) == ([path], ())
        view.leave_out(reader.unreadable)
        again = view.plan(None, 1)
        assert ([skipped.path for skipped in again.unreadable], again.parts) == ([path], ((),))
        assert list(tables.reader(shape_of(), again.view).keys(["O1"])) == []
    file.unlink()
    with tables.hold_view(shape_of()) as view:
        plan = view.plan(None, 1)
        reader = tables.reader(shape_of(), plan.view)
        assert list(reader.part(None, plan.parts[0])) == []
        assert [(skipped.path, skipped.is_gone) for skipped in reader.unreadable] == [(path, True)]


def test_a_column_with_dots_in_its_name_is_no_part_of_another_one(lake: Lake, tables: Tables) -> None:
    columns: Any = {"id": pa.string(), "a.b": pa.int64(), "a": pa.struct([pa.field("b", pa.int64())])}
    with pytest.raises(ValueError, match="multiple fields for name"):
        lake.make_table(TABLE, pa.schema(columns))
    del columns["a"]
    lake.make_table(TABLE, pa.schema(columns))
    lake.append(TABLE, [{"id": "O1", "a.b": 5}, {"id": "O2", "a.b": 6}])
    shape = shape_of({"a.b": "bigint"}, key=("a.b",), time=None, key_layout=(KeyType.BIGINT,))
    assert texts(read(tables, shape), "a.b") == {"5": "5", "6": "6"}
    assert frame_keys(tables, shape, ["6", "7"]) == ["6"]
