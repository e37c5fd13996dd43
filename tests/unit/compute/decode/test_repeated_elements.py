"""Check which copy is left of several elements of one record that have one key."""

from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compute.decode.shapes.repeated_elements import one_of_each
from makewhole.compute.versions import MOMENTS, UNREADABLE, VERSION

pytestmark = pytest.mark.unit

Copy = tuple[int, str, Any, str | None, list[str]]


def frame(*copies: Copy) -> pl.DataFrame:
    offsets, keys, versions, values, filters = zip(*copies, strict=True)
    return pl.DataFrame(
        [
            pl.Series("partition", [0] * len(copies), dtype=pl.Int32),
            pl.Series("offset", offsets, dtype=pl.Int64),
            pl.Series("key", keys, dtype=pl.String),
            pl.Series(
                "version", [None if version is None else Decimal(version) for version in versions], dtype=VERSION
            ),
            pl.Series("c:a", values, dtype=pl.String),
            pl.Series("excluded_by", filters, dtype=pl.List(pl.String)),
        ]
    )


def left(*copies: Copy) -> tuple[list[str | None], list[str]]:
    """Return the values of the copies that are left, and the keys that could not be read."""
    elements = one_of_each(frame(*copies))
    return elements.copies["c:a"].to_list(), elements.unreadable["key"].to_list()


def test_elements_of_other_records_and_keys_are_left_alone() -> None:
    assert left((1, "A", None, "x", []), (2, "A", None, "y", []), (2, "B", None, "z", [])) == (["x", "y", "z"], [])


def test_equal_elements_are_one() -> None:
    assert left((1, "A", None, "x", []), (1, "B", None, "y", []), (1, "A", None, "x", [])) == (["x", "y"], [])
    assert left((1, "A", None, None, []), (1, "A", None, None, [])) == ([None], [])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, "A", None, "x", []), (1, "A", None, "y", [])),
        ((1, "A", None, "x", []), (1, "A", None, None, [])),
        ((1, "A", None, "x", []), (1, "A", None, "x", ["hop"])),
        ((1, "A", 3, "x", []), (1, "A", None, "y", [])),
        ((1, "A", 3, "x", []), (1, "A", UNREADABLE, "y", [])),
        ((1, "A", 3, "x", []), (1, "A", MOMENTS, "y", [])),
        ((1, "A", 3, "x", []), (1, "A", None, "x", [])),
    ],
)
def test_elements_that_nothing_orders_cannot_be_read(first: Copy, second: Copy) -> None:
    for copies in ((first, second), (second, first)):
        assert left((1, "B", None, "b", []), *copies) == (["b"], ["A"])


def test_the_highest_version_counts_wherever_it_stands() -> None:
    older: Copy = (1, "A", 3, "x", ["hop"])
    newer: Copy = (1, "A", "4.5", "y", [])
    for copies in ((older, newer), (newer, older), (older, newer, newer)):
        assert left(*copies) == (["y"], [])
    assert left(older, newer, (1, "A", "4.5", "z", [])) == ([], ["A"])


_COPIES = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from("AB"),
        st.sampled_from([None, 1, 2, UNREADABLE, MOMENTS]),
        st.sampled_from(["x", "y", None]),
        st.sampled_from([[], ["hop"]]),
    ),
    min_size=1,
    max_size=6,
)


@given(_COPIES)
def test_a_key_of_a_record_is_a_copy_or_cannot_be_read(copies: list[Copy]) -> None:
    """Each once, in the order of the log, whatever the order of the elements."""
    elements = one_of_each(frame(*copies))
    kept, bad = (list(part.select("offset", "key").iter_rows()) for part in (elements.copies, elements.unreadable))
    assert sorted(kept + bad) == sorted({copy[:2] for copy in copies})
    for offset, key in kept:
        of_key = [copy for copy in copies if copy[:2] == (offset, key)]
        [left_one] = elements.copies.filter((pl.col("offset") == offset) & (pl.col("key") == key)).to_dicts()
        best = _best(of_key)
        assert best is not None
        assert (left_one["c:a"], left_one["excluded_by"]) == best
    assert all(_best([copy for copy in copies if copy[:2] == pair]) is None for pair in bad)


def _best(of_key: list[Copy]) -> tuple[str | None, list[str]] | None:
    """Return what a key has by its newest element; None: nothing says which that is."""
    versions = [copy[2] for copy in of_key]
    if set(versions) <= {1, 2} or set(versions) == {MOMENTS}:
        of_key = [copy for copy in of_key if copy[2] == max(versions)]
    said = {(copy[2], copy[3], *copy[4]) for copy in of_key}
    return (of_key[0][3], of_key[0][4]) if len(said) == 1 else None
