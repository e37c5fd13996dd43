"""Check that a window's rows of the key index are those that the careful way alone would write."""

from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.frames import HASH, REPLAYS, TOPIC_KEYS, with_place
from makewhole.compute.indexed_keys.former_readings import with_reading
from makewhole.compute.indexed_keys.key_runs import build_key_run, first_and_latest_copies
from makewhole.compute.indexed_keys.stored_runs import run_of, stored_run
from makewhole.compute.indexed_keys.window_rows import COPIES, window_rows
from makewhole.compute.judge.judge_copies import mark_replays
from makewhole.compute.versions import MOMENTS
from tests.world.examples import examples

pytestmark = pytest.mark.unit

PLANS = ("plan-1", "plan-2")
COLUMNS = {name: TOPIC_KEYS[name] for name in COPIES}
# Few halves, so that keys have several copies, and different keys share a half of their hash.
HALVES = st.integers(0, 4) | st.integers(2**64 - 2, 2**64 - 1)
FILTERS = st.sampled_from([[], ["a→b"], ["a→c", "a→b"], ["a→b", "a→c"]])


@st.composite
def logs(draw: st.DrawFn) -> pl.DataFrame:
    no_filters = draw(st.booleans())
    rows = [
        {
            "key_hi": draw(HALVES),
            "key_lo": draw(HALVES),
            "row_hash": draw(st.none() | st.integers(0, 2**64 - 1)),
            "version": draw(st.none() | st.integers(-2, 2)),
            "is_tombstone": draw(st.booleans()),
            "producer_id": draw(st.integers(-1, 2)),
            "producer_epoch": 0,
            "sequence": draw(st.integers(0, 3)),
            "excluded_by": [] if no_filters else draw(FILTERS),
            "partition": draw(st.integers(0, 2)),
            "offset": offset,
            "is_aborted": False,
            "replay_plan": draw(st.none() | st.sampled_from(PLANS)),
        }
        for offset in draw(st.lists(st.integers(0, 2**40), unique=True, max_size=14))
    ]
    return pl.DataFrame(rows, schema=COLUMNS)


@st.composite
def written(draw: st.DrawFn, log: pl.DataFrame) -> pl.DataFrame:
    """Draw what compensation wrote: some of the copies."""
    rows: list[Any] = []
    for row in log.filter(pl.col("replay_plan").is_not_null()).iter_rows(named=True):
        if draw(st.booleans()):
            place = row["partition"], row["offset"]
            rows.append((row["replay_plan"], row["key_hi"], row["key_lo"], *place, draw(st.booleans())))
    return pl.DataFrame(rows, schema=REPLAYS, orient="row")


def carefully(log: pl.DataFrame, replays: pl.DataFrame, *, has_versions: bool) -> pl.DataFrame:
    run = build_key_run(mark_replays(with_place(log), replays), has_versions=has_versions)
    return stored_run(run, 0).drop("window", "compared", "of_hops", "numbered_by", "filters")


@settings(max_examples=examples(300), deadline=None)
@given(st.data(), logs(), st.booleans())
def test_one_pass_and_the_careful_way_give_the_same_rows(
    data: st.DataObject, log: pl.DataFrame, has_versions: bool
) -> None:
    replays = data.draw(written(log))

    rows = window_rows(log, replays, has_versions=has_versions)

    expected = carefully(log, replays, has_versions=has_versions)
    assert rows.schema == expected.schema
    assert rows.equals(expected)


def test_no_copies_are_no_rows() -> None:
    rows = window_rows(pl.DataFrame(schema=COLUMNS), pl.DataFrame(schema=REPLAYS), has_versions=True)

    assert rows.is_empty()
    assert (
        rows.schema == carefully(pl.DataFrame(schema=COLUMNS), pl.DataFrame(schema=REPLAYS), has_versions=True).schema
    )


def test_columns_that_copies_do_not_have_are_null() -> None:
    log = pl.DataFrame(
        [
            {"key_hi": 2, "key_lo": 1, "row_hash": 7, "partition": 0, "offset": 5},
            {"key_hi": 1, "key_lo": 1, "offset": 6},
        ],
        schema={name: COLUMNS[name] for name in (*HASH, "row_hash", "partition", "offset", "replay_plan")},
    )

    rows = window_rows(log, pl.DataFrame(schema=REPLAYS), has_versions=False)

    assert rows.select(*HASH, "row_hash", "offset", "is_replay").rows() == [(1, 1, None, 6, False), (2, 1, 7, 5, False)]
    assert rows["excluded_by"].null_count() == rows["producer_id"].null_count() == 2


def test_a_row_that_is_laid_out_keeps_its_versions_and_positions() -> None:
    """Also when it is laid out again, as a run is when its file is written."""
    log = pl.DataFrame(
        [
            {"key_hi": 1, "key_lo": 1, "row_hash": 7, "partition": 0, "offset": 5, "version": Decimal("1.5")},
            {"key_hi": 1, "key_lo": 1, "row_hash": 8, "partition": 1, "offset": 2, "version": MOMENTS - 1},
        ],
        schema={name: COLUMNS[name] for name in (*HASH, "row_hash", "partition", "offset", "version", "replay_plan")},
    )

    rows = window_rows(log, pl.DataFrame(schema=REPLAYS), has_versions=True)
    copies = first_and_latest_copies(run_of(stored_run(with_reading(rows, {}, None), 3)), is_later=False)

    assert copies.select("place", "row_hash", "version").rows() == [("0:5", 7, Decimal("1.5")), ("1:2", 8, MOMENTS - 1)]
