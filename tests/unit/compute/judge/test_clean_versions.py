"""Check that the keys of versions which the first pass takes out are those that the careful kernel need not see."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute import rollup
from makewhole.compute.frames import ELSEWHERE, HASH, HASHES, NUMBERS, TOPIC_KEYS
from makewhole.compute.judge import clean_versions
from makewhole.compute.judge.clean_keys import CleanKeys, count_keys
from makewhole.compute.judge.clean_versions import (
    VERSION_COLUMNS,
    VersionsBefore,
    columns_of_versions,
    find_clean_versions,
)
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies
from makewhole.compute.judge.judge_versions import judge_versions
from makewhole.compute.versions import UNREADABLE, VERSION
from makewhole.model.verdict import HopCounts
from tests.unit.compute.judge.bucket_input import HOP, NEW, OLD, PLANS, Row, bucket, hashed, one
from tests.unit.native.bounds_checks import bounds_checked
from tests.world.examples import examples

pytestmark = pytest.mark.unit

NO_KEYS = pl.DataFrame(schema=HASHES)


def first_pass(known: BucketInput, named: pl.DataFrame = NO_KEYS) -> CleanKeys:
    """Take the clean keys out of a bucket, as a task of reconcile does."""
    beyond = pl.concat(frame.select(HASH) for frame in (known.handed_over, known.replays, named))
    before = VersionsBefore(numbers_before(known.source_elsewhere), numbers_before(known.target_elsewhere))
    source, target = (
        frame.select(columns_of_versions(is_topic="offset" in frame.columns, is_target=is_target))
        for frame, is_target in ((known.source, False), (known.target, True))
    )
    return find_clean_versions(source, target, HOP, beyond, before)


def numbers_before(elsewhere: pl.DataFrame) -> pl.DataFrame:
    """Return the highest number of each key in the windows before, as the key index has it: none where a record without
    one is among them."""
    before = elsewhere.filter(~pl.col("is_later").fill_null(False))
    is_bare = (pl.col("version").is_null() & ~pl.col("is_tombstone").fill_null(False)).any()
    number = pl.when(is_bare).then(pl.lit(UNREADABLE, dtype=VERSION)).otherwise(pl.col("version").max())
    has_any = pl.col("version").is_not_null().any()
    return before.group_by(HASH).agg(pl.when(has_any).then(number).alias("version")).drop_nulls()


def names(clean: CleanKeys, known: BucketInput) -> list[str]:
    return sorted(known.source.join(clean.keys, on=HASH, how="semi")["key"].unique())


def moment(number: int) -> datetime:
    return datetime.fromtimestamp(number, UTC)


class Drawing:
    """Draws the copies of a bucket: most are plain, so that many keys are clean, and each of the others is rare."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        several: list[list[int | None]] = [[None], [1, 2, 3], [None, 1, 2]]
        self.numbers = draw(st.sampled_from(several))

    def is_rare(self) -> bool:
        return self.draw(st.integers(0, 23)) == 23

    def one_of(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def rows(self, most: int, first: int = 50, like: Sequence[Row] = ()) -> list[Row]:
        """Draw what copies at any place have; most say what one of `like` says."""
        rows = [
            {
                "key": self.one_of("a", "b"),
                "offset": offset,
                "row_hash": None if self.is_rare() else self.one_of(OLD, NEW),
                "version": 2 if self.is_rare() else self.one_of(*self.numbers),
                "partition": self.one_of(0, 0, 0, 0, 1),
            }
            for offset in self.draw(st.lists(st.integers(first, first + 20), unique=True, min_size=1, max_size=most))
        ]
        said = [{name: row[name] for name in ("key", "row_hash", "version")} for row in like]
        return [row | self.one_of(*said, *said, {}) for row in rows]

    def records(self, most: int, like: Sequence[Row] = ()) -> list[Row]:
        """Draw the copies in the slice of a topic."""
        return [
            row
            | {
                "is_aborted": self.is_rare(),
                "is_tombstone": self.is_rare(),
                "replay_plan": PLANS[0] if self.is_rare() else None,
            }
            for row in self.rows(most, like=like)
        ]

    def in_table(self, most: int, like: Sequence[Row] = ()) -> list[Row]:
        """Draw the rows in the slice of a table, some of which were read twice."""
        rows = [row | {"time": self.one_of(None, *map(moment, range(4)))} for row in self.rows(most, like=like)]
        again = [row for row in rows if self.is_rare()]
        return [*rows, *again]

    def elsewhere(self, *, is_topic: bool = True) -> list[Row]:
        """Draw copies before and after the slice, some with a higher number than any in it."""
        return [*self._elsewhere(is_topic=is_topic), *self._elsewhere(is_topic=is_topic, is_later=True)]

    def _elsewhere(self, *, is_topic: bool, is_later: bool = False) -> list[Row]:
        kept = {*ELSEWHERE, "key"}
        rows = self.rows(2, 200 if is_later else 0)
        higher = [row | {"version": 4} if row["version"] == 3 else row for row in rows]
        placed = [row | {"place": f"{row['partition']}:{row['offset']}"} for row in higher]
        is_tombstone = is_topic and self.is_rare()
        marks = {"is_later": is_later, "is_replay": False, "is_tombstone": is_tombstone}
        ends = [{"ends_earlier": is_tombstone and row["version"] is None} for row in placed]
        return [
            {name: row[name] for name in row if name in kept} | marks | end
            for row, end in zip(placed, ends, strict=True)
        ]

    def keys(self) -> list[str]:
        return [name for name in "ab" if self.is_rare()]


@st.composite
def buckets(draw: st.DrawFn) -> BucketInput:
    drawing, source_is_topic, target_is_topic = Drawing(draw), draw(st.booleans()), draw(st.booleans())
    source = drawing.records(5) if source_is_topic else drawing.in_table(4)
    outside = {row["offset"] for row in source if drawing.is_rare()}  # a row that is read twice is one row
    return bucket(
        [row | {"excluded_by": [HOP] if row["offset"] in outside else []} for row in source],
        drawing.records(5, like=source) if target_is_topic else drawing.in_table(3, like=source),
        source_is_topic=source_is_topic,
        target_is_topic=target_is_topic,
        source_elsewhere=drawing.elsewhere(is_topic=source_is_topic),
        target_elsewhere=drawing.elsewhere() if target_is_topic else [],
        handed_over=drawing.keys(),
        unsettled=drawing.keys(),
        overdue=drawing.keys(),
        placed=[(PLANS[0], "a", 55, False)] if drawing.is_rare() else [],
    )


def counts(known: BucketInput, judged: pl.DataFrame) -> HopCounts:
    target = known.target.unique(subset="place")
    return rollup.counts(judged, len(committed_copies(known.source)), len(committed_copies(target)))


@settings(max_examples=examples(500, share=15), deadline=None)
@given(buckets())
def test_two_passes_judge_as_the_careful_kernel_alone(known: BucketInput) -> None:
    """Judge hundreds of drawn buckets twice: what two passes may not change is every column of a verdict."""
    clean = first_pass(known)
    rest = replace(
        known, source=known.source.filter(clean.source_exceptions), target=known.target.filter(clean.target_exceptions)
    )

    careful, judged = judge_versions(known), judge_versions(rest)
    of_clean = careful.join(clean.keys, on=[*HASH, "row_hash"], how="semi")
    assert of_clean["verdict"].to_list() == ["matched"] * len(clean.keys)
    assert (of_clean["target_copies"] > 0).all()
    assert judged.equals(careful.join(clean.keys, on=HASH, how="anti"))
    digests = [rollup.digest(judged), rollup.digest_of_matched(clean.keys)]
    assert rollup.add_digests(digests) == rollup.digest(careful)
    of_first = HopCounts(
        matched=len(clean.keys),
        source_keys=len(clean.keys),
        source_rows=clean.source_rows,
        target_rows=clean.target_rows,
    )
    assert rollup.add_counts([counts(rest, judged), of_first]) == counts(known, careful)
    assert count_keys(known.source, HOP, known.handed_over) == len(careful.filter("in_source"))


@settings(max_examples=examples(200), deadline=None)
@given(buckets(), st.sets(st.sampled_from("ab")))
def test_none_of_the_keys_that_are_known_besides_is_clean(known: BucketInput, named: set[str]) -> None:
    clean = first_pass(known)

    fewer = first_pass(known, hashed([{"key": name} for name in named], HASHES))

    assert names(fewer, known) == [name for name in names(clean, known) if name not in named]


@pytest.mark.parametrize("source_is_topic", [True, False])
@pytest.mark.parametrize("target_is_topic", [True, False])
def test_a_key_whose_latest_versions_are_equal_is_clean(source_is_topic: bool, target_is_topic: bool) -> None:
    source = [
        *(one("a", 1), one("a", 2, NEW), one("b", 3, NEW, version=2), one("b", 4, OLD, version=1), one("c", 5)),
        *(one("d", 6, OLD, version=1), one("e", 7)),
    ]
    source = [row | {"time": moment(row["offset"])} for row in source]
    target = [one("e", 1, version=1), one("d", 2), one("c", 3), one("b", 4, NEW, version=3), one("a", 5, NEW)]
    known = bucket(source, target, source_is_topic=source_is_topic, target_is_topic=target_is_topic)

    clean = first_pass(known)

    assert names(clean, known) == ["a", "b", "c", "d", "e"]
    assert dict(clean.keys.join(known.source, on=[*HASH, "row_hash"]).select("key", "row_hash").rows())["a"] == NEW
    assert (clean.source_rows, clean.target_rows) == (7, 5)
    assert not clean.source_exceptions.any() and not clean.target_exceptions.any()


def test_older_versions_in_the_target_leave_with_the_latest_and_two_rows_of_a_store_stay() -> None:
    source, target = [one("a", 1), one("b", 2)], [one("a", 1, NEW), one("a", 2), one("b", 3)]

    assert first_pass(bucket(source, target)).target_rows == 3
    store = bucket(source, target, target_is_topic=False)
    assert names(first_pass(store), store) == ["b"]


def test_a_row_of_a_store_that_was_read_twice_is_one_row() -> None:
    known = bucket([one("a", 1)], [one("a", 1)] * 3, target_is_topic=False)

    clean = first_pass(known)

    assert (names(clean, known), clean.target_rows) == (["a"], 1)
    assert not clean.target_exceptions.any()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ([one("a", 1)], []),
        ([], [one("a", 1)]),
        ([one("a", 1)], [one("a", 1, NEW)]),
        ([one("a", 1), one("a", 2, NEW)], [one("a", 1)]),
        ([one("a", 1, version=2), one("a", 2, NEW, version=1)], [one("a", 1, NEW)]),
        ([one("a", 1, version=2)], [one("a", 1, version=1)]),
        ([one("a", 1)], [one("a", 1, version=2), one("a", 2, NEW, version=3)]),
        ([one("a", 1), one("a", 1, partition=1)], [one("a", 1)]),
        ([one("a", 1)], [one("a", 1), one("a", 1, partition=1)]),
        ([{"key": "a", "offset": 1, "row_hash": None}], [{"key": "a", "offset": 1, "row_hash": None}]),
        ([one("a", 1, is_tombstone=True)], [one("a", 1, is_tombstone=True)]),
        ([one("a", 1), one("a", 2, is_tombstone=True)], [one("a", 1)]),
        ([one("a", 1)], [one("a", 1), one("a", 2, is_tombstone=True)]),
        ([one("a", 1), one("a", 2, is_aborted=True)], [one("a", 1)]),
        ([one("a", 1)], [one("a", 1), one("a", 2, is_aborted=True)]),
        ([one("a", 1), one("a", 2, excluded_by=[HOP])], [one("a", 1)]),
        ([one("a", 1, replay_plan=PLANS[0])], [one("a", 1)]),
        ([one("a", 1)], [one("a", 1, replay_plan=PLANS[0])]),
    ],
)
def test_anything_else_is_an_exception(source: list[Row], target: list[Row]) -> None:
    clean = first_pass(bucket(source, target))

    assert clean.keys.is_empty()
    assert clean.source_exceptions.all() and clean.target_exceptions.all()


@pytest.mark.parametrize("number", [1, 2, 3, None])
def test_a_target_that_had_a_higher_number_before_is_an_exception(number: int | None) -> None:
    row = {"key": "a", "place": "0:9", "row_hash": NEW, "version": number, "is_replay": False}
    known = bucket([one("a", 1, version=2)], [one("a", 1, version=2)], target_elsewhere=[row])

    assert names(first_pass(known), known) == ([] if number == 3 else ["a"])
    assert judge_versions(known)["verdict"].to_list() == ["mismatched" if number == 3 else "matched"]


def test_rows_of_a_ledger_that_have_one_time_have_no_latest() -> None:
    rows = [one("a", 1, time=moment(1)), one("a", 2, time=moment(1)), one("b", 3, NEW, time=moment(2)), one("b", 4)]
    known = bucket(rows, [one("a", 1), one("b", 2, NEW)], source_is_topic=False)

    assert names(first_pass(known), known) == ["b"]


def test_the_columns_to_read_are_those_that_order_and_distinguish_the_rows() -> None:
    ends = [columns_of_versions(is_topic=False, is_target=is_target) for is_target in (False, True)]

    assert [name for name in VERSION_COLUMNS if name not in columns_of_versions(is_topic=True, is_target=True)] == [
        "time",
        "place",
    ]
    assert [{*end} ^ {*ends[0]} & {*ends[1]} for end in ends] == [{"time"}, {"place"}]


# Few halves: different keys share one of them, and both ends of the numbers are among them.
HALVES = st.integers(0, 2) | st.integers(2**64 - 2, 2**64 - 1)
KEYS_OF_HALVES = st.lists(st.tuples(HALVES, HALVES), max_size=12)


def versions(keys: Sequence[tuple[int, int]]) -> pl.DataFrame:
    """Return the copies of a topic, one after the other, all with equal values."""
    rows = [
        {"key_hi": key[0], "key_lo": key[1], "row_hash": OLD, "excluded_by": [], "is_aborted": False, "partition": 0}
        | {"offset": offset}
        for offset, key in enumerate(keys)
    ]
    return pl.DataFrame(
        rows, schema={name: TOPIC_KEYS[name] for name in columns_of_versions(is_topic=True, is_target=True)}
    )


@settings(max_examples=examples(300), deadline=None)
@given(KEYS_OF_HALVES, KEYS_OF_HALVES, KEYS_OF_HALVES, KEYS_OF_HALVES)
def test_a_key_is_clean_that_shares_half_of_its_hash_with_no_other_key(
    source: list[tuple[int, int]],
    target: list[tuple[int, int]],
    known: list[tuple[int, int]],
    overtaken: list[tuple[int, int]],
) -> None:
    sharing = {high: {key for key in (*source, *target) if key[0] == high} for high, _ in source}
    without = {high for high, _ in (*known, *overtaken)}
    expected = {key for key in {*source} & {*target} if len(sharing[key[0]]) == 1 and key[0] not in without}
    before = pl.DataFrame([(*key, 1) for key in overtaken], schema=NUMBERS, orient="row")
    overtaking = VersionsBefore(before, before)

    with bounds_checked(clean_versions):
        clean = find_clean_versions(
            versions(source), versions(target), HOP, pl.DataFrame(known, schema=HASHES, orient="row"), overtaking
        )

    assert sorted(clean.keys.select(HASH).rows()) == sorted(expected)
    assert clean.source_exceptions.tolist() == [key not in expected for key in source]
    assert clean.target_exceptions.tolist() == [key not in expected for key in target]
    assert clean.target_rows == sum(key in expected for key in target)
