"""Test that texts are held to UTF-8, wherever in a row they are."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from makewhole.datasets.whole_texts import require_texts

pytestmark = pytest.mark.unit

BYTES = st.lists(
    st.none() | st.sampled_from([b"", b"orders", "é".encode(), b"\xc3", b"\xa9", b"\xff", b"a" * 9 + b"\x80"]),
    max_size=12,
)


def is_text(raw: bytes | None) -> bool:
    try:
        return raw is None or raw.decode() is not None
    except UnicodeDecodeError:
        return False


def passes(column: Any) -> bool:
    try:
        require_texts(pa.table({"c": column}))
        require_texts(pa.record_batch({"c": column}))
    except pa.ArrowInvalid:
        return False
    return True


def as_texts(raw: list[bytes | None], kind: pa.DataType) -> Any:
    held = pa.array(raw, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind, len(held), held.buffers(), held.null_count)


@given(raw=BYTES)
@example(raw=[b"\xc3", b"\xa9"])  # together they are a letter
@example(raw=[b"a" * 9 + b"\x80"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_texts_pass_as_python_has_it(kind: pa.DataType, raw: list[bytes | None]) -> None:
    expected = all(map(is_text, raw))
    texts = as_texts(raw, kind)
    assert passes(texts) == expected
    assert passes(pa.StructArray.from_arrays([pa.array(range(len(raw))), texts], ["n", "t"])) == expected
    assert passes(pa.StructArray.from_arrays([pa.StructArray.from_arrays([texts], ["t"])], ["s"])) == expected
    edges = pa.array(range(len(raw) + 1), pa.int32())
    assert passes(pa.ListArray.from_arrays(edges, texts)) == expected


def test_numbers_are_left_alone() -> None:
    assert passes(pa.array([1, None]))
    assert passes(pa.array([b"\xff"]))
