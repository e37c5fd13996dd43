"""Test that the rows of a task come back as they were, whatever columns hold one value and from when on they do not."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from makewhole.compute.buckets import named_bucket
from makewhole.compute.frames import UNDECODABLE
from makewhole.lake.storage import Storage
from makewhole_spark.snapshot import read_piece
from makewhole_spark.snapshot.read_piece import BucketWriter

pytestmark = pytest.mark.unit

BUCKETS = 2
NO_BAD = pl.DataFrame(schema=UNDECODABLE)
SCHEMA: dict[str, Any] = {
    "key": pl.String,
    "key_hi": pl.UInt64,
    "key_lo": pl.UInt64,
    "row_hash": pl.UInt64,
    "version": pl.Decimal(38, 9),
    "excluded_by": pl.List(pl.String),
    "offset": pl.Int64,
    "leader_epoch": pl.Int32,
    "producer_id": pl.Int64,
}
SAME = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["k", "l"]),
        "row_hash": st.sampled_from([None, 0, 1]),
        "version": st.sampled_from([None, 1]),
        "excluded_by": st.sampled_from([None, [], ["hop"]]),
        "leader_epoch": st.sampled_from([3, 4]),
        "producer_id": st.sampled_from([-1, 7]),
    }
)
"""The values that all rows of a frame have alike; they differ by their offsets."""
FRAMES = st.lists(st.tuples(SAME, st.integers(0, 5)), min_size=1, max_size=6)
NOTHING: dict[str, object] = {
    "key": "k",
    "row_hash": None,
    "version": None,
    "excluded_by": None,
    "leader_epoch": 3,
    "producer_id": 7,
}


def frames_of(parts: list[tuple[dict[str, object], int]]) -> list[pl.DataFrame]:
    frames, at = [], 0
    for same, number in parts:
        rows = [{**same, "key_hi": at + row, "key_lo": 1, "offset": at + row} for row in range(number)]
        frames.append(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
        at += number
    return frames


def written(storage: Storage, frames: list[pl.DataFrame]) -> dict[int, list[str]]:
    """Write the frames; return the files by the number of their bucket."""
    writer = BucketWriter(cast(Any, SimpleNamespace(storage=storage)), "p/orders", BUCKETS)
    for frame in frames:
        writer.add((frame, NO_BAD))
    by_bucket: dict[int, list[str]] = {}
    done = writer.finish()
    assert done.rows == sum(map(len, frames))
    assert {path for path, _ in done.sha256} == {path for _, path in done.files}
    for bucket, path in done.files:
        by_bucket.setdefault(named_bucket(bucket)[0], []).append(path)
    return by_bucket


@given(parts=FRAMES)
@example(parts=[(NOTHING, 3), ({**NOTHING, "excluded_by": []}, 3), (NOTHING, 2)])
@example(parts=[({**NOTHING, "row_hash": 0}, 3), (NOTHING, 3)])
@example(parts=[(NOTHING, 1), (NOTHING, 5)])
def test_rows_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[dict[str, object], int]]
) -> None:
    storage = Storage(root=str(tmp_path_factory.mktemp("storage")))
    frames = frames_of(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_piece, "_ROWS_OF_CONSTANTS", 2)
        files = written(storage, frames)
    for bucket in range(BUCKETS):
        rows = pl.concat(frames).filter(pl.col("key_hi") % BUCKETS == bucket)
        read = storage.read_parquet(files.get(bucket, []))
        assert len(rows) == 0 if read is None else read.equals(rows)
        assert len(files.get(bucket, [])) <= len(SCHEMA)


def test_a_column_of_one_value_is_in_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_piece, "_ROWS_OF_CONSTANTS", 2)
    storage = Storage(root=str(tmp_path))
    frames = frames_of([(NOTHING, 4), (NOTHING, 4), ({**NOTHING, "leader_epoch": 4}, 4), (NOTHING, 4)])

    files = written(storage, frames)

    first, second = files[0]
    kept = ["key_hi", "key_lo", "offset"]
    assert [list(_in_rows(storage, path)) for path in (first, second)] == [kept, [*kept, "leader_epoch"]]
    assert list(storage.columns(first)) == list(SCHEMA)
    read = storage.read_parquet([first, second], ["leader_epoch"])
    assert read is not None
    assert read["leader_epoch"].to_list() == [3, 3, 3, 3, 4, 4, 3, 3]


def test_few_rows_are_written_as_they_are(tmp_path: Path) -> None:
    """Few rows say nothing of those that follow."""
    storage = Storage(root=str(tmp_path))
    files = written(storage, frames_of([(NOTHING, 4), ({**NOTHING, "leader_epoch": 4}, 4)]))
    assert [list(_in_rows(storage, path)) for path in files[0]] == [list(SCHEMA)]


def test_a_column_that_is_never_null_may_be_no_constant_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_piece, "_ROWS_OF_CONSTANTS", 2)
    with pytest.raises(pa.ArrowInvalid, match="'key' is declared non-nullable"):
        written(Storage(root=str(tmp_path)), frames_of([({**NOTHING, "key": None}, 4)]))


def _in_rows(storage: Storage, path: str) -> list[str]:
    return list(pl.read_parquet_schema(Path(storage.root) / path))
