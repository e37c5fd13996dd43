"""Test how columns are encoded: it follows their content, and decides how long writing takes."""

from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from makewhole.lake.parquet_writer import GrowingParquet

pytestmark = pytest.mark.unit


def encodings(path: Path) -> dict[str, bool]:
    """Return which columns of a file have a dictionary."""
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {column.path_in_schema: column.has_dictionary_page for column in columns}


def test_only_texts_that_repeat_have_a_dictionary(tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {
            "key": [f"k{number}" for number in range(1_000)],
            "c:status": [("NEW", "PAID", None)[number % 3] for number in range(1_000)],
            "c:amount": [f"{number}.00" for number in range(1_000)],
            "version": list(range(1_000)),
        }
    )

    with GrowingParquet("x", fs.LocalFileSystem(), str(tmp_path / "x")) as file:
        file.append(rows)
        file.append(rows)

    assert encodings(tmp_path / "x") == {"key": False, "c:status": True, "c:amount": False, "version": False}
    assert pl.read_parquet(tmp_path / "x").equals(pl.concat([rows, rows]))


def test_hashes_have_a_dictionary_only_where_all_are_the_same(tmp_path: Path) -> None:
    """Hashes of rows are where nothing is compared; a later one that differs is written all the same."""
    same, different = [2**63 + 5] * 1_000, [7, *range(2**63, 2**63 + 999)]
    schema = {"key_hi": pl.UInt64, "row_hash": pl.UInt64, "place_number": pl.Int64}
    places = range(10**6, 10**6 + 1_000)
    rows = pl.DataFrame({"key_hi": different, "row_hash": same, "place_number": places}, schema=schema)
    later = rows.with_columns(row_hash=pl.Series(different, dtype=pl.UInt64))

    with GrowingParquet("x", fs.LocalFileSystem(), str(tmp_path / "x")) as file:
        for frame in (rows, later):
            file.append(frame)

    assert encodings(tmp_path / "x") == {"key_hi": False, "row_hash": True, "place_number": False}
    assert pl.read_parquet(tmp_path / "x").equals(pl.concat([rows, later]))


def test_one_row_has_no_dictionary_and_an_empty_frame_is_written(tmp_path: Path) -> None:
    for name, rows in (("one", [""]), ("none", list[str]())):
        frame = pl.DataFrame({"c:x": rows}, schema={"c:x": pl.String})
        with GrowingParquet("x", fs.LocalFileSystem(), str(tmp_path / name)) as file:
            file.append(frame)
        assert pl.read_parquet(tmp_path / name).equals(frame)
