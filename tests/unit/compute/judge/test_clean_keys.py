"""Check that the keys which the first pass takes out are exactly those that the careful kernel need not see."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.frames import HASH, HASHES, KEYS
from makewhole.compute.judge import clean_keys
from makewhole.compute.judge.clean_keys import COLUMNS, CleanKeys, count_keys, find_clean_keys
from makewhole.compute.judge.judge_copies import BucketInput, judge
from tests.unit.compute.judge.bucket_input import HOP, NEW, OLD, PLANS, bucket, hashed, one
from tests.unit.compute.judge.event_oracle import bucket_of, situations
from tests.unit.native.bounds_checks import bounds_checked
from tests.world.examples import examples

pytestmark = pytest.mark.unit


def first_pass(known: BucketInput) -> CleanKeys:
    beyond = (known.source_elsewhere, known.target_elsewhere, known.handed_over, known.replays)
    source, target = (frame.select(name for name in COLUMNS if name in frame.columns) for frame in _slices(known))
    return find_clean_keys(source, target, HOP, pl.concat(frame.select(HASH) for frame in beyond))


def _slices(known: BucketInput) -> tuple[pl.DataFrame, pl.DataFrame]:
    return known.source, known.target


def names(clean: CleanKeys, known: BucketInput) -> list[str]:
    return sorted(known.source.join(clean.keys, on=HASH, how="semi")["key"].unique())


@settings(max_examples=examples(300), deadline=None)
@given(situations())
def test_two_passes_judge_as_the_careful_kernel_alone(situation: dict[str, Any]) -> None:
    known = bucket_of(situation)
    clean = first_pass(known)
    rest = replace(
        known, source=known.source.filter(clean.source_exceptions), target=known.target.filter(clean.target_exceptions)
    )

    careful = judge(known)
    of_clean = careful.join(clean.keys, on=[*HASH, "row_hash"], how="semi")
    assert of_clean["verdict"].to_list() == ["matched"] * len(clean.keys)
    assert judge(rest).equals(careful.join(clean.keys, on=HASH, how="anti"))
    assert len(known.source) - len(rest.source) == len(known.target) - len(rest.target) == len(clean.keys)
    passing = count_keys(known.source, HOP, known.handed_over)
    assert passing == len(careful.filter("in_source"))


@pytest.mark.parametrize("is_topic", [True, False])
def test_one_copy_on_each_side_with_equal_values_is_clean(is_topic: bool) -> None:
    rows = [one("a", 1), one("b", 2, NEW), one("c", 3)]
    known = bucket(rows, rows[::-1], source_is_topic=is_topic, target_is_topic=not is_topic)

    clean = first_pass(known)

    assert names(clean, known) == ["a", "b", "c"]
    assert clean.keys["row_hash"].sort().to_list() == [OLD, OLD, NEW]
    assert not clean.source_exceptions.any() and not clean.target_exceptions.any()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ([one("a", 1)], []),
        ([], [one("a", 1)]),
        ([one("a", 1), one("a", 2)], []),
        ([], [one("a", 1), one("a", 2)]),
        ([one("a", 1), one("a", 2)], [one("a", 1)]),
        ([one("a", 1)], [one("a", 1), one("a", 2)]),
        ([one("a", 1), one("a", 2)], [one("a", 1), one("a", 2)]),
        ([one("a", 1)], [one("a", 1, NEW)]),
        ([{"key": "a", "offset": 1, "row_hash": None}], [{"key": "a", "offset": 1, "row_hash": None}]),
        ([one("a", 1, is_aborted=True)], [one("a", 1)]),
        ([one("a", 1)], [one("a", 1, is_aborted=True)]),
        ([one("a", 1), one("a", 2, is_aborted=True)], [one("a", 1)]),
        ([one("a", 1, excluded_by=[HOP])], [one("a", 1)]),
        ([one("a", 1), one("a", 2, excluded_by=[HOP])], [one("a", 1)]),
        ([one("a", 1)], [one("a", 1, replay_plan=PLANS[0])]),
        ([one("a", 1, replay_plan=PLANS[0])], [one("a", 1)]),
    ],
)
def test_anything_else_is_an_exception(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
    clean = first_pass(bucket(source, target))

    assert clean.keys.is_empty()
    assert clean.source_exceptions.all() and clean.target_exceptions.all()


def test_a_filter_of_another_hop_matters_to_none() -> None:
    known = bucket([one("a", 1, excluded_by=["another→hop"])], [one("a", 1, excluded_by=[HOP])])

    assert names(first_pass(known), known) == ["a"]


def test_a_key_that_is_known_besides_is_an_exception() -> None:
    rows = [one("a", 1), one("b", 2)]
    known = bucket(rows, rows, source_elsewhere=[{"key": "a", "place": "0:9", "is_replay": False}])

    assert names(first_pass(known), known) == ["b"]


@pytest.mark.parametrize("column", HASH)
def test_half_a_hash_is_not_a_key(column: str) -> None:
    known = bucket([one("a", 1)], [one("a", 1)])
    target = known.target.with_columns((pl.col(column) + 1).alias(column))

    assert first_pass(replace(known, target=target)).keys.is_empty()


def test_two_keys_that_share_half_of_their_hash_are_exceptions() -> None:
    known = bucket([one("a", 1), one("b", 2)], [one("a", 1), one("b", 2)])
    shared = [frame.with_columns(pl.lit(7, pl.UInt64).alias("key_hi")) for frame in _slices(known)]

    assert first_pass(replace(known, source=shared[0], target=shared[1])).keys.is_empty()


def test_keys_that_are_named_besides_are_counted_once() -> None:
    known = bucket([one("a", 1), one("a", 2), one("b", 3, is_aborted=True)], [])

    assert (
        count_keys(known.source, HOP, hashed([{"key": "a"}, {"key": "c"}], {"key_hi": pl.UInt64, "key_lo": pl.UInt64}))
        == 2
    )


# Few halves: different keys share one of them, and both ends of the numbers are among them.
HALVES = st.integers(0, 2) | st.integers(2**64 - 2, 2**64 - 1)
KEYS_OF_HALVES = st.lists(st.tuples(HALVES, HALVES), max_size=12)
PLAIN = {name: KEYS[name] for name in COLUMNS if name in KEYS}


def plain(keys: list[tuple[int, int]]) -> pl.DataFrame:
    return pl.DataFrame([(*key, OLD, []) for key in keys], schema=PLAIN, orient="row")


def hashes(keys: list[tuple[int, int]]) -> pl.DataFrame:
    return pl.DataFrame(keys, schema=HASHES, orient="row")


@settings(max_examples=examples(300), deadline=None)
@given(KEYS_OF_HALVES, KEYS_OF_HALVES)
def test_keys_are_counted_by_both_halves(keys: list[tuple[int, int]], named: list[tuple[int, int]]) -> None:
    assert count_keys(plain(keys), HOP, hashes(named)) == len({*keys, *named})


@settings(max_examples=examples(300), deadline=None)
@given(KEYS_OF_HALVES, KEYS_OF_HALVES, KEYS_OF_HALVES)
def test_a_key_is_clean_that_shares_half_of_its_hash_with_no_other_row(
    source: list[tuple[int, int]], target: list[tuple[int, int]], known: list[tuple[int, int]]
) -> None:
    highs = [high for high, _ in (*source, *target)]
    expected = {
        key for key in {*source} & {*target} if highs.count(key[0]) == 2 and key[0] not in [high for high, _ in known]
    }

    with bounds_checked(clean_keys):
        clean = find_clean_keys(plain(source), plain(target), HOP, hashes(known))

    assert {*clean.keys.select(HASH).rows()} == expected
    assert [key for key, is_left in zip(source, clean.source_exceptions, strict=True) if not is_left] == [
        key for key in source if key in expected
    ]
    assert [key for key, is_left in zip(target, clean.target_exceptions, strict=True) if not is_left] == [
        key for key in target if key in expected
    ]
