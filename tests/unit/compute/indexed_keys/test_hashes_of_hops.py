"""Test the hashes that a run of the key index has for hops which compare columns of their own."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from makewhole.compute.frames import HASH, TOPIC_KEYS
from makewhole.compute.indexed_keys.former_readings import as_read_now, with_hashes_of_hops, with_reading
from makewhole.compute.indexed_keys.key_runs import build_key_run
from makewhole.compute.indexed_keys.stored_runs import stored_run
from makewhole.compute.keys import with_hash
from makewhole.compute.normalise import hashed_by, with_known_hashes
from makewhole.key_index.files import IndexFile, rows_of_keys, write_index_file
from makewhole.lake.storage import Storage

pytestmark = pytest.mark.unit

ALL, AMOUNT, REGION = {"amount": "int", "region": "string"}, {"amount": "int"}, {"region": "string"}
KEYS = with_hash(pl.DataFrame({"key": ["a", "b"]})).select(HASH)
Hashes = list[tuple[int | None, int | None]]


def copies(*values: tuple[str, str, int]) -> pl.DataFrame:
    """Return copies of a topic as a snapshot holds them: key, amount, version, all of one region."""
    schema = {name: kind for name, kind in TOPIC_KEYS.items() if name not in HASH}
    filled = [
        {"key": key, "partition": 0, "offset": at, "place": f"0:{at}", "version": version}
        | {"is_tombstone": False, "is_aborted": False}
        for at, (key, _, version) in enumerate(values)
    ]
    frame = with_hash(pl.DataFrame(filled, schema=schema)).with_columns(
        pl.Series("c:amount", [amount for _, amount, _ in values]), pl.lit("EU").alias("c:region")
    )
    return with_known_hashes(frame.drop("row_hash"), ["c:amount", "c:region"])


def stored(frame: pl.DataFrame, *, has_versions: bool) -> pl.DataFrame:
    marked = frame.with_columns(pl.lit(False).alias("is_replay"))
    return stored_run(build_key_run(marked, has_versions=has_versions), 0)


def file_of(storage: Storage, window: int, frame: pl.DataFrame, *sets: dict[str, str], has_versions: bool) -> IndexFile:
    run = stored(frame, has_versions=has_versions)
    others = [
        (columns, stored(hashed_by(frame, columns, is_topic=True), has_versions=has_versions)) for columns in sets
    ]
    noted = with_reading(with_hashes_of_hops(run, others), ALL, "$.v").with_columns(window=pl.lit(window, pl.Int32))
    return IndexFile(path=write_index_file(storage, "p/index/t", [noted]), windows=(window,))


def read(storage: Storage, files: Sequence[IndexFile], compare: dict[str, str], *, is_upsert: bool) -> Hashes:
    rows = as_read_now(rows_of_keys(storage, files, KEYS), compare, is_upsert=is_upsert)
    assert not {"compared", "of_hops"} & {*rows.columns}
    return rows.select("row_hash", "last_row_hash").rows()


@pytest.mark.parametrize("has_versions", [False, True])
def test_a_hop_reads_the_hash_of_its_own_columns(tmp_path: Path, has_versions: bool) -> None:
    storage, frame = Storage(root=str(tmp_path)), copies(("a", "1", 1), ("b", "2", 1), ("b", "3", 2))
    file = file_of(storage, 0, frame, AMOUNT, REGION, has_versions=has_versions)
    of_sets = {"all": ALL, "amount": AMOUNT, "region": REGION}
    read_back = {
        name: read(storage, [file], named_columns, is_upsert=has_versions) for name, named_columns in of_sets.items()
    }
    for name, columns in of_sets.items():
        first, second, last = hashed_by(frame, columns, is_topic=True)["row_hash"].to_list()
        expected = [(first, first), (second, last)] if has_versions else [(first, None), (second, None)]
        assert sorted(read_back[name], key=repr) == sorted(expected, key=repr), name  # in the order of the keys' hashes
    assert read_back["region"][0][0] == read_back["region"][1][0]
    assert read_back["all"] != read_back["amount"] != read_back["region"]


def test_what_a_run_does_not_have_for_a_hop_is_not_known(tmp_path: Path) -> None:
    """A run with hashes of hops beside one without, and a set that neither has."""
    storage, frame = Storage(root=str(tmp_path)), copies(("a", "1", 1))
    files = [
        file_of(storage, 0, frame, has_versions=False),
        file_of(storage, 1, frame, AMOUNT, has_versions=False),
    ]
    [whole] = frame["row_hash"].to_list()
    [amount] = hashed_by(frame, AMOUNT, is_topic=True)["row_hash"].to_list()
    assert read(storage, files, ALL, is_upsert=False) == [(whole, None), (whole, None)]
    assert read(storage, files, AMOUNT, is_upsert=False) == [(None, None), (amount, None)]
    assert read(storage, files, REGION, is_upsert=False) == [(None, None), (None, None)]
    assert read(storage, files, {"region": "string", "amount": "int"}, is_upsert=False) == [(None, None)] * 2


def test_copies_that_lack_a_column_have_no_known_value() -> None:
    frame = copies(("a", "1", 1))
    assert hashed_by(frame, {"number": "int"}, is_topic=True)["row_hash"].to_list() == [None]
    placeholder = frame.with_columns(pl.lit("__debezium_unavailable_value").alias("c:region"))
    [of_record] = hashed_by(placeholder, REGION, is_topic=True)["row_hash"].to_list()
    [of_row] = hashed_by(placeholder, REGION, is_topic=False)["row_hash"].to_list()
    [other] = hashed_by(placeholder, AMOUNT, is_topic=True)["row_hash"].to_list()
    assert of_record is None
    assert None not in (of_row, other)
