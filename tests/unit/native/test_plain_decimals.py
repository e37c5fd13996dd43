"""Test which texts are plain decimal numbers, against a regular expression."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from makewhole.native.plain_decimals import fraction_sizes

pytestmark = pytest.mark.unit

PLAIN = re.compile(r"(?:0|-?[1-9][0-9]{0,30}|-0(?=\.[0-9]*[1-9]))(?:\.([0-9]+))?")
TEXTS = st.one_of(
    st.from_regex(PLAIN, fullmatch=True),
    st.text("0019-.e+ ٣\n", max_size=6),
    st.sampled_from(
        [
            "",
            "-",
            "-0",
            "-0.5",
            "-0.00",
            "-0.01",
            "-00.1",
            "00",
            "1.",
            ".5",
            "1.5\n",
            "9" * 31,
            "9" * 32,
            "-" + "9" * 31 + ".1",
        ]
    ),
)


@given(texts=st.lists(st.none() | TEXTS, max_size=5))
@example(texts=[])
@example(texts=[None])
def test_it_is_as_a_regular_expression_says(texts: list[str | None]) -> None:
    encoded = [None if text is None else text.encode() for text in texts]
    content = np.frombuffer(b"7" + b"".join(filter(None, encoded)), dtype=np.uint8)
    lengths = np.array([-1 if text is None else len(text) for text in encoded], dtype=np.int32)
    starts = (1 + np.concatenate([[0], np.cumsum(np.maximum(lengths, 0))[:-1]])).astype(np.int32)[: len(texts)]
    matches = [re.fullmatch(PLAIN, text) for text in texts if text is not None]

    lengths_of_fractions = fraction_sizes(content, starts, lengths)

    if not all(matches):
        assert lengths_of_fractions is None
    elif matches:
        sizes = [len(match.group(1) or "") for match in matches if match]
        assert lengths_of_fractions == (min(sizes), max(sizes))
    else:
        assert lengths_of_fractions == (2**63 - 1, 0)
