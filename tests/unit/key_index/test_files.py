"""Hold what the files of the key index answer for some keys to reading all of them whole."""

import logging
from pathlib import Path

import polars as pl
import pytest

from makewhole.compute.frames import HASH, TOPIC_KEYS
from makewhole.compute.indexed_keys.filters import build_filter
from makewhole.compute.indexed_keys.former_readings import with_reading
from makewhole.compute.indexed_keys.key_runs import build_key_run, first_and_latest_copies, first_copies
from makewhole.compute.indexed_keys.stored_runs import STORED, stored_run
from makewhole.compute.keys import with_hash
from makewhole.key_index.files import IndexFile, filter_path, maybe_known, rows_of_keys, write_index_file
from makewhole.lake.sorted_parquet import ROWS_OF_A_GROUP
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError

pytestmark = pytest.mark.unit

FOLDER = "p/index/t"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(root=str(tmp_path))


def copies(offsets: range, keys: int) -> pl.DataFrame:
    """Return records of keys `k0`, `k1`, … by turns, of which every seventh is excluded by a filter."""
    schema = {name: kind for name, kind in TOPIC_KEYS.items() if name not in HASH}
    frame = pl.DataFrame({"offset": offsets}).select(
        pl.format("k{}", pl.col("offset") % keys).alias("key"),
        pl.col("offset").cast(pl.UInt64).alias("row_hash"),
        pl.format("{}:{}", pl.col("offset") % 3, "offset").alias("place"),
        (pl.col("offset") % 3).cast(pl.Int32).alias("partition"),
        "offset",
        pl.lit(9, dtype=pl.Int64).alias("producer_id"),
        pl.lit(False).alias("is_aborted"),
        pl.when(pl.col("offset") % 7 == 0).then(pl.lit(["a->b"])).otherwise(pl.lit([])).alias("excluded_by"),
    )
    missing = {name: kind for name, kind in schema.items() if name not in frame.columns}
    frame = frame.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in missing.items())
    marks = (pl.lit(False).alias(name) for name in ("is_replay", "is_produced"))
    return with_hash(frame.select(pl.col(name).cast(kind) for name, kind in schema.items())).with_columns(*marks)


def run(offsets: range, keys: int) -> pl.DataFrame:
    return with_reading(build_key_run(copies(offsets, keys), has_versions=True), {"v": "string"}, None)


def whole(*runs: pl.DataFrame) -> pl.DataFrame:
    return pl.concat(runs, how="diagonal")


def hashes(*names: str) -> pl.DataFrame:
    return with_hash(pl.DataFrame({"key": names})).select(HASH)


def write(storage: Storage, window: int, rows: pl.DataFrame) -> IndexFile:
    path = write_index_file(storage, f"{FOLDER}/window={window}", [stored_run(rows, window)])
    return IndexFile(path=path, windows=(window,))


def test_rows_of_some_keys_are_those_of_the_whole_runs(storage: Storage) -> None:
    runs = {1: run(range(900), 300), 2: run(range(900, 1000), 50), 3: run(range(1000, 1100), 1000)}
    files = [write(storage, number, rows) for number, rows in runs.items()]
    wanted = hashes("k0", "k7", "k49", "k299", "never")

    of_keys = rows_of_keys(storage, files, wanted)

    expected = whole(*runs.values()).join(wanted, on=HASH, how="semi", maintain_order="left")
    for read in (first_copies, first_and_latest_copies):
        assert (
            read(of_keys, is_later=False)
            .sort(*HASH, maintain_order=True)
            .equals(read(expected, is_later=False).sort(*HASH, maintain_order=True))
        )
    assert maybe_known(storage, files, wanted).tolist() == [True, True, True, True, False]
    assert not maybe_known(storage, files, wanted.clear()).size
    assert rows_of_keys(storage, [], wanted).is_empty()


def test_a_file_of_several_windows_leaves_out_those_that_do_not_count(storage: Storage) -> None:
    rows = [stored_run(run(range(20), 10), 1), stored_run(run(range(20, 40), 10), 2)]
    path = write_index_file(storage, FOLDER, [pl.concat(rows).sort(*HASH, "window")])
    wanted = hashes("k3")

    def places(*windows: int) -> list[str]:
        of_keys = rows_of_keys(storage, [IndexFile(path=path, windows=windows)], wanted)
        return first_copies(of_keys, is_later=False)["place"].to_list()

    assert places(1, 2) == ["0:3", "0:33"]
    assert places(2) == ["0:33"]
    assert places() == []


def test_the_filter_of_a_file_has_each_key_once(storage: Storage) -> None:
    rows = [stored_run(run(range(number, number + 20), 10), number) for number in range(3)]
    in_order = pl.concat(rows).sort(*HASH, "window")

    path = write_index_file(storage, FOLDER, [in_order[:11], in_order[11:]])  # the fourth key is in both parts

    content = (Path(storage.root) / filter_path(path)).read_bytes()
    keys = in_order.select(HASH).unique()
    assert content.split(b"\n", 1)[1] == build_filter(keys["key_hi"].to_numpy(), keys["key_lo"].to_numpy())


def test_a_filter_that_is_gone_damaged_or_of_another_file_hides_nothing(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    file, other = write(storage, 1, run(range(20), 10)), write(storage, 2, run(range(20, 30), 100))
    place = Path(storage.uri(filter_path(file.path)))
    content = place.read_bytes()
    expected = rows_of_keys(storage, [file], hashes("k3"))
    assert len(expected) == 1

    place.write_bytes(Path(storage.uri(filter_path(other.path))).read_bytes())
    with caplog.at_level(logging.WARNING):
        assert rows_of_keys(storage, [file], hashes("k3")).equals(expected)
    assert caplog.messages == [
        f"the whole of {file.path} is read instead of its filter: it is the filter of another file"
    ]
    place.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert rows_of_keys(storage, [file], hashes("k3")).equals(expected)
    place.unlink()
    assert rows_of_keys(storage, [file], hashes("k3")).equals(expected)


def test_few_keys_cost_few_row_groups(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = 10 * ROWS_OF_A_GROUP
    file = write(storage, 1, run(range(keys), keys))
    rows = storage.sorted_rows(file.path)
    read: list[list[int]] = []
    inner = rows._file.read_row_groups

    def counted(groups: list[int], columns: list[str] | None = None) -> object:
        read.append(groups)
        return inner(groups, columns=columns)

    monkeypatch.setattr(rows._file, "read_row_groups", counted)
    chosen = rows.of_keys(hashes("k5", "k77"))

    assert len(chosen) == 2
    assert [len(groups) for groups in read] == [1, 1, 2]
    assert len(rows.of_keys(hashes("never"))) == 0
    assert read[3:] == [read[3], []]


def test_rows_of_a_range_of_hashes_are_read_and_a_file_without_rows_has_none(storage: Storage) -> None:
    keys = 3 * ROWS_OF_A_GROUP
    stored = stored_run(run(range(keys), keys), 1)
    rows = storage.sorted_rows(write_index_file(storage, FOLDER, [stored]))
    middle = 2**63

    assert [number for _, number in rows.groups] == [ROWS_OF_A_GROUP] * 3
    assert pl.concat([rows.between(0, middle), rows.between(middle, None)]).equals(stored)
    assert rows.between(0, 0).is_empty()
    nothing = storage.sorted_rows(write_index_file(storage, FOLDER, [stored.clear()]))
    assert nothing.of_keys(hashes("k1")).schema == pl.Schema(STORED)
    assert nothing.between(0, None).is_empty()


def test_a_key_costs_less_than_forty_bytes_with_its_filter(storage: Storage) -> None:
    keys = 200_000
    numbered = copies(range(keys), keys).with_columns(
        pl.col("key_lo").hash(1).alias("row_hash"), (pl.col("offset").cast(pl.Int32)).alias("sequence")
    )
    file = write(storage, 1, with_reading(build_key_run(numbered, has_versions=False), {"v": "string"}, None))

    size = sum(Path(storage.uri(path)).stat().st_size for path in (file.path, filter_path(file.path)))
    assert size / keys < 40


def test_a_file_of_the_index_that_is_gone_is_said(storage: Storage) -> None:
    file = write(storage, 1, run(range(20), 10))
    Path(storage.uri(file.path)).unlink()

    with pytest.raises(CorruptionError, match="is named by a manifest and is not there"):
        rows_of_keys(storage, [file], hashes("k3"))
