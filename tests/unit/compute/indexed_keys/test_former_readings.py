"""Test what runs of the key index say once the pipeline's file reads their point otherwise."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from makewhole.compute.frames import HASH, TOPIC_KEYS
from makewhole.compute.indexed_keys.former_readings import as_read_now, numbered_number, with_reading
from makewhole.compute.indexed_keys.key_runs import build_key_run
from makewhole.compute.indexed_keys.stored_runs import stored_run
from makewhole.compute.keys import with_hash
from makewhole.key_index.files import IndexFile, highest_versions, rows_of_keys, write_index_file
from makewhole.lake.storage import Storage

pytestmark = pytest.mark.unit

KEY = with_hash(pl.DataFrame({"key": ["a"]})).select(HASH)
COMPARE = {"amount": "int"}
Copy = tuple[int, int, int | None]
"""Offset, value, version."""


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(root=str(tmp_path))


def run(
    storage: Storage, window: int, field: str | None, copies: Iterable[Copy], *, has_versions: bool = True
) -> IndexFile:
    """Write the run of a window that read the versions of key `a` from a field; the file of now has them in `now`."""
    schema = {name: kind for name, kind in TOPIC_KEYS.items() if name not in HASH} | {"is_replay": pl.Boolean}
    filled = [
        {"key": "a", "partition": 0, "offset": at, "place": f"0:{at}", "row_hash": value, "version": number}
        | {"is_replay": False}
        for at, value, number in copies
    ]
    rows = build_key_run(with_hash(pl.DataFrame(filled, schema=schema)), has_versions=has_versions)
    path = write_index_file(storage, "p/index/t", [stored_run(with_reading(rows, COMPARE, field), window)])
    return IndexFile(path=path, windows=(window,), numbered_by=numbered_number("now"))


def read(storage: Storage, *files: IndexFile, is_upsert: bool = True) -> list[tuple[Any, ...]]:
    """Return first and latest values, and the latest version, window by window."""
    rows = as_read_now(rows_of_keys(storage, files, KEY), COMPARE, is_upsert=is_upsert)
    assert not {"compared", "numbered_by", "is_renumbered"} & {*rows.columns}
    return rows.select("row_hash", "last_row_hash", pl.col("last_version").cast(pl.Int64)).rows()


def highest(storage: Storage, *files: IndexFile) -> list[int]:
    frame = highest_versions(storage, files, KEY)
    return frame["version"].cast(pl.Int64).to_list()


def test_versions_of_another_field_are_none_and_left_out_once_a_window_has_the_key_by_the_field_of_now(
    storage: Storage,
) -> None:
    former = run(storage, 1, "former", [(3, 7, 100), (4, 8, 101)])
    bare, now = run(storage, 2, None, [(5, 9, None)]), run(storage, 3, "now", [(6, 10, 1)])

    assert read(storage, former) == [(7, 8, None)]
    assert read(storage, run(storage, 1, "former", [(3, 7, 100), (4, 8, 99)])) == [(7, 7, None)]
    assert read(storage, former, bare) == [(9, 9, None)]
    assert read(storage, former, now) == [(10, 10, 1)]
    assert highest(storage, former) == []
    assert highest(storage, former, now) == [1]
    later = run(storage, 4, "former", [(7, 11, 102)])
    assert read(storage, former, now, later) == [(10, 10, 1), (11, 11, None)]


@pytest.mark.parametrize(
    "copies",
    [
        pytest.param([("former", [(3, 7, 100)]), ("former", [(4, 8, 99)])], id="an_older_one_came_again"),
        pytest.param([("former", [(3, 7, 100)]), ("other", [(4, 8, 101)])], id="of_two_fields"),
    ],
)
def test_where_positions_do_not_order_the_versions_of_another_field_no_value_is_known(
    storage: Storage, copies: list[tuple[str, list[Copy]]]
) -> None:
    files = [run(storage, number, field, made) for number, (field, made) in enumerate(copies, 1)]

    assert {row[:2] for row in read(storage, *files)} == {(None, None)}


def test_of_several_copies_no_value_is_known_after_the_semantics_changed(storage: Storage) -> None:
    events = run(storage, 1, "now", [(3, 7, None), (4, 8, None)], has_versions=False)
    versions, single = run(storage, 1, "now", [(3, 7, 1), (4, 8, 2)]), run(storage, 2, "now", [(5, 9, 3)])

    assert [row[0] for row in read(storage, events)] == [None]
    assert [row[0] for row in read(storage, events, is_upsert=False)] == [7]
    assert [row[:2] for row in read(storage, versions, single)] == [(7, 8), (9, 9)]
    assert [row[0] for row in read(storage, versions, single, is_upsert=False)] == [None, 9]
