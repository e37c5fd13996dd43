"""Test that rows of two files of a table never have one place."""

from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from makewhole.compute.frames import numbered_places, with_place
from makewhole.datasets.iceberg.data_files import ListedFile

pytestmark = pytest.mark.unit

LOCATIONS = st.sampled_from(["s3://lake/orders", "s3://lake/orders/", "file:///lake/orders"])
PATHS = st.sampled_from(
    [
        *("s3://lake/orders/2/a.parquet", "s3://lake/orders2/a.parquet", "s3://lake/orders/a.parquet"),
        *("s3://lake/ordersa.parquet", "file:///lake/orders/a.parquet", "file:///lake/a.parquet"),
    ]
)
FILES = st.tuples(PATHS, st.sampled_from([None, 1, 12]), st.sampled_from([0, 1]))


def listed(path: str, added_in: int | None, listing: int) -> ListedFile:
    file = cast(Any, SimpleNamespace(file_path=path))
    return ListedFile(file=file, deletes=(), listing=listing, added_in=added_in, sequence=1)


def places(location: str, file: ListedFile) -> set[str]:
    before, after = file.around_number(location)
    frame = with_place(pl.DataFrame(numbered_places(before, np.array([0, 1, 11, 2**40]), after)))
    return set(frame["place"])


@given(location=LOCATIONS, files=st.sets(FILES, min_size=2, max_size=6))
@example(
    location="s3://lake/orders", files={("s3://lake/orders/2/a.parquet", 1, 0), ("s3://lake/orders2/a.parquet", 1, 0)}
)
def test_each_row_has_a_place_of_its_own(location: str, files: set[tuple[str, int | None, int]]) -> None:
    of_files = [places(location, listed(*file)) for file in files]

    assert all(len(own) == 4 for own in of_files)
    assert all(left.isdisjoint(other) for left, other in combinations(of_files, 2))


def test_a_file_below_the_table_is_named_from_there_on() -> None:
    assert places("s3://lake/orders", listed("s3://lake/orders/data/a.parquet", 7, 1)) >= {
        "data/a.parquet:11 (snapshot 7, listing 2)"
    }
