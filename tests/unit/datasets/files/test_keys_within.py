"""Test which keys a file may hold by the offsets in its name."""

import pytest

from makewhole.datasets.files.listing import DataFile
from makewhole.datasets.files.reading import keys_within
from makewhole.file_stores.store import FileEntry
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.points import PointKind, TablePoint

pytestmark = pytest.mark.unit

KEYS = ['["0","4"]', '["0","5"]', '["0","9"]', '["0","10"]', '["1","7"]']


def file_of(path: str) -> DataFile:
    return DataFile(file=FileEntry(path=path, size_bytes=0, modified_ms=0))


def point_of(*key: str) -> TablePoint:
    place = DatasetPlace(format="parquet", partition="p", offset="o")
    return TablePoint(name="files", kind=PointKind.STORE, connection="lake", table="/dw", key=key, dataset=place)


def test_both_ends_of_the_range_in_a_name_belong_to_it() -> None:
    assert keys_within(file_of("d/orders+0+5+9.parquet"), point_of("p", "o"), KEYS) == frozenset(KEYS[1:3])
    assert keys_within(file_of("d/orders+2+5+9.parquet"), point_of("p", "o"), KEYS) == frozenset()


def test_a_name_without_offsets_and_a_key_that_is_no_position_bound_nothing() -> None:
    assert keys_within(file_of("orders.parquet"), point_of("p", "o"), KEYS) is None
    assert keys_within(file_of("orders+0+5+9.parquet"), point_of("id"), ["O1"]) is None


@pytest.mark.parametrize("key", ["O1", "5", '["0"]', '["a","b"]', '["0","5","6"]', "null"])
def test_a_key_that_is_no_position_may_be_in_it(key: str) -> None:
    assert keys_within(file_of("orders+0+5+9.parquet"), point_of("p", "o"), [key]) == frozenset({key})
