"""Check the canonical texts of typed keys, one by one, many at once, and out of whole records."""

import json
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.key_values import canonical_keys, part_text, without_key
from makewhole.compute.keys import KeyProblem, component_text
from makewhole.model.points import KeyType
from tests.world.key_spellings import JSON_SCALARS, MOMENTS, SPELLINGS

pytestmark = pytest.mark.unit

UUID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (KeyType.STRING, "007", "007"),
        (KeyType.STRING, 7, "7"),
        (KeyType.STRING, Decimal("5.00"), "5"),
        (KeyType.STRING, "5.00", "5.00"),
        (KeyType.STRING, True, "true"),
        (KeyType.BIGINT, 7, "7"),
        (KeyType.BIGINT, "007", "7"),
        (KeyType.BIGINT, "+7", "7"),
        (KeyType.BIGINT, "-0", "0"),
        (KeyType.BIGINT, Decimal("1E+2"), "100"),
        (KeyType.BIGINT, "1e2", "100"),
        (KeyType.BIGINT, Decimal("100.0"), "100"),
        (KeyType.BIGINT, -(2**63), "-9223372036854775808"),
        (KeyType.BIGINT, 2**63 - 1, "9223372036854775807"),
        (KeyType.DECIMAL, "5.00", "5"),
        (KeyType.DECIMAL, 2**70, "1180591620717411303424"),
        (KeyType.DECIMAL, Decimal("-0.0"), "0"),
        (KeyType.DECIMAL, Decimal("1E-7"), "0.0000001"),
        (KeyType.DECIMAL, "-00.50", "-0.5"),
        (KeyType.UUID, UUID.upper(), UUID),
        (KeyType.UUID, UUID.replace("-", ""), UUID),
        (KeyType.INET, "2001:DB8:0:0::1/128", "2001:db8::1"),
        (KeyType.INET, "10.0.0.1/32", "10.0.0.1"),
        (KeyType.BOOLEAN, True, "true"),
        (KeyType.BOOLEAN, "FALSE", "false"),
        (KeyType.BOOLEAN, "t", "true"),
        (KeyType.DATE, "2012-02-29", "2012-02-29"),
        (KeyType.TIMESTAMP, "2013-01-01T02:00:00+02:00", "2013-01-01T00:00:00.000000Z"),
        (KeyType.TIMESTAMP, "2013-01-01 00:00:00.1234567", "2013-01-01T00:00:00.123457Z"),
        (KeyType.TIMESTAMP, "0001-01-01", None),
        (KeyType.TIMESTAMP, "0001-01-01T00:00Z", "0001-01-01T00:00:00.000000Z"),
        (KeyType.CHAR, "AB   ", "AB"),
        (KeyType.CHAR, " AB\t", " AB\t"),
        (KeyType.CHAR, 5, "5"),
    ],
)
def test_a_value_has_one_text(kind: KeyType, value: Any, text: str | None) -> None:
    if text is None:
        with pytest.raises(KeyProblem):
            part_text(value, kind)
    else:
        assert part_text(value, kind) == text
        assert part_text(text, kind) == text


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (KeyType.BIGINT, "1_2", "key is not a bigint"),
        (KeyType.BIGINT, "１２", "key is not a bigint"),
        (KeyType.BIGINT, " 7", "key is not a bigint"),
        (KeyType.BIGINT, "7\n", "key is not a bigint"),
        (KeyType.BIGINT, Decimal("7.5"), "key is not a bigint"),
        (KeyType.BIGINT, 2**63, "key is not a bigint"),
        (KeyType.BIGINT, True, "key is not a bigint"),
        (KeyType.BIGINT, Decimal("Infinity"), "key is not a bigint"),
        (KeyType.DECIMAL, Decimal("1E+999999999"), "key is not a number"),
        (KeyType.DECIMAL, "1e1000", "key is not a number"),
        (KeyType.DECIMAL, "NaN", "key is not a number"),
        (KeyType.DECIMAL, False, "key is not a number"),
        (KeyType.UUID, 7, "key is not a uuid"),
        (KeyType.INET, "localhost", "key is not a network address"),
        (KeyType.INET, 7, "key is not a network address"),
        (KeyType.UUID, f"{{{UUID}}}", "key is not a uuid"),
        (KeyType.BOOLEAN, 1, "key is not a boolean"),
        (KeyType.BOOLEAN, "yes", "key is not a boolean"),
        (KeyType.DATE, "2013-02-30", "key is not a date"),
        (KeyType.DATE, 20130101, "key is not a date"),
        (KeyType.DATE, "2013-01-01T00:00:00", "key is not a date"),
        (KeyType.TIMESTAMP, 1356998400, "key is not a timestamp"),
        (KeyType.TIMESTAMP, "9999-12-31T23:59:59.9999999Z", "key is not a timestamp"),
        (KeyType.CHAR, "   ", "key is not a char"),
        *((kind, None, "key is null") for kind in KeyType),
        *((kind, "", "key is empty") for kind in KeyType),
        *((kind, {}, "key is not a scalar") for kind in KeyType),
        *((kind, "1\x00", "key contains NUL, which no table can hold") for kind in KeyType),
    ],
)
def test_what_is_no_value_of_the_type_is_refused_with_the_reason(kind: KeyType, value: Any, reason: str) -> None:
    with pytest.raises(KeyProblem) as caught:
        part_text(value, kind)
    assert str(caught.value) == reason


@given(JSON_SCALARS)
def test_a_text_key_is_what_it_always_was(value: Any) -> None:
    """Its hash is in every index that there is."""
    answers = []
    for render in (component_text, lambda part: part_text(part, KeyType.STRING)):
        try:
            answers.append(render(value))
        except KeyProblem as problem:
            answers.append(f"! {problem}")
    assert answers[0] == answers[1]


@pytest.mark.parametrize("kind", list(KeyType))
def test_many_texts_have_the_keys_that_each_of_them_has(kind: KeyType) -> None:
    @given(st.lists(SPELLINGS.get(kind, MOMENTS), max_size=12))
    def check(texts: list[str]) -> None:
        texts = [text for text in texts if text] if kind is KeyType.STRING else texts
        keys, problems = canonical_keys(pl.Series(texts, dtype=pl.String), kind)
        assert list(zip(keys, problems, strict=True)) == [one_by_one(text, kind) for text in texts]

    check()


def test_many_moments_are_each_a_day_of_a_month() -> None:
    texts = [
        "2013-02-30T00:00:00.000000Z",
        "2013-02-28T23:59:59Z",
        "2013-02-28 23:59:59.5",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00.000000Z",
        "9999-12-31 23:59:59.999999",
        "2013-01-01T24:00:00.000000Z",
        "2013-01-01T23:59:60Z",
        "2013-01-01T01:00:00+01:00",
        "2013-01-01T00:00",
        "!",
    ]
    keys, problems = canonical_keys(pl.Series(texts), KeyType.TIMESTAMP)
    assert list(zip(keys, problems, strict=True)) == [one_by_one(text, KeyType.TIMESTAMP) for text in texts]
    assert keys.to_list() == [
        None,
        "2013-02-28T23:59:59.000000Z",
        "2013-02-28T23:59:59.500000Z",
        None,
        "0001-01-01T00:00:00.000000Z",
        "9999-12-31T23:59:59.999999Z",
        "2013-01-02T00:00:00.000000Z",
        "2013-01-02T00:00:00.000000Z",
        "2013-01-01T00:00:00.000000Z",
        "2013-01-01T00:00:00.000000Z",
        None,
    ]


def one_by_one(value: Any, kind: KeyType) -> tuple[str | None, str | None]:
    try:
        return part_text(value, kind), None
    except KeyProblem as problem:
        return None, str(problem)


def written(value: object) -> str:
    """Return a scalar as JSON writes it, numbers exactly."""
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("kind", list(KeyType))
def test_records_have_the_keys_of_their_values_however_many_are_decoded_together(kind: KeyType) -> None:
    shape = ValueShape(key=("$.id",), compare={"n": "int"}, key_layout=(kind,))

    @given(st.lists(st.one_of(JSON_SCALARS, SPELLINGS.get(kind, MOMENTS)), min_size=1, max_size=12))
    def check(values: list[Any]) -> None:
        texts = [f'{{"id": {written(value)}, "n": 1}}'.encode() for value in values]
        headers = pa.array([None] * len(texts), HEADERS)
        batch = pa.RecordBatch.from_arrays([pa.array(texts, pa.binary()), headers], names=["value", "headers"])
        decoded = decode_values(batch, shape)
        assert decoded.select("key", "problem").rows() == [one_by_one(value, kind) for value in values]

    check()


def test_the_parts_of_a_record_key_and_a_header_are_read_by_their_types() -> None:
    shape = ValueShape(
        key=("kafka.key", "header:region"),
        compare={},
        keeps_tombstones=True,
        key_layout=(KeyType.DECIMAL, KeyType.STRING),
    )
    headers = pa.array([[{"key": "region", "value": b"007"}]] * 3, HEADERS)
    columns = [pa.array([b"5.00", b"5_0", None], pa.binary()), pa.nulls(3, pa.binary()), headers]
    batch = pa.RecordBatch.from_arrays(columns, names=["key", "value", "headers"])
    assert decode_values(batch, shape).select("key", "problem").rows() == [
        ('["5","007"]', None),
        (None, "key is not a number"),
        (None, "key is null"),
    ]


def test_a_row_without_a_key_says_what_it_should_have_been() -> None:
    assert without_key(()) == without_key((KeyType.STRING,)) == "key is null or empty"
    assert without_key((KeyType.DECIMAL, KeyType.STRING, KeyType.UUID)) == (
        "key is null or empty, or not a number and a uuid"
    )
