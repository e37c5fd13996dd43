"""Test the storage of snapshots, by folder and by URI."""

import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from makewhole.compensation.freezing.payload_file import write_payloads
from makewhole.kafka.log.archive import SegmentWriter
from makewhole.lake.storage import Storage
from makewhole.model.errors import ConfigurationError, CorruptionError
from makewhole.model.window import PartitionRange

pytestmark = pytest.mark.unit

FRAME = pl.DataFrame(
    {"key": ["a", None, "ü"], "hops": [["x"], [], []], "n": [1, 2, 2**63]},
    schema={"key": pl.String, "hops": pl.List(pl.String), "n": pl.UInt64},
)


@pytest.fixture(params=["folder", "uri"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return Storage(root=str(tmp_path) if request.param == "folder" else tmp_path.as_uri())


def test_frames_come_back_as_they_were_in_the_order_of_the_files(storage: Storage) -> None:
    first, second = (
        storage.write_parquet("p/keys/bucket=00", FRAME),
        storage.write_parquet("p/keys/bucket=00", FRAME[:1]),
    )

    read = storage.read_parquet([second, first])

    assert first != second
    assert read is not None and read.equals(pl.concat([FRAME[:1], FRAME]))
    assert read.schema == FRAME.schema
    assert storage.read_parquet([]) is None


def test_only_the_wanted_columns_are_read_and_folder_names_are_no_columns(storage: Storage) -> None:
    path = storage.write_parquet("p/window=1/bucket=03", FRAME)

    some, whole = storage.read_parquet([path], ["key"]), storage.read_parquet([path])

    assert some is not None and some.columns == ["key"]
    assert whole is not None and whole.columns == FRAME.columns


def test_files_are_read_in_batches_of_at_most_so_many_rows_in_their_order(storage: Storage) -> None:
    whole = storage.write_parquet("p/findings", pl.concat([FRAME] * 3))
    with storage.growing_parquet("p/findings") as growing:
        for at in range(len(FRAME)):
            growing.append(FRAME[at : at + 1])

    batches = list(storage.parquet_batches([whole, growing.path], ["n", "key"], rows=2))

    assert {batch.shape for batch in batches} <= {(2, 2), (1, 2)}
    assert pl.concat(batches).equals(pl.concat([FRAME] * 4).select("n", "key"))
    assert list(storage.parquet_batches([], ["key"])) == []
    with pytest.raises(CorruptionError, match="is named by a manifest and is not there"):
        list(storage.parquet_batches(["p/gone.parquet"], ["key"]))


def test_a_file_grows_by_frames_and_is_read_as_one(storage: Storage) -> None:
    with storage.growing_parquet("p/keys/bucket=01") as growing:
        for at in range(len(FRAME)):
            growing.append(FRAME[at : at + 1])

    read = storage.read_parquet([growing.path])

    assert read is not None and read.equals(FRAME) and read.schema == FRAME.schema


def test_a_null_where_none_can_be_is_refused_and_never_written(storage: Storage) -> None:
    growing = storage.growing_parquet("p/keys/bucket=01", {"key"})
    growing.append(FRAME.filter(pl.col("key").is_not_null()))

    with pytest.raises(pa.ArrowInvalid, match="null"):
        growing.append(FRAME.with_columns(pl.lit(None, dtype=pl.String).alias("key")))


COPIES = pl.DataFrame(
    {"key": ["a", "b"], "key_hi": [1, 2], "version": [None, 3], "partition": [4, 0], "offset": [5, 2**40]},
    schema_overrides={"version": pl.Int64},
)


def test_the_place_of_a_topics_copies_is_made_of_partition_and_offset(storage: Storage) -> None:
    path = storage.write_parquet("p/flights", COPIES)

    whole, some, other = (storage.read_parquet([path], wanted) for wanted in (None, ["place", "key"], ["offset"]))

    assert whole is not None and whole.columns == ["key", "key_hi", "version", "place", "partition", "offset"]
    assert whole["place"].to_list() == ["4:5", "0:1099511627776"]
    assert some is not None and some.rows() == [("4:5", "a"), ("0:1099511627776", "b")]
    assert some.columns == ["place", "key"]
    assert other is not None and other.columns == ["offset"]


def test_a_place_that_a_file_holds_is_taken_as_it_is(storage: Storage) -> None:
    held = COPIES.with_columns(pl.Series("place", ["(0,1)", None]))
    path = storage.write_parquet("p/warehouse", held)

    whole, some = storage.read_parquet([path]), storage.read_parquet([path], ["place"])

    assert whole is not None and whole.equals(held)
    assert some is not None and some["place"].to_list() == ["(0,1)", None]


def test_a_file_that_a_manifest_names_and_is_gone_is_corruption(storage: Storage) -> None:
    with pytest.raises(CorruptionError, match="is named by a manifest and is not there; restore it, or run the window"):
        storage.read_parquet(["p/none.parquet"])


def test_small_files_come_back_whole(storage: Storage) -> None:
    uri = storage.write_bytes("p/certificates/1.json", b"{}\x00")

    assert storage.read_bytes("p/certificates/1.json") == b"{}\x00"
    assert uri == storage.uri("p/certificates/1.json")


def test_a_storage_that_is_not_set_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAKEWHOLE_STORAGE", raising=False)

    with pytest.raises(ConfigurationError, match=r"MAKEWHOLE_STORAGE: is not set[.] Set it to a folder or a URI"):
        Storage.from_environment()


def test_a_file_of_frames_is_hashed_while_it_is_written(storage: Storage) -> None:
    with storage.growing_parquet("p/keys/bucket=01") as growing:
        for at in range(len(FRAME)):
            growing.append(FRAME[at : at + 1])

    content = storage.read_bytes(growing.path)

    assert growing.sha256 == hashlib.sha256(content).hexdigest() == storage.sha256(growing.path)
    assert content.startswith(b"PAR1") and content.endswith(b"PAR1")


def test_what_is_written_once_stays_and_no_piece_of_it_is_left(storage: Storage) -> None:
    first = storage.write_once("p/certificates/000001.json", b"one")

    assert storage.write_once("p/certificates/000001.json", b"one") == first
    with pytest.raises(CorruptionError, match=r"000001\.json is there with another content; it was left as it is"):
        storage.write_once("p/certificates/000001.json", b"other")
    assert storage.read_bytes("p/certificates/000001.json") == b"one"
    assert storage.names("p/certificates") == ["000001.json"]
    assert storage.names("p/nothing") == []
    assert storage.read_if_exists("p/certificates/000002.json") is None


def test_wanted_rows_are_read_with_their_place(tmp_path: Path) -> None:
    storage = Storage(root=str(tmp_path))
    parts = [pl.DataFrame({"key_hi": [at], "partition": [0], "offset": [at]}) for at in range(6)]
    with storage.growing_parquet("keys") as growing:
        for part in parts[:4]:
            growing.append(part)
    paths = [growing.path, storage.write_parquet("keys", pl.concat(parts[4:]))]

    rows = storage.read_rows(paths, np.array([False, True, False, False, False, True]))
    assert rows is not None
    assert rows.rows(named=True) == [
        {"key_hi": 1, "partition": 0, "offset": 1, "place": "0:1"},
        {"key_hi": 5, "partition": 0, "offset": 5, "place": "0:5"},
    ]
    none = storage.read_rows(paths, np.zeros(6, dtype=np.bool_))
    assert none is not None
    assert none.is_empty() and none.columns == rows.columns
    assert storage.read_rows([], np.zeros(0, dtype=np.bool_)) is None


@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("rows_of_a_group", [100, 5_000])
def test_marked_rows_are_those_of_the_whole_files(tmp_path: Path, share: float, rows_of_a_group: int) -> None:
    storage = Storage(root=str(tmp_path))
    number = 7_000
    whole = pl.DataFrame(
        {
            "key": [f"a key that is long enough {at}" for at in range(number)],
            "key_hi": pl.Series(range(number), dtype=pl.UInt64),
            "time": pl.Series(range(number), dtype=pl.Datetime("us", "UTC")),
            "version": pl.Series([None] * number, dtype=pl.Int64),
            "excluded_by": [[] if at % 3 else ["a→b", "a→c"] for at in range(number)],
            "partition": pl.Series([at % 2 for at in range(number)], dtype=pl.Int32),
            "offset": pl.Series(range(number), dtype=pl.Int64),
            "c:state": ["NEW" if at % 5 else None for at in range(number)],
        }
    )
    paths = []
    for part in (whole[:4_000], whole[4_000:]):
        with storage.growing_parquet("keys", never_null={"key"}) as growing:
            for group in part.iter_slices(rows_of_a_group):
                growing.append(group)
        paths.append(growing.path)
    marks = np.random.default_rng(1).random(number) < share

    rows = storage.read_rows(paths, marks)

    expected = storage.read_parquet(paths)
    assert rows is not None and expected is not None
    assert rows.schema == expected.schema
    assert rows.equals(expected.filter(pl.Series(marks)))


def test_rows_are_counted_by_the_footers_of_files(tmp_path: Path) -> None:
    storage = Storage(root=str(tmp_path))
    paths = [storage.write_parquet("keys", pl.DataFrame({"key": list(names)})) for names in ("ab", "", "cde")]

    assert storage.count_rows(paths) == 5
    assert storage.count_rows([]) == 0
    with pytest.raises(CorruptionError, match="is named by a manifest and is not there"):
        storage.count_rows([*paths, "keys/gone.parquet"])


def test_marks_for_other_rows_are_refused(tmp_path: Path) -> None:
    storage = Storage(root=str(tmp_path))
    path = storage.write_parquet("keys", pl.DataFrame({"key": ["a", "b"]}))
    with pytest.raises(CorruptionError, match="2 rows are in the files of a snapshot, 3 were there before"):
        storage.read_rows([path], np.ones(3, dtype=np.bool_))


def test_files_show_by_their_footers_whether_a_time_may_be_before_a_moment(tmp_path: Path) -> None:
    storage, moment = Storage(root=str(tmp_path)), datetime(2025, 3, 2, tzinfo=UTC)
    kind = pl.Datetime("us", "UTC")

    def written(*times: datetime | None) -> str:
        columns = {"excluded_by": [["a", "b"]] * len(times), "time": times}
        return storage.write_parquet(
            "t", pl.DataFrame(columns, schema={"excluded_by": pl.List(pl.String), "time": kind})
        )

    at, before = written(moment, moment), written(moment, moment - timedelta(microseconds=1))
    undated, nothing = written(moment, None), written()
    pq.write_table(pq.read_table(tmp_path / at), tmp_path / "plain.parquet", write_statistics=False)

    assert not storage.may_be_before([at, nothing], "time", moment)
    assert storage.may_be_before([at, before], "time", moment)
    assert storage.may_be_before([undated], "time", moment)
    assert storage.may_be_before(["plain.parquet"], "time", moment)
    assert not storage.may_be_before([], "time", moment)


def modes(folder: Path) -> set[tuple[bool, str]]:
    """Return whether each thing below a folder is one, and its mode."""
    return {(path.is_dir(), oct(path.stat().st_mode & 0o777)) for path in folder.rglob("*")}


PRIVATE = {(True, "0o700"), (False, "0o600")}


def test_what_is_written_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        storage = Storage(root=str(tmp_path / "deep" / "storage"))
        storage.write_parquet("p/keys/bucket=00", FRAME)
        storage.write_bytes("p/a.filter", b"x")
        storage.write_once("p/certificates/000001.json", b"{}")
        with storage.packed_parquet("p/packed.parquet") as packed:
            packed.append(FRAME)
        with storage.sorted_parquet("p/index") as ordered:
            ordered.append(FRAME.select(pl.col("n").alias("key_hi")))
        with storage.parquet_instead("p/packed.parquet") as instead:
            instead.append(FRAME)
        storage.put_in_place(instead.path, "p/packed.parquet")
        writer = SegmentWriter(
            f"{storage.root}/p/archive", PartitionRange(topic="t", topic_id="i", partition=0, lo=0, hi=1)
        )
        writer.write(0, b"batch")
        writer.finish((), ())
        write_payloads(f"{storage.root}/p/plan/payloads", [])
    finally:
        os.umask(before)
    assert modes(tmp_path) == PRIVATE
    assert len(storage.files_below("p")) == 8


def test_a_folder_that_is_there_keeps_its_mode_and_a_published_one_is_for_others(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        (tmp_path / "old").mkdir(mode=0o755)
        (tmp_path / "old" / "known").write_bytes(b"")
        Storage(root=str(tmp_path)).write_bytes("old/known", b"x")
        Storage(root=str(tmp_path / "old"), is_shared=True).write_once("everyone/one", b"x")
    finally:
        os.umask(before)
    got = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.rglob("*")}
    assert got == {"old": "0o755", "known": "0o600", "everyone": "0o755", "one": "0o644"}
