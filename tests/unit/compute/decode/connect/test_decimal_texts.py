"""Test that decimals which are rendered together are what each of them is alone."""

import base64

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.canonical import canonical_text
from makewhole.compute.decode.connect.decimal_texts import decimal_texts
from makewhole.compute.decode.connect.logical_types import conversion
from tests.world.examples import examples

pytestmark = pytest.mark.unit

UNSCALED = st.one_of(st.integers(-300, 300), st.integers(-(2**54), 2**54))


def encoded(number: int, more_bytes: int) -> str:
    size = min(number.bit_length() // 8 + 1 + more_bytes, max(7, number.bit_length() // 8 + 1))
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


def one_by_one(raw: list[str | None], scale: int, declared: str) -> list[str | None]:
    schema = {"name": "org.apache.kafka.connect.data.Decimal", "type": "bytes", "parameters": {"scale": str(scale)}}
    convert = conversion(schema)
    assert convert is not None
    return [canonical_text(convert(text), declared) for text in raw]


@settings(max_examples=examples(500), deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.builds(encoded, UNSCALED, st.integers(0, 3))), min_size=1, max_size=8),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_decimals_together_are_those_of_one_by_one(raw: list[str | None], scale: int, places: int) -> None:
    declared = f"decimal(38,{places})"

    texts = decimal_texts(pl.Series(raw, dtype=pl.String), scale, declared)

    assert (texts is None) == (places < scale)
    if texts is not None:
        assert texts.to_list() == one_by_one(raw, scale, declared)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.builds(encoded, UNSCALED, st.integers(0, 3))), min_size=1, max_size=8),
    st.integers(0, 9),
)
def test_amounts_together_are_those_of_one_by_one(raw: list[str | None], scale: int) -> None:
    texts = decimal_texts(pl.Series(raw, dtype=pl.String), scale, "bigint")

    assert texts is not None
    assert texts.to_list() == one_by_one(raw, scale, "bigint")


@pytest.mark.parametrize("unusual", ["", "AQ", "A===", "AR==", "x", "AQ==\n", "____", "AAAAAAAAAAA=", "ü"])
def test_what_is_unusual_is_left(unusual: str) -> None:
    assert decimal_texts(pl.Series(["AQ==", unusual]), 2, "decimal(8,2)") is None
    assert decimal_texts(pl.Series(["AQ=="]), 2, "string") is None
