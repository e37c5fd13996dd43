"""Test that statistics leave out no group of rows that holds what is asked for: each column's own decide, or none."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from makewhole.datasets.files.reading import FilesReader
from makewhole.tables.shape import TableShape, TimeBounds
from tests.integration.files.test_files_reading import read, shape_of
from tests.world.files_lake import FilesPlace

pytestmark = pytest.mark.integration

DAY = datetime(2025, 3, 1, tzinfo=UTC)
IDS = {"id": "string"}


def found(place: FilesPlace, shape: TableShape, *keys: str) -> list[str]:
    """Return those of the keys that a look-up finds."""
    frames = FilesReader(place.connection, shape, None).keys(list(keys))
    return sorted(key for frame in frames for key in frame["key"])


def test_what_a_file_has_in_a_column_of_its_folders_says_nothing(place: FilesPlace) -> None:
    """A writer keeps the field in the file, and names the folder by the time of the record."""
    types: Any = {"id": pa.string(), "hour": pa.int64(), "at": pa.timestamp("us", "UTC")}
    place.add("hour=7/a.parquet", [{"id": "O1", "hour": 99, "at": DAY}], pa.schema(types))
    shape = shape_of(place, compare=IDS, key=("hour", "id"))
    assert found(place, shape, '["7","O1"]') == ['["7","O1"]']

    dated: Any = {"id": pa.string(), "day": pa.timestamp("us", "UTC")}
    place.store.remove("hour=7/a.parquet")
    place.add("day=2025-03-01/a.parquet", [{"id": "O1", "day": DAY.replace(year=1999)}], pa.schema(dated))
    bounds = TimeBounds(start=DAY, end=DAY.replace(day=2))
    assert read(place, shape_of(place, compare=IDS, time="day"), bounds)["key"].to_list() == ["O1"]


def test_a_column_with_dots_in_its_name_is_held_to_no_part_of_another_one(place: FilesPlace) -> None:
    types: dict[str, Any] = {
        "id": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "to.zip": pa.int64(),
        "to": pa.struct([("zip", pa.int64())]),
    }
    place.add("a.parquet", [{"id": "O1", "at": DAY, "to.zip": 1, "to": {"zip": 7}}], pa.schema(types))
    shape = shape_of(place, compare=IDS, key=("to.zip", "id"))
    assert found(place, shape, '["1","O1"]') == ['["1","O1"]']


def test_moment_of_too_many_microseconds_is_read_as_none(place: FilesPlace) -> None:
    """Its microseconds, cut to 64 bits, are those of a moment of the day; the statistics know no null."""
    wrapped = (int(DAY.timestamp()) * 1_000_000 + 3_600_000_000 + 125 * 2**64) // 1_000
    types: Any = {"id": pa.string(), "at": pa.timestamp("ms", "UTC")}
    place.add("a.parquet", [{"id": "O1", "at": wrapped}], pa.schema(types))
    place.add("b.parquet", [{"id": "O2", "at": DAY}], pa.schema(types))
    shape = shape_of(place, compare=IDS, time="at")
    for start in (DAY, None):
        rows = read(place, shape, TimeBounds(start=start, end=DAY.replace(day=2)))
        times = dict(zip(rows["key"], rows["time_us"], strict=True))
        assert times == {"O1": None, "O2": int(DAY.timestamp()) * 1_000_000}
