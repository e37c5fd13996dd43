"""Hold the hashes of keys and rows to those of another library, for texts of every length."""

from collections.abc import Sequence

import polars as pl
import polars_hash as plh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute import canonical, keys
from makewhole.compute.canonical import FEWEST_COMPILED, with_row_hash
from makewhole.compute.keys import with_hash
from makewhole.native import text_hashes
from makewhole.native.arrays import ArrowArray
from makewhole.native.text_hashes import MOST_KEY_BYTES, MOST_ROW_BYTES, TextViews, hash_keys, hash_rows
from tests.unit.native.bounds_checks import bounds_checked
from tests.world.examples import examples

pytestmark = pytest.mark.unit

TEXTS = st.text(max_size=40) | st.text("a\x00é~:,9", min_size=8, max_size=90)
ROWS = st.lists(st.tuples(st.none() | TEXTS, TEXTS, st.none() | TEXTS), min_size=1, max_size=30)
EVERY_LENGTH = ["\x00é9~"[number % 4] * number for number in range(MOST_KEY_BYTES + 1)]


def views(texts: Sequence[str | None], buffers: int = 1) -> TextViews:
    """Return a column whose texts are in so many pieces of memory, and begin behind a row of another column."""
    some = [pl.Series([text], dtype=pl.String) for text in texts[: buffers - 1]]
    whole = pl.concat([pl.Series(["a row of another column"]), *some, pl.Series(texts[len(some) :], dtype=pl.String)])
    found = TextViews.of(whole.rechunk().to_arrow(compat_level=pl.CompatLevel.newest()).slice(1))
    assert found is not None
    return found


def framed(row: Sequence[str | None]) -> str:
    return ",".join("~" if text is None else f"{len(text.encode())}:{text}" for text in row)


def of_keys(texts: Sequence[str]) -> list[int]:
    frame = pl.DataFrame({"key": texts}, schema={"key": pl.String})
    return frame.select(plh.col("key").nchash.xxh3_128()).to_series().to_list()


def of_rows(rows: Sequence[Sequence[str | None]]) -> list[int]:
    frame = pl.DataFrame({"row": [framed(row) for row in rows]}, schema={"row": pl.String})
    return frame.select(plh.col("row").nchash.xxh3_64()).to_series().to_list()


def key_numbers(texts: Sequence[str], buffers: int = 1) -> list[int]:
    found = hash_keys(views(texts, buffers))
    assert found is not None
    high, low = found
    return [upper << 64 | lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)]


def row_numbers(rows: Sequence[Sequence[str | None]], buffers: int = 1) -> list[int]:
    found = hash_rows([views(list(column), buffers) for column in zip(*rows, strict=True)])
    assert found is not None
    numbers: list[int] = found.tolist()
    return numbers


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(TEXTS.filter(lambda text: len(text.encode()) <= MOST_KEY_BYTES), min_size=1), st.integers(1, 4))
def test_keys_have_the_hash_of_their_text(texts: list[str], buffers: int) -> None:
    assert key_numbers(texts, buffers) == of_keys(texts)


@settings(max_examples=examples(200), deadline=None)
@given(ROWS.map(lambda rows: [row for row in rows if len(framed(row).encode()) <= MOST_ROW_BYTES]), st.integers(1, 4))
def test_rows_have_the_hash_of_their_texts_behind_their_lengths(
    rows: list[tuple[str | None, ...]], buffers: int
) -> None:
    if rows:
        assert row_numbers(rows, buffers) == of_rows(rows)


def test_texts_of_every_length_have_their_hash_and_no_byte_outside_them_is_read() -> None:
    """Takes long: the loops are compiled once more, with every index checked."""
    texts = [text for text in EVERY_LENGTH if len(text.encode()) <= MOST_KEY_BYTES]
    rows: list[tuple[str | None, ...]] = [(text, "") for text in texts]
    rows += [(None, "x" * number) for number in range(MOST_ROW_BYTES - 5)]  # behind `~,234:`

    with bounds_checked(text_hashes):
        assert key_numbers(texts) == of_keys(texts)
        assert row_numbers(rows) == of_rows(rows)


def test_what_is_too_long_or_null_is_left_to_the_library() -> None:
    assert hash_keys(views(["a", "x" * (MOST_KEY_BYTES + 1)])) is None
    assert hash_keys(views(["a", None])) is None
    assert hash_rows([views(["a", "x" * MOST_ROW_BYTES])]) is None


def test_the_memory_of_many_rows_is_not_copied_for_a_few() -> None:
    many = pl.concat([pl.Series(["a text of many others"] * 1000), pl.Series(["another one of many"] * 1000)])
    array: ArrowArray = many.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())

    assert len(array.buffers()) > 3
    assert TextViews.of(array) is not None
    assert TextViews.of(array.slice(0, 3)) is None


@pytest.mark.parametrize("most", [30, 130])
def test_many_rows_have_the_hashes_that_few_have(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [None if number % 7 == 0 else "é" * (number % most) for number in range(2 * FEWEST_COMPILED)]
    frame = pl.DataFrame({"key": [text or "" for text in texts], "c:a": texts, "c:b": texts[::-1]})
    few = [with_row_hash(with_hash(part), ["c:a", "c:b"]) for part in frame.iter_slices(FEWEST_COMPILED - 1)]
    if most == 30:  # then the other library is not asked
        monkeypatch.setattr(keys, "plh", None)
        monkeypatch.setattr(canonical, "plh", None)

    assert with_row_hash(with_hash(frame), ["c:a", "c:b"]).equals(pl.concat(few))
