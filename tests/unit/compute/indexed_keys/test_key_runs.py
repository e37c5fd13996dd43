"""Check that runs of the key index are sorted, one row per key, and readable by newer versions."""

from typing import Any

import polars as pl
import pytest

from makewhole.compute.frames import ELSEWHERE, HASH, TOPIC_KEYS
from makewhole.compute.indexed_keys.key_runs import (
    build_key_run,
    count_keys,
    first_and_latest_copies,
    first_copies,
    passing_rows,
)
from makewhole.compute.keys import with_hash

pytestmark = pytest.mark.unit


def copies(*rows: dict[str, Any]) -> pl.DataFrame:
    filled = [{"place": f"0:{row['offset']}", "partition": 0, "is_replay": False} | row for row in rows]
    schema = {name: kind for name, kind in TOPIC_KEYS.items() if name not in HASH} | {"is_replay": pl.Boolean}
    return with_hash(pl.DataFrame(filled, schema=schema))


LOG = copies(
    {"key": "a", "offset": 3, "row_hash": 7, "is_replay": True, "producer_id": -1},
    {"key": "a", "offset": 5, "row_hash": 8, "producer_id": 9, "producer_epoch": 1, "sequence": 2},
    {"key": "a", "offset": 9, "row_hash": 9, "is_tombstone": True},
    {"key": "b", "offset": 4, "row_hash": 1, "version": 2},
    {"key": "b", "offset": 6, "row_hash": 2, "version": 1},
)


def test_a_run_of_events_has_the_first_original_copy_of_each_key_and_its_producer() -> None:
    run = build_key_run(LOG, has_versions=False)

    assert run.select(HASH).equals(run.select(HASH).sort(HASH))
    of_run = first_copies(run, is_later=True).sort("place")
    assert dict(of_run.schema) == ELSEWHERE
    columns = ("place", "is_replay", "is_later", "producer_id", "producer_epoch", "sequence")
    assert of_run.select(columns).rows() == [("0:4", False, True, None, None, None), ("0:5", False, True, 9, 1, 2)]


def test_a_run_of_versions_has_the_latest_too() -> None:
    run = build_key_run(LOG, has_versions=True)

    of_run = (
        first_and_latest_copies(run, is_later=False)
        .sort("place")
        .select("place", "row_hash", "version", "is_tombstone")
    )
    assert len(run) == 2
    assert of_run.rows() == [("0:4", 1, 2, None), ("0:5", 8, None, None), ("0:9", 9, None, True)]
    assert len(first_copies(run, is_later=False)) == 2


def test_a_run_has_the_highest_version_and_the_record_without_one_that_came_after_it() -> None:
    log = copies(
        {"key": "a", "offset": 3, "row_hash": 1, "version": 1},
        {"key": "a", "offset": 4, "row_hash": 2, "version": 2},
        {"key": "a", "offset": 5, "row_hash": 3},
        {"key": "a", "offset": 6, "row_hash": 4},
        {"key": "a", "offset": 7, "row_hash": 2, "version": 2},
        {"key": "b", "offset": 8, "row_hash": 5},
        {"key": "b", "offset": 9, "row_hash": 6, "version": 1},
    )
    of_run = first_and_latest_copies(build_key_run(log, has_versions=True), is_later=False).sort("place")

    assert of_run.select("place", "row_hash", "version").rows() == [
        ("0:4", 2, 2),
        ("0:6", 4, None),
        ("0:8", 5, None),
        ("0:9", 6, 1),
    ]


@pytest.mark.parametrize("has_versions", [False, True])
def test_elements_of_one_record_that_contradict_each_other_leave_no_value(has_versions: bool) -> None:
    log = copies(
        {"key": "a", "offset": 3, "row_hash": 7},
        {"key": "a", "offset": 3, "row_hash": 8},
        {"key": "b", "offset": 3, "row_hash": 7},
        {"key": "b", "offset": 3, "row_hash": 7},
        {"key": "c", "offset": 4, "row_hash": 1},
        {"key": "c", "offset": 5, "row_hash": 2},
        {"key": "d", "offset": 5, "row_hash": 3, "version": 1},
        {"key": "d", "offset": 5, "row_hash": 4, "version": 2},
    )
    run = build_key_run(log, has_versions=has_versions)

    named = run.join(log.select("key", *HASH).unique(), on=HASH).sort("key")
    assert named.select("key", "row_hash").rows() == [("a", None), ("b", 7), ("c", 1), ("d", 3)]
    if has_versions:
        assert named.select("key", "last_row_hash").rows() == [("a", None), ("b", 7), ("c", 2), ("d", 4)]


def test_a_run_of_an_older_version_is_read_and_lacks_columns_as_null() -> None:
    old = build_key_run(LOG, has_versions=False).select(*HASH, "place", "is_replay", "row_hash")

    for of_run in (first_copies(old, is_later=False), first_and_latest_copies(old, is_later=False)):
        assert dict(of_run.schema) == ELSEWHERE
        assert of_run["producer_id"].null_count() == of_run["version"].null_count() == 2


def test_runs_of_both_kinds_are_read_together() -> None:
    mixed = pl.concat([build_key_run(LOG, has_versions=False), build_key_run(LOG, has_versions=True)], how="diagonal")

    assert sorted(set(first_and_latest_copies(mixed, is_later=False)["place"])) == ["0:4", "0:5", "0:9"]


def test_a_run_has_a_row_for_each_set_of_filters_and_counts_each_key_once() -> None:
    log = copies(
        {"key": "a", "offset": 1, "excluded_by": ["x→y"]},
        {"key": "a", "offset": 2, "excluded_by": []},
        {"key": "a", "offset": 3, "excluded_by": []},
        {"key": "b", "offset": 4, "excluded_by": ["x→y", "x→z"]},
    )

    run = build_key_run(log, has_versions=False)

    assert (len(run), count_keys(run)) == (3, 2)
    assert sorted(first_copies(run, is_later=False)["place"]) == ["0:1", "0:4"]
    places = {hop: sorted(first_copies(passing_rows(run, hop), is_later=False)["place"]) for hop in ("x→y", "x→z")}
    assert places == {"x→y": ["0:2"], "x→z": ["0:1", "0:2"]}
    with_latest = build_key_run(log, has_versions=True)
    latest = first_and_latest_copies(passing_rows(with_latest, "x→y"), is_later=False)
    assert sorted(latest["place"]) == ["0:2", "0:3"]


def test_the_latest_version_of_a_key_is_known_whichever_filters_exclude_it() -> None:
    log = copies(
        {"key": "a", "offset": 1, "version": 1, "excluded_by": []},
        {"key": "a", "offset": 2, "version": 5, "excluded_by": ["y→z"]},
        {"key": "b", "offset": 3, "version": 5, "excluded_by": []},
        {"key": "b", "offset": 4, "version": 1, "excluded_by": ["y→z"]},
    )

    of_run = first_and_latest_copies(build_key_run(log, has_versions=True), is_later=False)

    latest = of_run.sort("version").unique("key_hi", keep="last").sort("place")
    assert latest.select("place", "version").rows() == [("0:2", 5), ("0:3", 5)]


def test_rows_of_a_run_that_knows_no_filters_all_pass() -> None:
    old = build_key_run(LOG, has_versions=False).drop("excluded_by", "is_extra")

    assert passing_rows(old, "x→y").equals(old)
    assert count_keys(old) == 2


def test_a_run_of_events_notes_which_keys_were_deleted_after_their_first_copy() -> None:
    """The last copy of a key in each of its partitions must be a tombstone: nothing says which of them came last."""
    both = copies(
        {"key": "c", "offset": 7, "row_hash": 1},
        {"key": "c", "offset": 8, "is_tombstone": True},
        {"key": "c", "offset": 2, "row_hash": 1, "partition": 1},
    )
    run = build_key_run(pl.concat([LOG, both]), has_versions=False)
    assert dict(run.select("place", "last_is_tombstone").rows()) == {"0:5": True, "0:4": None, "0:7": None}
    assert "last_is_tombstone" not in build_key_run(both.tail(1), has_versions=False).columns
