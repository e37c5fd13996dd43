"""Test that records which a truncation took count no more as earlier ones of their key."""

from typing import Any

import polars as pl
import pytest

from makewhole_spark.reconcile.count_repeated import without_cut_off

pytestmark = pytest.mark.unit

_COLUMNS = {
    "key_lo": pl.UInt64,
    "window": pl.Int64,
    "partition": pl.Int32,
    "offset": pl.Int64,
    "place": pl.String,
    "last_partition": pl.Int32,
    "last_offset": pl.Int64,
    "last_place": pl.String,
    "last_is_tombstone": pl.Boolean,
}


def known(*rows: tuple[Any, ...]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row")


def test_a_first_record_that_is_gone_takes_its_row_and_a_latest_one_only_what_it_says() -> None:
    rows = known(
        (1, 1, 0, 149, "0:149", None, None, None, None),
        (2, 1, 0, 150, "0:150", 0, 160, "0:160", False),
        (3, 1, 0, 10, "0:10", 0, 160, "0:160", True),
        (4, 1, 1, 170, "1:170", None, None, None, None),
        (5, 2, 0, 170, "0:170", None, None, None, None),
        (6, 1, 0, 10, "0:10", 1, 160, "1:160", False),
    )
    left = without_cut_off(rows, [(1, 0, 150)])
    assert left.columns == rows.columns
    assert left.select("key_lo", "place", "last_place", "last_is_tombstone").rows() == [
        (1, "0:149", None, None),
        (3, "0:10", None, None),
        (4, "1:170", None, None),
        (5, "0:170", None, None),
        (6, "0:10", "1:160", False),
    ]
    assert without_cut_off(rows, []).equals(rows)
