"""Check the text of keys, and that their hashes never change."""

import json
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compute.buckets import bucket_of
from makewhole.compute.keys import KeyProblem, component_text, hash_hex, key_text, split_hex, with_hash

pytestmark = pytest.mark.unit


def test_the_hash_is_pinned() -> None:
    """It is stored: another value would make every earlier snapshot unreadable."""
    frame = with_hash(pl.DataFrame({"key": ["abc", "", "ü🙂"]})).with_columns(hash_hex())

    assert frame["key_hash"].to_list() == [
        "06b05ab6733a618578af5f94892f3950",
        "99aa06d3014798d86001c324468d497f",
        "34e76a9c42ff1941d076bd6ca3a1d810",
    ]
    assert frame.schema["key_hi"] == frame.schema["key_lo"] == pl.UInt64


@given(st.lists(st.text(), max_size=20))
def test_the_halves_of_a_hash_are_its_hexadecimal_digits(keys: list[str]) -> None:
    frame = with_hash(pl.DataFrame({"key": keys}, schema={"key": pl.String})).with_columns(hash_hex(), bucket_of(16))

    for high, low, text, bucket in frame.select("key_hi", "key_lo", "key_hash", "bucket").rows():
        assert split_hex(text) == (high, low) and len(text) == 32
        assert bucket == high % 16


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a b ", "a b "),
        ("1", "1"),
        ("1.0", "1.0"),
        (1, "1"),
        (-0, "0"),
        (Decimal("1.0"), "1"),
        (Decimal("1.10"), "1.1"),
        (Decimal("-0.0"), "0"),
        (Decimal("1E+2"), "100"),
        (Decimal("1E-7"), "0.0000001"),
        (2**63, "9223372036854775808"),
        (Decimal("9007199254740993.0"), "9007199254740993"),
        (Decimal("1.1234567890123456789012345678901234567"), "1.1234567890123456789012345678901234567"),
        (True, "true"),
        (False, "false"),
        ("e\u0301", "e\u0301"),
        ("\u00e9", "\u00e9"),
        ("\u202e<script>", "\u202e<script>"),
    ],
)
def test_a_component_keeps_its_text_and_a_number_its_value(value: Any, text: str) -> None:
    assert component_text(value) == text


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "key is null"),
        ({}, "key is not a scalar"),
        ([1], "key is not a scalar"),
        ("", "key is empty"),
        ("a\x00b", "key contains NUL, which no table can hold"),
        ("\ud800", r"key is not valid Unicode \(lone surrogate\)"),
        (Decimal("Infinity"), "key is a number beyond measure"),
        (Decimal("NaN"), "key is a number beyond measure"),
        (Decimal("1E+999999999"), "key is a number beyond measure"),
        (Decimal("1E-999999999"), "key is a number beyond measure"),
        (10**1001, "key is a number beyond measure"),
    ],
)
def test_a_value_that_can_be_no_key_is_refused_with_the_reason(value: Any, why: str) -> None:
    with pytest.raises(KeyProblem, match=f"^{why}$"):
        component_text(value)


@given(st.lists(st.text(min_size=1), min_size=2, max_size=4), st.lists(st.text(min_size=1), min_size=2, max_size=4))
def test_two_composite_keys_have_one_text_only_when_all_parts_agree(left: list[str], right: list[str]) -> None:
    assert json.loads(key_text(left)) == left
    assert (key_text(left) == key_text(right)) == (left == right)


def test_one_component_is_its_own_text() -> None:
    assert key_text(['["a","b"]']) == '["a","b"]'
    assert key_text(["a", 'b",\\\n']) == '["a","b\\",\\\\\\n"]'
