"""Hold merged runs to their inputs: each row is in them once, in key order, and every window can be left out again."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.frames import HASH
from makewhole.compute.key_index.stored_runs import STORED, stored_run
from makewhole.journal.key_index.runs import IndexedRun, IndexedTopic
from makewhole.key_index import merge
from makewhole.key_index.files import IndexFile, rows_of_keys, write_index_file
from makewhole.key_index.merge import write_merged
from makewhole.lake.storage import Storage
from tests.unit.key_index.test_files import hashes, run

pytestmark = pytest.mark.unit

TOPIC = IndexedTopic(pipeline="p", point="t")


def single(storage: Storage, window: int, rows: pl.DataFrame, bucket: str = "00") -> IndexedRun:
    folder = f"p/index/t/window={window}/bucket={bucket}"
    path = write_index_file(storage, folder, [stored_run(rows, window)])
    return IndexedRun(files={bucket: path}, rows=len(rows), revisions={window: 1}, windows=(window,))


def rows_in(storage: Storage, run: IndexedRun) -> pl.DataFrame:
    return storage.sorted_rows(run.files["00"]).between(0, None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("index")


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=1, max_size=8),
    st.integers(1, 30),
    st.sets(st.integers(1, 8)),
)
def test_a_merged_run_says_what_its_inputs_say_without_any_windows(
    folder: Path, sizes: list[tuple[int, int]], at_once: int, without: set[int]
) -> None:
    storage = Storage(root=str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "_ROWS_AT_ONCE", at_once)
        patch.setattr("makewhole.lake.sorted_parquet.ROWS_OF_A_GROUP", 7)
        inputs = [
            single(storage, window, run(range(1000 * window, 1000 * window + number), keys))
            for window, (number, keys) in enumerate(sizes, 1)
        ]
        half = write_merged(storage, TOPIC, "m", inputs[::2])
        merged = write_merged(storage, TOPIC, "m", [half, *inputs[1::2]])

    assert merged.revisions == dict.fromkeys(range(1, len(sizes) + 1), 1)
    assert merged.rows == sum(one.rows for one in inputs)
    stored = rows_in(storage, merged)
    assert stored.equals(stored.sort(*HASH, "window", maintain_order=True))
    keys = hashes(*(f"k{number}" for number in range(0, 40, 3)))

    def said(*runs: IndexedRun) -> pl.DataFrame:
        files = [
            IndexFile(path=one.files["00"], windows=tuple(at for at in one.windows if at not in without))
            for one in runs
        ]
        return rows_of_keys(storage, files, keys)

    assert said(merged).equals(said(*inputs))


def test_windows_that_do_not_count_are_left_behind(tmp_path: Path) -> None:
    storage = Storage(root=str(tmp_path))
    first, second, third = (single(storage, at, run(range(100 * at, 100 * at + 9), 5)) for at in (1, 2, 3))
    merged = write_merged(storage, TOPIC, "m", [first, second])
    again = write_merged(storage, TOPIC, "m", [replace(merged, windows=(2,)), third])

    assert (again.revisions, again.windows) == ({2: 1, 3: 1}, (2, 3))
    assert sorted(rows_in(storage, again)["window"].unique().to_list()) == [2, 3]
    assert again.rows == second.rows + third.rows


def test_runs_of_an_older_makewhole_are_merged_with_newer_ones_and_buckets_stay_apart(tmp_path: Path) -> None:
    storage = Storage(root=str(tmp_path))
    old = run(range(20), 10).drop("compared", "is_extra").select(*HASH, "place", "is_replay", "row_hash")
    path = storage.write_parquet("p/index/t/window=1/bucket=00", old)
    before = IndexedRun(files={"00": path}, rows=len(old), revisions={1: 1}, windows=(1,))
    other = single(storage, 3, run(range(300, 310), 10), bucket="01")
    merged = write_merged(storage, TOPIC, "m", [before, single(storage, 2, run(range(200, 210), 10)), other])

    assert sorted(merged.files) == ["00", "01"]
    stored = rows_in(storage, merged)
    assert dict(stored.schema) == STORED
    assert stored.filter(pl.col("window") == 1).equals(stored_run(old, 1))
    assert storage.sorted_rows(merged.files["01"]).between(0, None)["window"].unique().to_list() == [3]
