"""Check which tombstones delete their keys: those that no record with a value follows."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.frames import LOG_ORDER, UNREAD_PLACES, empty
from makewhole.compute.judge.tombstones import followed_after, log_order, may_be_deleted, standing_tombstones
from makewhole.compute.normalise import topic_records
from tests.unit.compute.test_normalise import log

pytestmark = pytest.mark.unit

T = datetime(2025, 1, 1, tzinfo=UTC)
Record = tuple[int, str, int, int, int | None, bool]
"""(key, topic id, partition, offset, hours or None, whether it is a tombstone)."""


def frame(records: Sequence[Record], topic: str = "log", lineage: int | None = 0) -> pl.DataFrame:
    rows = [
        (
            key,
            0,
            topic,
            topic_id,
            partition,
            lineage,
            offset,
            None if hours is None else T + timedelta(hours=hours),
            is_tombstone,
        )
        for key, topic_id, partition, offset, hours, is_tombstone in records
    ]
    return pl.DataFrame(rows, schema=LOG_ORDER, orient="row")


def places(standing: pl.DataFrame) -> dict[int, tuple[int, int]]:
    return {key: (partition, offset) for key, partition, offset in standing.select("key_hi", *PLACE).rows()}


PLACE = ("partition", "offset")


@pytest.mark.parametrize(
    ("records", "standing"),
    [
        ([], {}),
        ([(1, "a", 0, 5, 0, False)], {}),
        ([(1, "a", 0, 5, 0, True)], {1: (0, 5)}),
        ([(1, "a", 0, 5, 0, False), (1, "a", 0, 6, 0, True)], {1: (0, 6)}),
        ([(1, "a", 0, 6, 0, False), (1, "a", 0, 5, 9, True)], {}),  # offsets count, not times
        ([(1, "a", 0, 5, 0, False), (1, "a", 0, 6, 0, True), (1, "a", 0, 7, 0, False)], {}),
        ([(1, "a", 0, 6, 1, True), (1, "a", 0, 8, 1, True), (1, "a", 0, 7, 1, False)], {1: (0, 8)}),
        ([(1, "a", 0, 6, 1, True), (1, "a", 0, 7, 1, True)], {1: (0, 7)}),
        ([(1, "a", 0, 9, 0, False), (1, "a", 1, 2, 1, True)], {1: (1, 2)}),  # another partition: times count
        ([(1, "a", 0, 9, 1, False), (1, "a", 1, 20, 1, True)], {}),
        ([(1, "a", 0, 9, None, False), (1, "a", 1, 20, 1, True)], {}),
        ([(1, "a", 0, 9, 1, False), (1, "a", 1, 20, None, True)], {}),
        ([(1, "a", 0, 9, 5, False), (1, "b", 0, 2, 1, True)], {1: (0, 2)}),  # of a topic that was made again
        ([(1, "b", 0, 2, 1, False), (1, "a", 0, 9, 5, True)], {}),
        ([(1, "a", 0, 9, 5, False), (1, "new", 3, 2, 1, True)], {1: (3, 2)}),
        ([(1, "a", 0, 5, 0, False), (2, "a", 0, 6, 0, True)], {2: (0, 6)}),
    ],
)
def test_a_tombstone_stands_where_it_follows_every_record_of_its_key(
    records: list[Record], standing: dict[int, tuple[int, int]]
) -> None:
    incarnations = {"a": 0, "b": 1}
    assert places(standing_tombstones(frame(records), incarnations)) == standing
    assert places(standing_tombstones(frame([*reversed(records), *records]), incarnations)) == standing


def test_between_topics_times_count() -> None:
    value = frame([(1, "a", 0, 9, 1, False), (2, "a", 0, 10, 1, False)])
    tombstones = frame([(1, "x", 0, 3, 2, True), (2, "x", 0, 4, 1, True)], topic="other")
    assert places(standing_tombstones(pl.concat([value, tombstones]))) == {1: (0, 3)}


VALUE, TOMBSTONE = False, True


@pytest.mark.parametrize(
    ("by_lineage", "standing"),
    [
        ({0: [(170, TOMBSTONE)], 1: [(160, VALUE)]}, {}),  # cut off at 150: the key came back behind it
        ({0: [(170, VALUE)], 1: [(160, TOMBSTONE)]}, {1: (0, 160)}),
        ({0: [(120, VALUE), (170, TOMBSTONE)], 1: []}, {1: (0, 170)}),
        ({0: [(170, TOMBSTONE)], None: [(160, VALUE)]}, {}),  # behind the windows, cut off since
        ({0: [(170, VALUE)], None: [(160, TOMBSTONE)]}, {1: (0, 160)}),
        ({1: [(180, TOMBSTONE)], 2: [], None: [(190, VALUE)]}, {}),
        ({0: [(10, TOMBSTONE)], 2: [(9, TOMBSTONE)], 1: [(11, VALUE)]}, {1: (0, 9)}),
    ],
)
def test_what_is_of_a_newer_lineage_follows_what_was_cut_off(
    by_lineage: Mapping[int | None, Sequence[tuple[int, bool]]], standing: dict[int, tuple[int, int]]
) -> None:
    frames = [
        frame([(1, "a", 0, offset, None, is_tombstone) for offset, is_tombstone in records], lineage=lineage)
        for lineage, records in by_lineage.items()
    ]
    assert places(standing_tombstones(pl.concat(frames), {"a": 0})) == standing
    assert places(standing_tombstones(pl.concat(frames[::-1]), {"a": 0})) == standing


def test_of_a_key_without_a_record_the_moment_of_its_row_counts() -> None:
    tombstones = frame([(key, "a", 0, key, 5, True) for key in (1, 2, 3)])
    moments = pl.DataFrame(
        [(1, 0, T), (2, 0, T + timedelta(hours=5)), (3, 0, None)],
        schema={"key_hi": pl.UInt64, "key_lo": pl.UInt64, "time": pl.Datetime("us", "UTC")},
        orient="row",
    )
    assert followed_after(tombstones, moments)["key_hi"].to_list() == [1]


@given(
    st.lists(
        st.tuples(
            st.integers(1, 2), st.just("a"), st.integers(0, 1), st.integers(0, 6), st.integers(0, 3), st.booleans()
        ),
        max_size=8,
        unique_by=lambda record: record[2:4],
    )
)
def test_standing_tombstones_are_those_that_a_comparison_one_by_one_finds(records: list[Record]) -> None:
    def follows(tombstone: Record, value: Record) -> bool:
        if tombstone[2] == value[2]:
            return tombstone[3] > value[3]
        return (tombstone[4] or 0) > (value[4] or 0)

    expected = {
        record[0]
        for record in records
        if record[5] and all(follows(record, other) for other in records if other[0] == record[0] and not other[5])
    }
    assert set(places(standing_tombstones(frame(records), {"a": 0}))) == expected


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 1), st.integers(0, 1), st.integers(0, 9)), max_size=6),
    st.lists(
        st.tuples(
            st.integers(0, 1), st.integers(0, 1), st.integers(0, 9), st.booleans(), st.none() | st.integers(0, 3)
        ),
        max_size=3,
    ),
    st.lists(st.none() | st.integers(0, 3), min_size=3, max_size=3),
)
def test_keys_that_a_tombstone_may_delete_are_those_that_a_comparison_one_by_one_finds(
    values: list[tuple[int, int, int, int]],
    unread: list[tuple[int, int, int, bool, int | None]],
    hours: list[int | None],
) -> None:
    def moment(hour: int | None) -> datetime | None:
        return None if hour is None else T + timedelta(hours=hour)

    def may_delete(place: tuple[int, int, int, bool, int | None], key: int) -> bool:
        partition, lineage, offset, is_gone, before = place
        own = [value for value in values if value[0] == key]
        beside = [value[2:] for value in own if value[1] == partition]
        if beside:
            return (lineage, offset) > max(beside)
        hour = hours[key - 1]
        return not (is_gone and own) and (hour is None or before is None or hour < before)

    frames = [frame([(key, "a", at, place, 0, False)], lineage=lineage) for key, at, lineage, place in values]
    rows = [("log", "a", *place[:4], moment(place[4])) for place in unread]
    keys = pl.DataFrame(
        [(key, 0, moment(hours[key - 1])) for key in (1, 2, 3)],
        schema={"key_hi": pl.UInt64, "key_lo": pl.UInt64, "time": pl.Datetime("us", "UTC")},
        orient="row",
    )
    places = pl.DataFrame(rows, schema=UNREAD_PLACES, orient="row")
    deleted = may_be_deleted(keys, pl.concat([empty(LOG_ORDER), *frames]), places, {"a": 0})
    assert {*deleted["key_hi"]} == {key for key in (1, 2, 3) if any(may_delete(place, key) for place in unread)}


KEYED = ValueShape(key=("kafka.key",), compare={"x": "int"}, tombstones_erase=True)


def test_a_tombstone_is_neither_a_copy_nor_undecodable_where_it_erases() -> None:
    batch = log(
        [
            {"key": b"a", "value": b'{"x":1}', "offset": 1},
            {"key": b"a", "value": None, "offset": 2},
            {"key": b"b", "value": None, "offset": 3, "is_aborted": True},
            {"key": None, "value": None, "offset": 4},
            {"key": b"c", "value": b"", "offset": 5},
        ]
    )

    read = topic_records(batch, KEYED)

    assert read.copies.select("key", "offset").rows() == [("a", 1)]
    assert read.tombstones.select("key", "partition", "offset").rows() == [("a", 2, 2)]
    assert read.undecodable.rows() == [("2:4", "key is null", None), ("2:5", "value is not JSON", "c")]
    assert log_order(read.tombstones, "log", "id").select("offset", "is_tombstone").rows() == [(2, True)]


def test_without_the_word_of_a_store_a_tombstone_is_undecodable() -> None:
    batch = log([{"key": b"a", "value": None, "offset": 2}])
    read = topic_records(batch, ValueShape(key=("kafka.key",), compare={"x": "int"}))
    assert (len(read.copies), len(read.tombstones)) == (0, 0)
    assert read.undecodable.rows() == [("2:2", "value is null (a tombstone)", "a")]


def test_records_without_tombstones_are_as_before() -> None:
    assert isinstance(log([]), pa.RecordBatch)
    read = topic_records(log([]), KEYED)
    assert (len(read.copies), len(read.undecodable), len(read.tombstones)) == (0, 0, 0)
