"""Check the names of buckets, and that splitting by bucket keeps rows and their order, whatever their columns hold."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.buckets import (
    FINEST,
    bucket_name,
    buckets_of,
    files_of_bucket,
    is_in_bucket,
    named_bucket,
    names_within,
    number_of_buckets,
    shares_keys,
    split_by_bucket,
)
from tests.world.examples import examples

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


@settings(max_examples=examples(200), deadline=None)
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


NUMBERS = st.sampled_from([1, 2, 4, 16, 64, 256, FINEST])


@pytest.mark.parametrize(
    ("rows", "buckets"),
    [
        (0, 1),
        (5_000, 1),
        (5_001, 2),
        (1_000_000, 2),
        (2_000_000, 2),
        (2_000_001, 4),
        (10_000_000, 16),
        (10**9, 256),
        (10**12, 256),
    ],
)
def test_a_bucket_has_a_million_rows_or_less_and_few_rows_have_one(rows: int, buckets: int) -> None:
    assert number_of_buckets(rows) == buckets


def test_a_name_says_the_number() -> None:
    assert [bucket_name(37, number) for number in (1, 2, 16, 256)] == ["00of1", "01of2", "05of16", "037of256"]
    assert [named_bucket(name) for name in ("00of1", "037of256", "05of16")] == [(0, 1), (37, 256), (5, 16)]
    assert (buckets_of(["05of16", "037of256"]), buckets_of([])) == (16, FINEST)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), NUMBERS, NUMBERS)
def test_buckets_of_any_numbers_share_the_keys_that_are_in_both(key: int, other: int, first: int, more: int) -> None:
    names = bucket_name(key, first), bucket_name(other, more)
    fewer = min(first, more)

    assert shares_keys(bucket_name(key, first), bucket_name(key, more))
    assert shares_keys(*names) == shares_keys(*reversed(names)) == (key % fewer == other % fewer)
    assert (names[1] in set(names_within(names[0], more))) == shares_keys(*names)
    frame = pl.DataFrame({"key_hi": [key, other]}, schema={"key_hi": pl.UInt64})
    assert frame.select(is_in_bucket(names[0])).to_series().to_list() == [True, other % first == key % first]


@given(NUMBERS, st.lists(st.integers(0, 2**64 - 1), max_size=20), NUMBERS, st.integers(0, 2**64 - 1))
def test_the_files_of_a_bucket_hold_all_its_keys(written: int, keys: list[int], read: int, any_key: int) -> None:
    by_bucket: dict[str, list[str]] = {}
    for key in keys:
        by_bucket.setdefault(bucket_name(key, written), []).append(str(key))
    bucket = bucket_name(any_key, read)

    files = files_of_bucket(by_bucket, bucket)

    assert {key for key in keys if key % read == any_key % read} <= {int(path) for path in files}
    if written >= read:
        assert sorted(files) == sorted(str(key) for key in keys if key % read == any_key % read)
