"""Test that a run takes over the keys that it lacks from the revisions before it, and none that it has itself."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.buckets import bucket_name, is_in_bucket
from makewhole.compute.frames import HASH
from makewhole.compute.indexed_keys.stored_runs import stored_run
from makewhole.key_index.earlier_revisions import (
    EarlierRevision,
    StandingRun,
    rows_of_bucket,
    with_earlier_revisions,
)
from makewhole.key_index.files import IndexFile
from makewhole.key_index.merge import write_merged
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from tests.unit.key_index.test_files import run
from tests.unit.key_index.test_merge import TOPIC, single
from tests.world.examples import seeds

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("earlier")


@settings(max_examples=len(seeds(40)))
@given(
    st.integers(0, 30), st.integers(0, 30), st.sampled_from([1, 2, 8]), st.sampled_from([1, 2, 8]), st.integers(1, 30)
)
def test_each_key_is_as_the_newest_revision_read_it_or_else_as_the_one_before(
    folder: Path, had: int, has: int, of_before: int, of_now: int, at_once: int
) -> None:
    storage, before, now = Storage(root=str(folder)), run(range(1000, 1000 + had), 25), run(range(2000, 2000 + has), 9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("makewhole.key_index.files._ROWS_AT_ONCE", at_once)
        patch.setattr("makewhole.lake.sorted_parquet.ROWS_OF_A_GROUP", 7)
        others = [single(storage, window, run(range(3000, 3020), 30), of_before) for window in (1, 3)]
        merged = write_merged(storage, TOPIC, "m", [*others, single(storage, 2, before, of_before)])
        earlier = [IndexFile(path=path, windows=(2,)) for path in merged.files.values()]
        newest, expected = stored_run(now, 2), stored_run(before, 2)
        for bucket in (bucket_name(number, of_now) for number in range(of_now)):
            mine = newest.filter(is_in_bucket(bucket))
            known = rows_of_bucket(storage, earlier, bucket)
            written = with_earlier_revisions(mine, [revision(known)], StandingRun()).rows
            lacked = expected.filter(is_in_bucket(bucket)).join(mine, on=HASH, how="anti")
            assert written.equals(written.sort(HASH, maintain_order=True))
            assert written.join(lacked, on=HASH, how="anti", maintain_order="left").equals(mine)
            assert written.join(mine, on=HASH, how="anti", maintain_order="left").equals(lacked)


def revision(rows: pl.DataFrame, *, is_read_alike: bool = True) -> EarlierRevision:
    return EarlierRevision(read=lambda: rows, is_read_alike=is_read_alike)


def gone() -> pl.DataFrame:
    raise CorruptionError("it is not there")


GONE = EarlierRevision(read=gone)


def rows(*values: tuple[int, int]) -> pl.DataFrame:
    """Return the run of a window whose keys (the first number) have values (the second one)."""
    halves = {"key_hi": [key for key, _ in values], "key_lo": [key for key, _ in values]}
    frame = pl.DataFrame(halves | {"row_hash": [value for _, value in values]}, schema_overrides=_NUMBERS)
    return stored_run(frame, 1).sort(HASH)


_NUMBERS = dict.fromkeys(("key_hi", "key_lo", "row_hash"), pl.UInt64)
NEWEST, THIRD, SECOND, FIRST = rows((1, 40)), rows((1, 30), (2, 31)), rows((2, 20), (3, 21)), rows((3, 10), (4, 11))
INDEX = rows((1, 30), (2, 31), (3, 21), (4, 11))


def standing(read: Callable[[], pl.DataFrame], *, is_partial: bool = False, is_merged: bool = False) -> StandingRun:
    return StandingRun(read=read, is_partial=is_partial, is_merged=is_merged)


def never_read() -> pl.DataFrame:
    raise AssertionError("it need not be read")


def values(known: pl.DataFrame) -> dict[int, int]:
    return dict(known.select("key_hi", "row_hash").iter_rows())


ALL = {1: 40, 2: 31, 3: 21, 4: 11}
INDEX_OF_NEWEST = standing(lambda: NEWEST, is_partial=True)


@pytest.mark.parametrize(
    ("earlier", "index", "expected", "is_whole"),
    [
        ([revision(THIRD), revision(SECOND), revision(FIRST)], standing(never_read, is_merged=True), ALL, True),
        ([revision(THIRD), revision(SECOND), revision(FIRST)], StandingRun(), ALL, True),
        ([revision(THIRD), revision(SECOND), revision(FIRST)], INDEX_OF_NEWEST, ALL, True),
        ([GONE, revision(SECOND), revision(FIRST)], standing(lambda: INDEX), ALL, True),
        ([GONE, revision(SECOND), revision(FIRST)], standing(lambda: INDEX, is_merged=True), ALL, True),
        ([GONE, revision(SECOND), revision(FIRST)], INDEX_OF_NEWEST, ALL | {2: 20}, False),
        ([revision(THIRD), revision(SECOND), GONE], INDEX_OF_NEWEST, {1: 40, 2: 31, 3: 21}, False),
        ([GONE, GONE, GONE], standing(gone), {1: 40}, False),
        ([GONE], StandingRun(), {1: 40}, False),
    ],
)
def test_what_earlier_revisions_read_is_from_each_snapshot_that_is_there_and_from_the_index_where_one_is_gone(
    earlier: list[EarlierRevision], index: StandingRun, expected: dict[int, int], is_whole: bool
) -> None:
    known = with_earlier_revisions(NEWEST, earlier, index)

    assert values(known.rows) == expected
    assert known.missing == (None if is_whole else "it is not there")


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (standing(lambda: INDEX), 31),
        (standing(lambda: INDEX, is_partial=True), None),
        (standing(never_read, is_merged=True), None),
        (standing(gone), None),
    ],
)
def test_values_of_a_snapshot_that_was_read_otherwise_are_known_from_a_whole_run_of_the_window_alone(
    index: StandingRun, value: int | None
) -> None:
    otherwise = THIRD.with_columns(pl.lit(None, dtype=pl.UInt64).alias("row_hash"))
    known = with_earlier_revisions(NEWEST, [revision(otherwise, is_read_alike=False)], index)

    assert values(known.rows)[2] == value
    assert known.missing is None


def test_a_first_run_takes_over_nothing() -> None:
    mine = stored_run(run(range(9), 5), 1)
    assert with_earlier_revisions(mine, [], standing(never_read)).rows is mine
