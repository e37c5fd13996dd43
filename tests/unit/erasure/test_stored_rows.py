"""Test which rows of a key are found in the files of a pipeline, and where its records are."""

from pathlib import Path

import polars as pl
import pytest

from makewhole.compute.frames import HASH, UNDECODABLE
from makewhole.compute.keys import hash_hex, with_hash
from makewhole.erasure.stored_rows import search_files
from makewhole.journal.retention.erasures import ErasedKey
from makewhole.lake.storage import Storage

pytestmark = pytest.mark.unit

FOLDER = "p/window=1/revision=1/orders"


def _hashed(*keys: str) -> pl.DataFrame:
    return with_hash(pl.DataFrame({"key": keys}, schema={"key": pl.String}))


def test_records_that_could_not_be_read_are_found_where_their_key_is_known(tmp_path: Path) -> None:
    """They are in the archive as others are: of two lines that contradict each other, or by their Kafka key."""
    storage = Storage(root=str(tmp_path))
    rows = [("0:5", "differ", "A"), ("1:12", "no array", None), ("2:30", "no JSON", "A"), ("0:6", "differ", "B")]
    bad = storage.write_parquet(f"{FOLDER}/undecodable", pl.DataFrame(rows, schema=UNDECODABLE, orient="row"))
    copies = _hashed("A", "B").with_columns(partition=pl.lit(0, pl.Int32), offset=pl.lit(7, pl.Int64))
    good = storage.write_parquet(f"{FOLDER}/keys", copies.select("key", *HASH, "partition", "offset"))
    of_table = pl.DataFrame([("(0,1)", "key is null", None), ("(0,2)", "?", "A")], schema=UNDECODABLE, orient="row")
    table = storage.write_parquet("p/window=1/revision=1/store/undecodable", of_table)

    key = ErasedKey(pipeline="p", text="A", hash=_hashed("A").select(hash_hex()).item())
    by_path = {each.path: each for each in search_files(storage, storage.files_below("p"), key).rows}
    assert {path: (each.rows, each.offsets) for path, each in by_path.items()} == {
        good: (1, frozenset({(0, 7)})),
        bad: (2, frozenset({(0, 5), (2, 30)})),
        table: (1, frozenset()),
    }
