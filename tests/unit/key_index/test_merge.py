"""Hold merged runs to their inputs: each row is in them once, in key order, and every window can be left out again."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.buckets import bucket_name, is_in_bucket, named_bucket, number_of_buckets
from makewhole.compute.frames import HASH
from makewhole.compute.indexed_keys.stored_runs import STORED, stored_run
from makewhole.journal.key_index.runs import IndexedRun, IndexedTopic
from makewhole.key_index.files import IndexFile, rows_of_keys, write_index_file
from makewhole.key_index.merge import write_merged
from makewhole.lake.storage import Storage
from tests.unit.key_index.test_files import hashes, run
from tests.world.examples import seeds

pytestmark = pytest.mark.unit

TOPIC = IndexedTopic(pipeline="p", point="t")


def single(storage: Storage, window: int, rows: pl.DataFrame, buckets: int = 1) -> IndexedRun:
    files = {}
    for number in range(buckets):
        name = bucket_name(number, buckets)
        part = stored_run(rows, window).filter(is_in_bucket(name))
        if len(part):
            files[name] = write_index_file(storage, f"p/index/t/window={window}/bucket={name}", [part])
    return IndexedRun(files=files, rows=len(rows), revisions={window: 1}, windows=(window,))


def rows_in(storage: Storage, run: IndexedRun) -> pl.DataFrame:
    """Return the rows of all files; each is in the file of its bucket, in key order."""
    frames = [pl.DataFrame(schema=STORED)]
    for name, path in sorted(run.files.items()):
        rows = storage.sorted_rows(path).between(0, None)
        assert rows.equals(rows.filter(is_in_bucket(name)).sort(*HASH, "window", maintain_order=True))
        frames.append(rows)
    return pl.concat(frames)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("index")


@settings(max_examples=len(seeds(40)))
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40), st.sampled_from([1, 2, 16])), min_size=1, max_size=8),
    st.integers(1, 30),
    st.sets(st.integers(1, 8)),
    st.integers(5, 200),
)
def test_a_merged_run_says_what_its_inputs_say_without_any_windows(
    folder: Path, sizes: list[tuple[int, int, int]], at_once: int, without: set[int], of_a_bucket: int
) -> None:
    """Takes long: up to eight runs are written and merged, for each drawn case."""
    storage = Storage(root=str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("makewhole.key_index.files._ROWS_AT_ONCE", at_once)
        patch.setattr("makewhole.compute.buckets._ROWS_OF_A_BUCKET", of_a_bucket)
        patch.setattr("makewhole.lake.sorted_parquet.ROWS_OF_A_GROUP", 7)
        inputs = [
            single(storage, window, run(range(1000 * window, 1000 * window + number), keys), buckets)
            for window, (number, keys, buckets) in enumerate(sizes, 1)
        ]
        half = write_merged(storage, TOPIC, "m", inputs[::2])
        merged = write_merged(storage, TOPIC, "m", [half, *inputs[1::2]])
        asked_for = number_of_buckets(merged.rows)

    assert merged.revisions == dict.fromkeys(range(1, len(sizes) + 1), 1)
    assert merged.rows == sum(merged_run.rows for merged_run in inputs)
    assert len(rows_in(storage, merged)) == merged.rows
    assert {named_bucket(name)[1] for name in merged.files} <= {asked_for}
    keys = hashes(*(f"k{number}" for number in range(0, 40, 3)))

    def said(*runs: IndexedRun) -> pl.DataFrame:
        files = [
            IndexFile(path=path, windows=tuple(at for at in merged_run.windows if at not in without))
            for merged_run in runs
            for path in merged_run.files.values()
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
