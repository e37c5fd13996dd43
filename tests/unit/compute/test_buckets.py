"""Check that splitting by bucket keeps rows and their order, whatever their columns hold."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.buckets import split_by_bucket

pytestmark = pytest.mark.unit

Row = tuple[Any, ...]
SCHEMA: dict[str, Any] = {
    "key_hi": pl.UInt64,
    "key": pl.String,
    "time": pl.Datetime("us", "UTC"),
    "excluded_by": pl.List(pl.String),
    "is_aborted": pl.Boolean,
    "never": pl.Int64,
}
TEXTS = st.none() | st.text(max_size=30)
ROWS = st.tuples(
    st.integers(0, 2**64 - 1),
    TEXTS,
    st.none() | st.integers(0, 2**40),
    st.none() | st.lists(TEXTS, max_size=2),
    st.none() | st.booleans(),
    st.none(),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(ROWS, max_size=30), st.sampled_from([1, 16, 300]), st.integers(0, 3))
def test_each_bucket_has_its_rows_in_their_order(rows: list[Row], buckets: int, start: int) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")[start:]

    parted = {bucket: pl.DataFrame(table) for bucket, table in split_by_bucket(frame, buckets)}

    assert all(part.schema == frame.schema for part in parted.values())
    expected: dict[int, list[Row]] = {}
    for row in frame.rows():
        expected.setdefault(row[0] % buckets, []).append(row)
    assert {bucket: part.rows() for bucket, part in parted.items()} == expected
    assert list(parted) == sorted(expected)


@pytest.mark.parametrize("lists", [[[], [], []], [[], ["a→b"], []], [[], None, []], [[None], [], []]])
def test_lists_that_are_all_empty_or_not_are_kept(lists: list[list[str | None] | None]) -> None:
    frame = pl.DataFrame(
        {"key_hi": [3, 2, 1], "excluded_by": lists}, schema={n: SCHEMA[n] for n in ("key_hi", "excluded_by")}
    )

    parted = {bucket: pl.DataFrame(table)["excluded_by"].to_list() for bucket, table in split_by_bucket(frame, 4)}

    assert parted == {1: [lists[2]], 2: [lists[1]], 3: [lists[0]]}
