"""Choose the record of each key that is published."""

from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from makewhole.compute.frames import REPLAYS, TOPIC_KEYS, empty
from makewhole.compute.indexed_keys.key_runs import build_key_run
from makewhole.compute.judge.judge_copies import mark_replays
from makewhole.compute.judge.survivors import DOUBTED, ChosenSurvivors, LeftOut, choose_first, choose_latest
from makewhole.compute.keys import with_hash

pytestmark = pytest.mark.unit

NO_REPLAYS = empty(REPLAYS)
NO_DOUBTS = empty(DOUBTED)


def copies(*rows: dict[str, Any]) -> pl.DataFrame:
    """Return copies of a topic; of each `key`, `row_hash` and what else matters."""
    frame = pl.DataFrame([{"partition": 0, **row} for row in rows], schema_overrides={"row_hash": pl.UInt64})
    frame = with_hash(frame.with_columns(pl.format("{}:{}", "partition", "offset").alias("place")))
    missing = [pl.lit(None, dtype=kind).alias(name) for name, kind in TOPIC_KEYS.items() if name not in frame.columns]
    flags = [pl.col(name).fill_null(False) for name in ("is_aborted", "is_tombstone", "is_transactional")]
    return (
        frame.with_columns(missing)
        .with_columns(flags)
        .select(pl.col(name).cast(kind) for name, kind in TOPIC_KEYS.items())
    )


def run_of(frame: pl.DataFrame, *, has_versions: bool = False) -> pl.DataFrame:
    """Return what the key index has of copies of a window before."""
    return build_key_run(mark_replays(frame, NO_REPLAYS), has_versions=has_versions)


NOTHING = run_of(copies({"key": "other", "row_hash": 1, "offset": 1}).clear())
NO_VERSIONS = run_of(copies({"key": "other", "row_hash": 1, "offset": 1}).clear(), has_versions=True)


def first(*rows: dict[str, Any], known: pl.DataFrame = NOTHING, doubted: pl.DataFrame = NO_DOUBTS) -> ChosenSurvivors:
    return choose_first(copies(*rows), NO_REPLAYS, known, doubted)


def latest(*rows: dict[str, Any], known: pl.DataFrame = NO_VERSIONS) -> ChosenSurvivors:
    return choose_latest(copies(*rows), known, NO_DOUBTS)


def positions(chosen: ChosenSurvivors) -> dict[str, int]:
    return dict(chosen.survivors.select("key", "offset").iter_rows())


def why(chosen: ChosenSurvivors) -> dict[str, str]:
    return dict(chosen.left_out.select("key", "why").iter_rows())


def test_first_committed_record_of_each_key_is_chosen() -> None:
    chosen = first(
        {"key": "a", "row_hash": 1, "offset": 2, "is_aborted": True},
        {"key": "a", "row_hash": 1, "offset": 5},
        {"key": "a", "row_hash": 1, "offset": 3},
        {"key": "b", "row_hash": 1, "offset": 4},
    )
    assert positions(chosen) == {"a": 3, "b": 4}
    assert (chosen.resent_records, chosen.resent_keys, len(chosen.left_out)) == (1, 0, 0)


def test_records_that_say_different_things_are_a_conflict_and_none_is_chosen() -> None:
    chosen = first({"key": "a", "row_hash": 1, "offset": 3}, {"key": "a", "row_hash": 2, "offset": 4})
    assert positions(chosen) == {}
    assert chosen.left_out.to_dicts() == [{"key": "a", "why": "conflict", "cause": None, "places": ["0:3", "0:4"]}]


def test_record_of_an_earlier_window_is_sent_again_or_contradicted_and_neither_is_chosen() -> None:
    known = run_of(
        copies(
            {"key": "again", "row_hash": 1, "offset": 1},
            {"key": "other", "row_hash": 1, "offset": 2},
            {"key": "unknown", "row_hash": None, "offset": 3},
        )
    )
    chosen = first(
        {"key": "again", "row_hash": 1, "offset": 11},
        {"key": "other", "row_hash": 7, "offset": 12},
        {"key": "unknown", "row_hash": 7, "offset": 13},
        {"key": "new", "row_hash": 7, "offset": 14},
        known=known,
    )
    assert positions(chosen) == {"new": 14}
    assert why(chosen) == {"other": LeftOut.CONFLICT, "unknown": LeftOut.UNDECIDABLE}
    assert chosen.resent_keys == 1


def test_record_whose_values_are_not_known_is_not_chosen() -> None:
    assert why(first({"key": "a", "row_hash": None, "offset": 3})) == {"a": LeftOut.UNDECIDABLE}


def test_original_is_chosen_before_a_replay_of_it() -> None:
    rows = copies(
        {"key": "a", "row_hash": 1, "offset": 3, "replay_plan": "p"}, {"key": "a", "row_hash": 1, "offset": 9}
    )
    replays = rows.head(1).select(
        pl.lit("p").alias("plan"), "key_hi", "key_lo", "partition", "offset", pl.lit(False).alias("is_produced")
    )
    assert positions(choose_first(rows, replays, NOTHING, NO_DOUBTS)) == {"a": 9}


def test_key_that_a_finding_doubts_is_left_out_with_its_cause() -> None:
    rows = copies({"key": "a", "row_hash": 1, "offset": 3}, {"key": "b", "row_hash": 1, "offset": 4})
    doubt = rows.head(1).select(
        "key_hi", "key_lo", pl.lit("unverified").alias("why"), pl.lit("not_in_source").alias("cause")
    )
    chosen = choose_first(rows, NO_REPLAYS, NOTHING, doubt)
    assert positions(chosen) == {"b": 4}
    assert chosen.left_out.to_dicts() == [
        {"key": "a", "why": "unverified", "cause": "not_in_source", "places": ["0:3"]}
    ]


def test_latest_version_of_each_key_is_chosen_whatever_its_offset() -> None:
    chosen = latest(
        {"key": "a", "row_hash": 1, "offset": 3, "version": Decimal(2)},
        {"key": "a", "row_hash": 2, "offset": 4, "version": Decimal(1)},
        {"key": "b", "row_hash": 2, "offset": 5},
        {"key": "b", "row_hash": None, "offset": 6, "is_tombstone": True},
    )
    assert positions(chosen) == {"a": 3, "b": 6}


def test_version_that_an_earlier_window_has_or_overtakes_is_not_chosen() -> None:
    known = run_of(
        copies(
            {"key": "older", "row_hash": 1, "offset": 1, "version": Decimal(5)},
            {"key": "same", "row_hash": 2, "offset": 2, "version": Decimal(5)},
            {"key": "newer", "row_hash": 3, "offset": 3, "version": Decimal(5)},
        ),
        has_versions=True,
    )
    chosen = latest(
        {"key": "older", "row_hash": 9, "offset": 11, "version": Decimal(4)},
        {"key": "same", "row_hash": 2, "offset": 12, "version": Decimal(5)},
        {"key": "newer", "row_hash": 9, "offset": 13, "version": Decimal(6)},
        known=known,
    )
    assert positions(chosen) == {"newer": 13}
    assert (why(chosen), chosen.resent_keys) == ({}, 2)


def test_versions_that_nothing_orders_are_left_out() -> None:
    chosen = latest(
        {"key": "a", "row_hash": 1, "partition": 0, "offset": 3},
        {"key": "a", "row_hash": 2, "partition": 1, "offset": 3},
    )
    assert (positions(chosen), why(chosen)) == ({}, {"a": LeftOut.UNDECIDABLE})
