"""Test columns of byte strings that stand somewhere in one content."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.native import byte_strings
from makewhole.native.byte_strings import Blobs, Content
from tests.unit.native.bounds_checks import bounds_checked

pytestmark = pytest.mark.unit

TEXTS = [bytes(range(65, 65 + length)) for length in range(20)]


@pytest.mark.parametrize("last", range(20))
def test_views_are_the_byte_strings_and_nothing_outside_the_content_is_read(last: int) -> None:
    texts: list[bytes | None] = [*TEXTS[:last], None, *TEXTS[last + 1 :], TEXTS[last]]
    lengths = [-1 if text is None else len(text) for text in texts]
    starts = np.cumsum([0, *(max(length, 0) for length in lengths)])[:-1]
    blobs = Blobs(starts=starts.astype(np.int32), lengths=np.array(lengths, dtype=np.int32))

    with bounds_checked(byte_strings):
        column = blobs.views(Content(b"".join(text or b"" for text in texts)))

    column.validate(full=True)
    assert column.to_pylist() == texts
    numbers = np.frombuffer(column.buffers()[1], dtype=np.uint8).reshape(-1, 16)
    assert all(not numbers[row, 4 + max(length, 0) :].any() for row, length in enumerate(lengths) if length <= 12)
    assert blobs.column(Content(b"".join(text or b"" for text in texts))).cast(pa.binary()).to_pylist() == texts


# Arrow keeps up to 12 bytes in a view itself, and points to the content for longer ones.
strings = st.lists(st.none() | st.binary(max_size=15), max_size=20)


def laid_out(texts: list[bytes | None], between: bytes) -> tuple[Blobs, Content]:
    """Return the strings as they stand in a content, with other bytes before, between and behind them."""
    content, starts = between, []
    for text in texts:
        starts.append(len(content))
        content += (text or b"") + between
    lengths = [-1 if text is None else len(text) for text in texts]
    return Blobs(starts=np.array(starts, dtype=np.int32), lengths=np.array(lengths, dtype=np.int32)), Content(content)


@given(strings, st.binary(max_size=3))
def test_a_copy_has_every_string_where_it_was_and_nothing_of_what_stands_between(
    texts: list[bytes | None], between: bytes
) -> None:
    blobs, content = laid_out(texts, between)
    column = blobs.column(content)
    assert (column.type, column.to_pylist()) == (pa.binary(), texts)


@given(strings)
def test_views_show_the_same_strings_as_a_copy(texts: list[bytes | None]) -> None:
    blobs, content = laid_out(texts, b"|")
    assert blobs.views(content).to_pylist() == texts


@given(strings, st.binary(max_size=3))
def test_only_the_bytes_of_the_strings_count_for_ascii(texts: list[bytes | None], between: bytes) -> None:
    blobs, content = laid_out(texts, between)
    with bounds_checked(byte_strings):
        assert blobs.are_ascii(content) == b"".join(text or b"" for text in texts).isascii()


def test_a_copy_outlives_its_content() -> None:
    blobs, content = laid_out([b"a", b"a string that is longer than a view"], b"|")
    column = blobs.column(content)
    del blobs, content
    assert column.to_pylist() == [b"a", b"a string that is longer than a view"]
    assert len(column.buffers()) == 3, "validity, offsets and bytes of its own, and no buffer of the content"
