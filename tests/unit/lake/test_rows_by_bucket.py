"""Test rows about keys by bucket: a few in memory, many in files, and the same of each bucket either way."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from makewhole.compute.buckets import bucket_name
from makewhole.compute.frames import REPLAYS
from makewhole.lake import rows_by_bucket
from makewhole.lake.rows_by_bucket import BucketRows, RowsByBucket, spread_rows
from makewhole.lake.storage import Storage

pytestmark = pytest.mark.unit

ROWS = pl.DataFrame(
    [
        (f"plan{n % 3}", n, 2**64 - 1 - n, None if n % 5 else n, None if n % 5 else n * 10, n % 2 == 0)
        for n in range(23)
    ],
    schema=REPLAYS,
    orient="row",
)


def spread(folder: Path, rows: pl.DataFrame = ROWS, *, piece: int = 4) -> RowsByBucket:
    frames = (rows[at : at + piece] for at in range(0, len(rows), piece))
    return spread_rows(Storage(root=str(folder)), "p/replays", frames, REPLAYS, 4)


@pytest.fixture(params=[10_000, 0], ids=["in memory", "in files"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(rows_by_bucket, "_FEW", request.param)
    if not request.param:
        monkeypatch.setattr(rows_by_bucket, "_ROWS_TOGETHER", 10)
    return bool(request.param)


def test_each_bucket_has_its_rows_in_their_order(few: bool, tmp_path: Path) -> None:
    buckets, storage = spread(tmp_path), Storage(root=str(tmp_path))

    for bucket in range(4):
        rows = buckets.in_bucket(bucket_name(bucket, 4))
        assert rows.read(storage).equals(ROWS.filter(pl.col("key_hi") % 4 == bucket))
        assert rows.read(storage).schema == REPLAYS
        assert rows.number == len(rows.read(storage))
    assert buckets.number == 23
    assert sorted(buckets.parts) == [bucket_name(bucket, 4) for bucket in range(4)]
    # Rows beyond the few are nowhere but in files: two of ten or more rows, and one of the rest.
    files = [path for part in buckets.parts.values() for path in part.files]
    assert len(files) == (0 if few else 8)
    assert sum(len(part.few) for part in buckets.parts.values()) == (23 if few else 0)


def test_buckets_of_other_numbers_have_the_rows_that_may_be_in_them(few: bool, tmp_path: Path) -> None:
    buckets, storage = spread(tmp_path), Storage(root=str(tmp_path))

    assert sorted(buckets.in_bucket(bucket_name(1, 2)).read(storage)["key_hi"]) == list(range(1, 23, 2))
    assert sorted(buckets.in_bucket(bucket_name(6, 8)).read(storage)["key_hi"]) == list(range(2, 23, 4))


def test_rows_of_some_keys_are_read_from_all_buckets(few: bool, tmp_path: Path) -> None:
    whole, storage = spread(tmp_path).whole(), Storage(root=str(tmp_path))
    wanted = ROWS.filter(pl.col("key_hi").is_in([3, 8, 21])).select("key_hi", "key_lo")

    assert whole.read_keys(storage, wanted).sort("key_hi").equals(ROWS.filter(pl.col("key_hi").is_in([3, 8, 21])))
    assert sorted(whole.read_hashes(storage)["key_hi"]) == list(range(23))


def test_no_rows_are_no_files(few: bool, tmp_path: Path) -> None:
    buckets, storage = spread(tmp_path, ROWS.clear()), Storage(root=str(tmp_path))

    assert (buckets.number, dict(buckets.parts)) == (0, {})
    for rows in (buckets.in_bucket(bucket_name(1, 4)), buckets.whole(), BucketRows.none(REPLAYS)):
        assert rows.read(storage).equals(ROWS.clear())
        assert rows.read_keys(storage, ROWS.select("key_hi", "key_lo")).equals(ROWS.clear())
    assert list(tmp_path.iterdir()) == []


def test_no_more_rows_are_gathered_than_are_written_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rows_by_bucket, "_FEW", 0)
    monkeypatch.setattr(rows_by_bucket, "_ROWS_TOGETHER", 10)
    written: list[int] = []
    given: list[int] = []

    def frames() -> Iterator[pl.DataFrame]:
        for at in range(0, 23, 4):
            given.append(len(ROWS[at : at + 4]))
            yield ROWS[at : at + 4]

    by_bucket = rows_by_bucket._by_bucket

    def noting(rows: pl.DataFrame, buckets: int) -> dict[str, pl.DataFrame]:
        written.append(len(rows))
        assert sum(written) == sum(given), "more was read before this was written"
        return by_bucket(rows, buckets)

    monkeypatch.setattr(rows_by_bucket, "_by_bucket", noting)
    spread_rows(Storage(root=str(tmp_path)), "p", frames(), REPLAYS, 4)

    assert written == [12, 11]
