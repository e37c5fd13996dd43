"""Test that keys are found in the files of snapshots, with and without the filters that earlier askers left."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from makewhole.compute.buckets import bucket_name, split_by_bucket
from makewhole.compute.frames import HASH
from makewhole.compute.keys import with_hash
from makewhole.journey import holding_files
from makewhole.journey.holding_files import keys_held
from makewhole.key_index.files import filter_path
from makewhole.lake.storage import Storage

pytestmark = pytest.mark.unit
BUCKETS = 2


def hashed(*keys: str) -> pl.DataFrame:
    return with_hash(pl.DataFrame({"key": keys}, schema={"key": pl.String})).sort(HASH)


def write(storage: Storage, *keys: str) -> dict[str, Any]:
    """Write a snapshot of keys; return its manifest."""
    files: dict[str, list[str]] = {}
    for number, part in split_by_bucket(with_hash(pl.DataFrame({"key": keys})), BUCKETS):
        bucket, frame = bucket_name(number, BUCKETS), pl.from_arrow(part)
        assert isinstance(frame, pl.DataFrame)
        files[bucket] = [storage.write_parquet(f"p/bucket={bucket}", frame)]
    return {"files": files}


def paths(manifest: dict[str, Any]) -> list[str]:
    return [path for listed in manifest["files"].values() for path in listed]


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    monkeypatch.setattr(holding_files, "_ROWS_LEAST", 10)
    return Storage(root=str(tmp_path))


def test_the_second_who_asks_reads_filters_and_has_the_same_answer(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (write(storage, *(f"{name}{at}" for at in range(100))) for name in "ab")
    wanted = hashed("a1", "a50", "b7", "c1", "c2", "c3")
    assert keys_held(storage, [first, second], wanted) == {"a1", "a50", "b7"}
    assert all(storage.read_if_exists(filter_path(path)) for path in [*paths(first), *paths(second)])
    assert keys_held(storage, [first], wanted) == {"a1", "a50"}
    monkeypatch.setattr(Storage, "read_parquet", lambda *_: pytest.fail("a file was read"))
    assert keys_held(storage, [first, second], hashed("c1", "c2", "c3")) == set()


def test_a_filter_that_is_damaged_or_of_another_file_is_passed_over(storage: Storage) -> None:
    manifest = write(storage, *(f"a{at}" for at in range(100)))
    everything = hashed(*(f"a{at}" for at in range(100)), "c1")
    keys_held(storage, [manifest], everything)
    for path in paths(manifest):
        name = filter_path(path)
        content = bytearray(storage.read_bytes(name))
        content[-1] ^= 255
        storage.write_bytes(name, bytes(content))
    assert keys_held(storage, [manifest], everything) == {f"a{at}" for at in range(100)}
    first, other = paths(manifest)
    storage.remove(filter_path(first))
    storage.remove(filter_path(other))
    keys_held(storage, [manifest], everything)
    storage.write_bytes(filter_path(first), storage.read_bytes(filter_path(other)))
    assert keys_held(storage, [manifest], everything) == {f"a{at}" for at in range(100)}


def test_small_files_have_no_filters(storage: Storage) -> None:
    manifest = write(storage, "a1", "a2")
    assert keys_held(storage, [manifest], hashed("a1", "c1")) == {"a1"}
    assert not any(storage.read_if_exists(filter_path(path)) for path in paths(manifest))


def test_where_nothing_may_be_written_files_are_read_each_time(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise PermissionError("read-only")

    manifest = write(storage, *(f"a{at}" for at in range(100)))
    monkeypatch.setattr(Storage, "write_once", refuse)
    for _ in range(2):
        assert keys_held(storage, [manifest], hashed("a1", "c1")) == {"a1"}
