"""Test that the rows of many keys are found among others: by positions, and by texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.datasets import wanted_keys
from makewhole.datasets.wanted_keys import OffsetRuns, WantedKeys, bigints
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.points import KeyType, PointKind, TablePoint

pytestmark = pytest.mark.unit

BY_POSITION = TablePoint(
    name="lake",
    connection="lake",
    table="dw.orders",
    kind=PointKind.STORE,
    key=("p", "o"),
    key_layout=(KeyType.BIGINT, KeyType.BIGINT),
    dataset=DatasetPlace(format="parquet", partition="p", offset="o"),
)
BY_TEXT = TablePoint(
    name="lake",
    connection="lake",
    table="dw.orders",
    kind=PointKind.STORE,
    key=("id",),
    dataset=DatasetPlace(format="parquet"),
)
PARTITIONS = st.sampled_from([0, 1, 2, 7, 40])
OFFSETS = st.one_of(st.integers(0, 12), st.integers(10**12, 10**12 + 12))
PLACES = st.tuples(PARTITIONS, OFFSETS)


def rows(places: Sequence[tuple[Any, Any]], kinds: Sequence[Any] = (pa.int32(), pa.int64())) -> pa.Table:
    """Return rows at positions."""
    columns = list(zip(*places, strict=True)) or [(), ()]
    return pa.table({name: pa.array(column, kind) for name, column, kind in zip("po", columns, kinds, strict=True)})


@given(st.sets(PLACES, min_size=1, max_size=40), st.lists(PLACES, max_size=40), st.sampled_from([0, 10**14]))
def test_positions_are_found_as_a_set_finds_them(
    wanted: set[tuple[int, int]], others: list[tuple[int, int]], dense: int
) -> None:
    """Both ways of finding runs: marks in one array, and sorting."""
    numbers = [np.array(column, dtype=np.int64) for column in zip(*sorted(wanted), strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wanted_keys, "_DENSE", min(dense, 10**5 if max(numbers[1]) < 100 else 0))
        positions = OffsetRuns.of(*numbers)
    assert positions is not None
    asked = [*others, *wanted, (3, 1), (-1, 0), (0, -1), (0, 2**62), (2**31, 0)]
    marks = positions.among(*(np.array(column, dtype=np.int64) for column in zip(*asked, strict=True)))
    assert marks.tolist() == [place in wanted for place in asked]
    by_partition = {at: [offset for own, offset in wanted if own == at] for at, _ in sorted(wanted)}
    assert positions.edges() == [(at, min(offsets), max(offsets)) for at, offsets in by_partition.items()]


def test_a_key_that_is_there_twice_is_one() -> None:
    positions = OffsetRuns.of(np.array([0, 0, 0, 1, 1]), np.array([5, 5, 6, 5, 5]))
    assert positions is not None
    assert positions.first.tolist() == [5, (1 << 47) + 5]
    assert positions.last.tolist() == [6, (1 << 47) + 5]


@pytest.mark.parametrize("place", [(-1, 0), (0, -1), (0, 2**50), (2**20, 0)])
def test_numbers_that_no_log_has_are_no_positions(place: tuple[int, int]) -> None:
    assert OffsetRuns.of(np.array([place[0]]), np.array([place[1]])) is None


def test_keys_are_positions_where_rows_are_known_by_theirs() -> None:
    keys = ['["0","5"]', '["0","6"]', '["2","0"]']
    by_text = WantedKeys.of_texts(BY_POSITION, keys)
    by_number = WantedKeys(BY_POSITION, pl.DataFrame({"partition": [0, 0, 2], "offset": [5, 6, 0]}))
    for wanted in (by_text, by_number):
        assert wanted.positions is not None
        assert wanted.positions.edges() == [(0, 5, 6), (2, 0, 0)]
        assert wanted.texts.to_list() == keys
        places = [(0, 5), (0, 7), (None, 6), (0, None), (2, 0), (1, 5)]
        assert wanted.among(rows(places)).tolist() == [True, False, False, False, True, False]
    assert WantedKeys.of_texts(BY_TEXT, ["a"]).positions is None


@pytest.mark.parametrize(
    "key", ['["0","05"]', '["0","-5"]', '["a","5"]', '["0","5","1"]', "0", '["0","99999999999999999999"]']
)
def test_a_key_that_is_no_position_is_compared_as_text(key: str) -> None:
    """One of them makes all of them texts, and a row has only the spelling that numbers have."""
    wanted = WantedKeys.of_texts(BY_POSITION, ['["0","5"]', key])
    assert wanted.positions is None
    assert wanted.among(rows([(0, 5), (0, 6)])).tolist() == [True, False]


def test_positions_in_columns_of_texts_are_compared_as_texts() -> None:
    wanted = WantedKeys.of_texts(BY_POSITION, ['["0","5"]'])
    assert wanted.among(rows([("0", "5"), ("0", "6")], (pa.string(), pa.string()))).tolist() == [True, False]


@given(
    st.sets(st.text(st.characters(codec="utf-8"), max_size=3), min_size=1), st.lists(st.none() | st.text(max_size=3))
)
def test_texts_are_found_by_their_hashes_as_by_themselves(wanted: set[str], texts: list[str | None]) -> None:
    keys = WantedKeys.of_texts(BY_TEXT, sorted(wanted))
    asked = pl.Series([*texts, *sorted(wanted), None], dtype=pl.String)
    expected = [text in wanted for text in asked]
    assert keys.among_texts(asked).tolist() == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wanted_keys, "_FEW", 0)
        assert keys.among_texts(asked).tolist() == expected


def test_no_key_is_among_none() -> None:
    assert WantedKeys.of_texts(BY_TEXT, []).among_texts(pl.Series(["a", None])).tolist() == [False, False]
    assert WantedKeys.of_texts(BY_POSITION, []).among(rows([(0, 5)])).tolist() == [False]


def test_parts_of_keys_are_those_of_their_texts() -> None:
    keys = WantedKeys.of_texts(BY_POSITION, ['["a\\"\\u00e9","1"]', '["b","2"]'])
    assert [part.to_list() for part in keys.parts] == [['a"é', "b"], ["1", "2"]]
    assert WantedKeys.of_texts(BY_TEXT, ['["x"]']).parts[0].to_list() == ['["x"]']


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1", "-2"], [1, -2]),
        (["1", "a"], None),
        (["1", "1.0"], None),
        (["9" * 19], None),
        (["١"], None),
        ([" 1"], None),
    ],
)
def test_texts_are_numbers_where_all_of_them_are(texts: list[str], numbers: list[int] | None) -> None:
    column = bigints(pl.Series(texts))
    assert (None if column is None else column.to_list()) == numbers
