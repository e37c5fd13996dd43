"""Test that moments which are read many at once are those that are read one by one."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from makewhole.compute.moments import microseconds_of, rounded_microseconds
from makewhole.native import moments
from makewhole.native.moments import read_moments
from tests.unit.native.bounds_checks import bounds_checked
from tests.world.examples import examples

pytestmark = pytest.mark.unit

_FORM = r"([0-2][0-9]{3}|9999|000[0-4])-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
USUAL = st.from_regex(_FORM + r"(\.[0-9]{1,7})?(Z|[+-][01][0-9]:[0-6][0-9])?", fullmatch=True)
TEXTS = st.one_of(
    USUAL, USUAL.flatmap(lambda text: st.integers(0, len(text)).map(lambda at: text[:at] + text[at + 1 :]))
)
PLAIN = [
    "2024-02-29T23:59:59.5Z",
    "2000-02-29 00:00:00",
    "0001-01-01T00:00:00+15:59",
    "9999-12-31T23:59:59.999999-15:59",
]
NONE = [
    "2023-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "0000-01-01T00:00:00Z",
]
LEFT = [
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:00:60Z",
    "2026-01-01T00:00:00.1234567Z",
    "2026-01-01",
    "2026-01-01T00:00:00+16:00",
]


def _read(texts: list[str | None], digits: int = 6) -> list[int | None]:
    encoded = [None if text is None else text.encode() for text in texts]
    content = np.frombuffer(b"2" + b"".join(filter(None, encoded)), dtype=np.uint8)
    lengths = np.array([-1 if text is None else len(text) for text in encoded], dtype=np.int32)
    starts = (1 + np.concatenate([[0], np.cumsum(np.maximum(lengths, 0))[:-1]])).astype(np.int32)[: len(texts)]
    microseconds, is_read = read_moments(content, starts, lengths, digits)
    return [number if done else None for number, done in zip(microseconds.tolist(), is_read.tolist(), strict=True)]


@settings(max_examples=examples(500), deadline=None)
@given(texts=st.lists(TEXTS | st.none(), max_size=5), digits=st.integers(0, 6))
@example(texts=[*PLAIN, *NONE, *LEFT], digits=6)
@example(texts=["1999-12-31T23:59:59.5Z", "2000-01-01T00:00:00.5Z"], digits=0)
def test_what_is_read_is_what_one_by_one_is_read(texts: list[str | None], digits: int) -> None:
    with bounds_checked(moments):
        numbers = _read(texts, digits)
    for text, number in zip(texts, numbers, strict=True):
        if number is not None:
            assert text is not None
            assert number == rounded_microseconds(microseconds_of(text), digits), text


def test_the_usual_forms_are_read() -> None:
    assert None not in _read([*PLAIN])
    assert set(_read([*NONE, *LEFT, None, ""])) == {None}
