"""Test that a run takes over the keys that it lacks from the run before it, and none that it has itself."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.buckets import bucket_name, is_in_bucket
from makewhole.compute.frames import HASH
from makewhole.compute.indexed_keys.stored_runs import stored_run
from makewhole.key_index.files import IndexFile
from makewhole.key_index.merge import write_merged
from makewhole.key_index.window_run import with_keys_of_earlier_revisions
from makewhole.lake.storage import Storage
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
            written = with_keys_of_earlier_revisions(storage, mine, earlier, bucket)
            lacked = expected.filter(is_in_bucket(bucket)).join(mine, on=HASH, how="anti")
            assert written.equals(written.sort(HASH, maintain_order=True))
            assert written.join(lacked, on=HASH, how="anti", maintain_order="left").equals(mine)
            assert written.join(mine, on=HASH, how="anti", maintain_order="left").equals(lacked)


def test_a_first_run_takes_over_nothing(tmp_path: Path) -> None:
    rows = stored_run(run(range(9), 5), 1)
    assert with_keys_of_earlier_revisions(Storage(root=str(tmp_path)), rows, [], "00of1") is rows
