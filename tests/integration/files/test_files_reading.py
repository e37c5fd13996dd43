"""Test what of a folder counts as rows, and that what cannot be read is never taken for absent."""

import os
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from makewhole.compute.frames import with_place
from makewhole.datasets.files.file_source import FileSource
from makewhole.datasets.files.listing import OffsetsNamed, listing_now
from makewhole.datasets.files.parquet_rows import SpoiltFileError
from makewhole.datasets.files.reading import FilesReader, HeldListing
from makewhole.model.errors import TransientError
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.points import KeyType, PointKind, TablePoint
from makewhole.tables.shape import EarlierRows, TableShape, TimeBounds
from tests.integration.files.test_files_windows import MADE
from tests.world.files_lake import ORDERS, POSITIONED, FilesPlace, parquet_bytes, positioned, rows_of

pytestmark = pytest.mark.integration


def shape_of(place: FilesPlace, *, compare: dict[str, str] | None = None, marker: str = "", **point: Any) -> TableShape:
    """Return the dataset of a place, with what is read of it."""
    of_point = {"key": ("id",), "time": "at", **point}
    dataset = of_point.pop("dataset", DatasetPlace(format="parquet", marker=marker))
    warehouse = TablePoint(
        name="warehouse", kind=PointKind.STORE, connection="lake", table=place.path, dataset=dataset, **of_point
    )
    return TableShape(point=warehouse, compare=compare or {"amount": "decimal(8,2)"}, filters={})


def held(place: FilesPlace, shape: TableShape) -> HeldListing:
    """Return a view of the files as they are now."""
    return HeldListing(source=FileSource(place.connection, shape.point), shape=shape)


def read(place: FilesPlace, shape: TableShape, bounds: TimeBounds | None = None, parts: int = 1) -> pl.DataFrame:
    """Return the rows of all parts."""
    plan = held(place, shape).plan(bounds, parts)
    frames = [
        frame for part in plan.parts for frame in FilesReader(place.connection, shape, plan.view).part(bounds, part)
    ]
    return pl.concat(frames) if frames else pl.DataFrame(schema={"key": pl.String})


def keys(place: FilesPlace, shape: TableShape) -> list[str]:
    """Return the keys of all rows, in order."""
    return sorted(read(place, shape)["key"].to_list(), key=lambda key: (len(key), key))


def ids(first: int, past: int) -> list[str]:
    """Return the keys of orders."""
    return [f"O{number}" for number in range(first, past)]


def test_files_under_temporary_names_do_not_count(place: FilesPlace) -> None:
    place.add("a.parquet", rows_of(MADE[:2]))
    for name in (
        "_temporary/0/b.parquet",
        ".hive-staging/c.parquet",
        "_SUCCESS",
        "d/_e.parquet",
        "f.parquet._COPYING_",
    ):
        place.add(name, rows_of(MADE[2:4]))
    place.add("_day=1/g.parquet", rows_of(MADE[4:5]))
    assert keys(place, shape_of(place)) == ["O0", "O1", "O4"]


def test_files_without_the_marker_or_later_than_it_do_not_count(place: FilesPlace) -> None:
    place.add("dt=1/a.parquet", rows_of(MADE[:2]))
    place.add("dt=1/_SUCCESS", [])
    place.add("dt=1/b.parquet", rows_of(MADE[2:4]))
    place.add("dt=2/c.parquet", rows_of(MADE[4:6]))
    root = place.store.root
    for name, second in (("dt=1/a.parquet", 10), ("dt=1/_SUCCESS", 20), ("dt=1/b.parquet", 30), ("dt=2/c.parquet", 5)):
        os.utime(f"{root}/{name}", (second, second))
    assert keys(place, shape_of(place, marker="_SUCCESS")) == ["O0", "O1"]
    assert keys(place, shape_of(place)) == ids(0, 6)
    listing = listing_now(place.store, "_SUCCESS")
    assert [file.path for file in listing.uncommitted] == ["dt=1/b.parquet", "dt=2/c.parquet"]


@pytest.mark.parametrize("length", [0, 3, 400], ids=["empty", "no footer", "cut off"])
def test_a_file_that_is_not_whole_is_named_and_may_hold_every_key(place: FilesPlace, length: int) -> None:
    place.add("a.parquet", rows_of(MADE[:2]))
    place.store.publish("b.parquet", parquet_bytes(rows_of(MADE[2:]))[:length])
    shape = shape_of(place)
    plan = held(place, shape).plan(None, 1)
    assert [(file.path, file.size_bytes) for file in plan.unreadable] == [("b.parquet", length)]
    assert keys(place, shape) == ["O0", "O1"]
    reader = FilesReader(place.connection, shape, None)
    assert pl.concat(list(reader.keys(["O1", "O5"])))["key"].to_list() == ["O1"]
    [doubt] = reader.in_doubt
    assert (doubt.gid, doubt.is_file, doubt.is_unreadable, doubt.keys) == ("b.parquet", True, True, None)


def test_a_file_whose_pages_are_spoilt_is_named_by_its_reader_and_left_out_of_the_view(place: FilesPlace) -> None:
    """Its footer is whole, so that only reading it tells."""
    place.add("a.parquet", rows_of(MADE[:2]))
    content = bytearray(parquet_bytes(rows_of(MADE), compression="gzip"))
    content[4:200] = bytes(196)
    place.store.publish("b.parquet", bytes(content))
    shape = shape_of(place)
    view = held(place, shape)
    plan = view.plan(None, 1)
    reader = FilesReader(place.connection, shape, plan.view)
    assert pl.concat(list(reader.part(None, plan.parts[0])))["key"].to_list() == ["O0", "O1"]
    assert [(file.path, file.size_bytes, file.is_spoilt) for file in reader.unreadable] == [
        ("b.parquet", len(content), True)
    ]
    assert plan.unreadable == ()
    view.leave_out(reader.unreadable)
    again = view.plan(None, 1)
    assert again.unreadable == tuple(reader.unreadable)
    assert FileSource(place.connection, shape.point, again.view).whole == again.parts[0]
    with pytest.raises(SpoiltFileError) as raised:
        list(FileSource(place.connection, shape.point).whole_rows(shape.point))
    text = (
        f"{place.store.root}/b.parquet ({len(content)} bytes) has pages that do not decode: it is not known which rows"
    )
    assert str(raised.value).startswith(text)


def test_a_file_that_goes_or_changes_while_it_is_read_is_an_error(place: FilesPlace) -> None:
    shape = shape_of(place)
    place.add("a.parquet", rows_of(MADE[:2]))
    place.add("b.parquet", rows_of(MADE[2:]))
    plan = held(place, shape).plan(None, 1)
    place.add("b.parquet", rows_of(MADE[2:3]))
    with pytest.raises(TransientError, match=r"b\.parquet was written again, or went, while it was read; read again"):
        list(FilesReader(place.connection, shape, plan.view).part(None, plan.parts[0]))
    place.store.remove("b.parquet")
    with pytest.raises(TransientError, match=r"b\.parquet went while it was read; read again"):
        list(FilesReader(place.connection, shape, plan.view).part(None, plan.parts[0]))


def test_a_file_that_comes_after_the_view_is_not_in_it(place: FilesPlace) -> None:
    shape = shape_of(place)
    place.add("a.parquet", rows_of(MADE[:2]))
    plan = held(place, shape).plan(None, 1)
    place.add("b.parquet", rows_of(MADE[2:]))
    reader = FilesReader(place.connection, shape, plan.view)
    assert pl.concat(list(reader.keys(ids(0, 12))))["key"].to_list() == ["O0", "O1"]
    assert len(pl.concat(list(FilesReader(place.connection, shape, None).keys(ids(0, 12))))) == 12


def test_values_decide_where_files_have_other_types_or_lack_a_column(place: FilesPlace) -> None:
    texts = ORDERS.set(3, pa.field("amount", pa.string())).set(4, pa.field("at", pa.timestamp("ns")))
    without = ORDERS.remove(3).set(3, pa.field("at", pa.timestamp("ms", "UTC")))
    place.add("a.parquet", rows_of(MADE[:2]))
    moment = datetime(2025, 3, 1)
    place.add(
        "b.parquet", [{"id": "O2", "amount": "2.5", "at": moment}, {"id": "O3", "amount": "x", "at": None}], texts
    )
    place.add("c.parquet", [{"id": "O4", "at": moment.replace(tzinfo=UTC)}], without)
    rows = read(place, shape_of(place)).sort("key")
    assert rows["c:amount"].to_list() == ["0.50", "1.50", "!2.5", "!x", None]
    zero = int(moment.replace(tzinfo=UTC).timestamp() * 1_000_000)
    assert rows["time_us"].to_list() == [zero, zero + 60_000_000, zero, None, zero]


def test_the_names_of_folders_are_columns(place: FilesPlace) -> None:
    without = pa.schema([field for field in ORDERS if field.name not in ("region", "number")])
    place.add("region=EU/number=7/a.parquet", rows_of(MADE[:1]), without)
    place.add("region=a%2Fb/number=8/a.parquet", rows_of(MADE[1:2]), without)
    place.add("region=__HIVE_DEFAULT_PARTITION__/number=9/a.parquet", rows_of(MADE[2:3]), without)
    shape = shape_of(place, compare={"region": "string", "number": "bigint"}, key=("number", "id"))
    rows = read(place, shape).sort("key")
    assert rows["key"].to_list() == ['["7","O0"]', '["8","O1"]', '["9","O2"]']
    assert rows["c:region"].to_list() == ["EU", "a/b", None]
    assert rows["c:number"].to_list() == ["7", "8", "9"]


def test_groups_of_rows_are_left_out_by_their_statistics(place: FilesPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place.add("a.parquet", rows_of(MADE), row_group_size=3)
    shape, groups = shape_of(place), list[int]()
    whole = pq.ParquetFile.read_row_group

    def counted(self: pq.ParquetFile, at: int, *more: Any, **named: Any) -> Any:
        groups.append(at)
        return whole(self, at, *more, **named)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
    start, end = (datetime(2025, 3, 1, 0, minute, tzinfo=UTC) for minute in (4, 7))
    assert sorted(read(place, shape, TimeBounds(start=start, end=end))["key"]) == ["O4", "O5", "O6"]
    assert groups == [1, 2]
    groups.clear()
    frame = pl.concat(list(FilesReader(place.connection, shape, None).keys(["O3"])))
    assert with_place(frame)["place"].to_list() == ["a.parquet:3"]
    assert groups == [1, 3]  # as texts: O3 is between O10 and O9
    groups.clear()
    assert sorted(read(place, shape, parts=4)["key"]) == sorted(ids(0, 12))
    assert sorted(groups) == [0, 1, 2, 3]


def test_positions_are_found_by_their_statistics(place: FilesPlace) -> None:
    dataset = DatasetPlace(format="parquet", partition="p", offset="o")
    bigints = (KeyType.BIGINT, KeyType.BIGINT)
    shape = shape_of(place, key=("p", "o"), key_layout=bigints, dataset=dataset)
    place.add("orders+0+0000000000+0000000011.parquet", positioned(MADE), POSITIONED, row_group_size=4)
    place.add("orders+1+0000000000+0000000011.parquet", positioned(MADE, partition=1), POSITIONED)
    frame = pl.concat(list(FilesReader(place.connection, shape, None).keys(['["0","5"]', '["1","9"]', '["2","1"]'])))
    assert sorted(with_place(frame)["place"]) == [
        "orders+0+0000000000+0000000011.parquet:5",
        "orders+1+0000000000+0000000011.parquet:9",
    ]
    [first, _] = listing_now(place.store).files
    assert first.offsets_named == OffsetsNamed(topic="orders", partition=0, first=0, last=11)


def test_a_row_is_new_where_its_file_came_or_was_written_again(place: FilesPlace) -> None:
    shape = shape_of(place)
    place.add("a.parquet", rows_of(MADE[:2]))
    place.add("b.parquet", rows_of(MADE[2:4]))
    seen = held(place, shape).seen
    place.add("b.parquet", rows_of(MADE[2:5]))
    place.add("c.parquet", rows_of(MADE[5:6]))
    day = datetime(2025, 3, 2, tzinfo=UTC)
    bounds = TimeBounds(
        start=day, end=day.replace(day=3), earlier=(EarlierRows(start=None, end=day, seen_before=seen),)
    )
    assert sorted(read(place, shape, bounds)["key"]) == ["O2", "O3", "O4", "O5"]


@pytest.mark.parametrize("seen", ["748:748:", "1234:1300:1234,1250", '{"uuid": "u", "snapshot": 1}', ""])
def test_what_was_seen_of_a_table_of_another_kind_hides_no_row(place: FilesPlace, seen: str) -> None:
    place.add("a.parquet", rows_of(MADE[:2]))
    day = datetime(2025, 3, 2, tzinfo=UTC)
    late = EarlierRows(start=None, end=day, seen_before=seen)
    bounds = TimeBounds(start=day, end=day.replace(day=3), seen_before=seen, earlier=(late,))

    assert sorted(read(place, shape_of(place), bounds)["key"]) == ["O0", "O1"]


def test_files_that_change_all_the_time_are_an_error(place: FilesPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place.add("a.parquet", rows_of(MADE[:2]))
    store, number = place.store, iter(range(100))
    whole = type(store).list

    def changing(self: Any, folder: str = "") -> Any:
        place.add(f"{next(number)}.parquet", [])
        return whole(self, folder)

    monkeypatch.setattr(type(store), "list", changing)
    with pytest.raises(TransientError, match="changed each of 8 times that they were listed"):
        listing_now(store)
