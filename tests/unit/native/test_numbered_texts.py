"""Test texts that differ in their numbers alone, against Python's own."""

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from makewhole.native import numbered_texts as module
from makewhole.native.numbered_texts import numbered_texts

pytestmark = pytest.mark.unit

POWERS = [sign * (10**power + step) for power in range(19) for step in (-1, 0, 1) for sign in (1, -1)]
NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([*POWERS, 2**63 - 1, -(2**63)]))
LITERALS = st.sampled_from(["", "[", '["', "é", "a long literal, beyond what a view holds itself"])


@given(
    literals=st.tuples(LITERALS, LITERALS, LITERALS),
    rows=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=6),
)
@example(literals=("", "", ""), rows=[])
@example(literals=("", "", ""), rows=[(0, 10**9), (10**10, -1)])
def test_they_are_as_python_writes_them(literals: tuple[str, str, str], rows: list[tuple[int, int]]) -> None:
    columns = [np.array([row[at] for row in rows], dtype=np.int64) for at in (0, 1)]

    texts = numbered_texts(literals, columns)

    first, second, third = literals
    assert texts.to_list() == [f"{first}{left}{second}{other}{third}" for left, other in rows]
    assert texts.dtype == pl.String


def test_every_power_of_ten_is_written_whole() -> None:
    texts = numbered_texts(("", ""), [np.array(POWERS, dtype=np.int64)])

    assert texts.to_list() == [str(number) for number in POWERS]


def test_texts_of_more_than_one_buffer_are_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 100)

    texts = numbered_texts(("position ", ""), [np.arange(20)])

    assert texts.to_list() == [f"position {number}" for number in range(20)]
