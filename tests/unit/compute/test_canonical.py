"""Check the canonical text of values and the row hash."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl
import polars_hash as plh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.canonical import (
    canonical_text,
    decimal_scale,
    float_text,
    float_texts,
    plain_text,
    with_row_hash,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("value", "declared", "text"),
    [
        (None, "string", None),
        ("", "string", ""),
        (" a ", "string", " a "),
        (True, "string", "true"),
        (Decimal("1.10"), "string", "1.10"),
        (1, "int", "1"),
        ("1", "int", "1"),
        (Decimal("1.0"), "bigint", "1"),
        (Decimal("1E+3"), "int", "1000"),
        (Decimal("1.5"), "int", "1.5"),
        (True, "int", "!'true'"),
        (2**70, "bigint", str(2**70)),
        (Decimal("1E+999999999"), "int", "!'1E+999999999'"),
        (Decimal("2.345"), "decimal(6,2)", "2.35"),
        (Decimal("2.335"), "decimal(6,2)", "2.34"),
        (Decimal("-2.345"), "decimal(6,2)", "-2.35"),
        (Decimal("-0.004"), "decimal(6,2)", "0.00"),
        (3, "decimal(6,1)", "3.0"),
        (Decimal("0.00000001"), "decimal(20,9)", "0.000000010"),
        (Decimal("2.5"), "decimal(3,0)", "3"),
        (Decimal("Infinity"), "decimal(6,1)", "!'Infinity'"),
        (Decimal("1E+999999999"), "decimal(6,1)", "!'1E+999999999'"),
        ([0, [1], 2], "decimal(6,1)", "!'[0, [1], 2]'"),
        (Decimal("0.1"), "double", "0.1"),
        (Decimal("-0.0"), "double", "0.0"),
        (Decimal("0.10000000149011612"), "real", "0.1"),
        ("12:00", "time", "12:00:00"),
        ("12:00:00.500", "time", "12:00:00.5"),
        ("23:59:59.9999996", "time", "24:00:00"),
        ("24:00:00.1", "time", "!'24:00:00.1'"),
        ("12:00:00Z", "time", "!'12:00:00Z'"),
        (43200, "time", "!'43200'"),
        ("08-00-2B-01-02-03", "macaddr", "08:00:2b:01:02:03"),
        ("0800.2b01.0203", "macaddr", "08:00:2b:01:02:03"),
        ("08002b010203", "macaddr", "08:00:2b:01:02:03"),
        ("08002b:010203", "macaddr", "08:00:2b:01:02:03"),
        ("08002b01020", "macaddr", "!'08002b01020'"),
        ("Infinity", "real", "inf"),
        (Decimal("-0.0"), "real", "0.0"),
        (16777217, "real", "16777216.0"),
        (1, "double", "1.0"),
        (Decimal("1E+400"), "double", f"!'1{'0' * 400}'"),
        (Decimal("1E-400"), "double", "0.0"),
        ("NaN", "double", "nan"),
        ("-Infinity", "double", "-inf"),
        ("nan", "double", "!'nan'"),
        ("NaN", "int", "NaN"),
        ("Infinity", "decimal(6,1)", "Infinity"),
        ("infinity", "decimal(6,1)", "!'infinity'"),
        (Decimal("1E+100"), "decimal(6,1)", f"1{'0' * 100}.0"),
        (10**90, "decimal(38,9)", f"1{'0' * 90}.000000000"),
        ("infinity", "timestamp", "!infinity"),
        ("-infinity", "date", "!-infinity"),
        (["infinity"], "timestamp", "!'[\"infinity\"]'"),
        (True, "boolean", "true"),
        ("False", "boolean", "false"),
        (1, "boolean", "true"),
        (2, "boolean", "!'2'"),
        (Decimal(1), "boolean", "true"),
        (Decimal("1.0"), "boolean", "!'1.0'"),
        ("F", "boolean", "false"),
        ("1970-01-01 00:00:01 UTC", "timestamp", "1000000"),
        ("1970-01-01t00:00:01z", "timestamp", "1000000"),
        ("1969-12-31T24:00:00Z", "timestamp", "0"),
        ("1970-01-01 05:53:28+05:53:28", "timestamp", "0"),
        ("10000-01-01T00:00:00Z", "timestamp", "253402300800000000"),
        ("0044-03-15 00:00:00+00 BC", "timestamp", "-63517824000000000"),
        ("1969-12-31T24:00:01Z", "timestamp", "!'1969-12-31T24:00:01Z'"),
        ("0044-03-15 BC", "date", "0044-03-15 BC"),
        ("10000-01-01", "date", "10000-01-01"),
        ("2013-01-01T00:30:00+02:00", "date", "2012-12-31"),
        (Decimal("1E-7"), "string", "0.0000001"),
        ({"b": Decimal("1.50"), "a": [None, True]}, "string", """!'{"a": [null, true], "b": 1.5}'"""),
        ('{"b":1.50,"aa":[null]}', "json", '{"b": 1.5, "aa": [null]}'),
        ({"aa": [], "b": Decimal("1.5")}, "json", '{"b": 1.5, "aa": []}'),
        ("null", "json", None),
        ('"x"', "json", "x"),
        ("1.50", "json", "1.5"),
        ({"b": None, "a": [{"c": None}, None]}, "parts", '{"a": [{}, null]}'),
        ('{"at": "2025-03-01 12:00:00.120+02"}', "parts", '{"at": "2025-03-01T10:00:00.120000Z"}'),
        (["2025-03-01T10:00:00"], "parts", '["2025-03-01T10:00:00.000000Z"]'),
        (["2025-03-01T10:00:00.1200004 UTC"], "parts", '["2025-03-01T10:00:00.120000Z"]'),
        (["2025-02-30T10:00:00Z", "2025-03-01"], "parts", '["2025-02-30T10:00:00Z", "2025-03-01"]'),
        ('{1,NULL,"a,b"}', "string[]", '["1", null, "a,b"]'),
        (["1", None, "a,b"], "string[]", '["1", null, "a,b"]'),
        ("[0:1]={t,f}", "boolean[]", '["true", "false"]'),
        ([[1], [2]], "int[]", '[["1"], ["2"]]'),
        ("{1", "int[]", "!'{1'"),
        ("{\xa0a,\x0bb }", "string[]", '["\xa0a", "b"]'),
        ("ab  ", "char", "ab"),
        ("6F9619FF8B86D011B42D00C04FC964FF", "uuid", "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
        ("10.0.0.1/32", "inet", "10.0.0.1"),
        ("::1/128", "inet", "::1"),
        ("2001:DB8::1", "inet", "2001:db8::1"),
        ("2001:db8:0:0:0:0:0:1/128", "inet", "2001:db8::1"),
        ("2001:0DB8::1/032", "inet", "!'2001:0DB8::1/032'"),
        ("2001:0DB8::1/32", "inet", "2001:db8::1/32"),
        ("1:0:0:2:3:0:0:3", "inet", "1::2:3:0:0:3"),
        ("1:2:3:4:5:6:7::", "inet", "1:2:3:4:5:6:7:0"),
        ("::ffff:102:304", "inet", "::ffff:1.2.3.4"),
        ("::1:0", "inet", "::0.1.0.0"),
        ("::1:ffff:1.2.3.4", "inet", "::1:ffff:102:304"),
        ("010.000.0.1/08", "inet", "10.0.0.1/8"),
        ("10/8", "inet", "!'10/8'"),
        ("10.0.0.1/255.0.0.0", "inet", "!'10.0.0.1/255.0.0.0'"),
        ("fe80::1%eth0", "inet", "!'fe80::1%eth0'"),
        ("1::2:3:4:5:6:7:8", "inet", "!'1::2:3:4:5:6:7:8'"),
        ("!", "inet", "!'!'"),
        ("{2001:DB8::1,NULL}", "inet[]", '["2001:db8::1", null]'),
        ("$1,234.50", "decimal(8,2)", "1234.50"),
        ("1970-01-01T00:00:01Z", "timestamp", "1000000"),
        ("1970-01-01 00:00:01", "timestamp", "1000000"),
        ("1970-01-01T01:00:01+01:00", "timestamp", "1000000"),
        ("1969-12-31T23:59:59.999999Z", "timestamp", "-1"),
        ("1970-01-01T00:00:00.0000014Z", "timestamp", "1"),
        ("1970-01-01T00:00:00.0000015Z", "timestamp", "2"),
        ("1970-01-01T00:00:00.0000025Z", "timestamp", "2"),
        ("1969-12-31T23:59:59.9999999Z", "timestamp", "0"),
        ("1970-01-01T00:00:00.999999999Z", "timestamp", "1000000"),
        (1000, "timestamp", "!'1000'"),
        ("yesterday", "timestamp", "!'yesterday'"),
        ("2013-02-28", "date", "2013-02-28"),
        ("2013-02-30", "date", "!'2013-02-30'"),
        ("\ud800", "string", "!'\\ud800'"),
    ],
)
def test_a_value_has_one_text_in_its_declared_type(value: Any, declared: str, text: str | None) -> None:
    assert canonical_text(value, declared) == text


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12))
def test_equal_numbers_have_equal_texts_whatever_their_spelling(number: Decimal) -> None:
    encoded = [number, number.normalize(), Decimal(f"{number}00"), Decimal(f"{number:e}")]

    for declared in ("int", "double", "decimal(20,2)"):
        texts = {canonical_text(item, declared) for item in encoded if str(canonical_text(item, declared))[0] != "!"}
        assert len(texts) <= 1
    assert len({plain_text(item) for item in encoded}) == 1
    assert Decimal(plain_text(number)) == number


@given(st.floats(allow_nan=False))
def test_a_double_comes_back_from_its_text(value: float) -> None:
    assert float(float_text(value)) == value
    assert not float_text(value).startswith("-0.0") or value


def test_only_decimals_have_a_scale() -> None:
    assert decimal_scale("decimal(6,1)") == 1
    assert decimal_scale("DECIMAL( 38 , 10 )") == 10
    assert decimal_scale("double") is None


TEXTS = st.none() | st.text(alphabet="~:,1ab", max_size=4)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=2))
def test_rows_share_a_hash_only_when_every_column_is_equal(rows: list[tuple[str | None, str | None]]) -> None:
    frame = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String}, orient="row")
    left, right = with_row_hash(frame, ["a", "b"])["row_hash"]

    assert (left == right) == (rows[0] == rows[1])


def test_the_row_hash_is_pinned() -> None:
    frame = with_row_hash(pl.DataFrame({"a": ["x", None, ""]}), ["a"])

    assert frame["row_hash"].to_list() == [1049698931026941556, 15817190560483256476, 2695139062090132942]
    assert with_row_hash(pl.DataFrame({"a": [1]}), [])["row_hash"].item() == 0


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=6))
def test_the_row_hash_mixes_the_hashes_of_its_texts(rows: list[tuple[str | None, ...]]) -> None:
    """Written again in whole numbers, row by row: no row's neighbours change its hash."""
    frame = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String, "c": pl.String}, orient="row")

    hashed = with_row_hash(frame, ["a", "b", "c"])["row_hash"]

    assert hashed.to_list() == [mixed_hash(row) for row in rows]


def mixed_hash(texts: Sequence[str | None]) -> int:
    mixed = 0
    for text in texts:
        known = pl.DataFrame({"t": [text]}, schema={"t": pl.String}).select(plh.col("t").nchash.xxh3_64()).item()
        number = int.from_bytes(b"makewhol") if text is None else known
        mixed = (mixed ^ mixed >> 29) * 0x9E3779B97F4A7C15 + number & 2**64 - 1
    mixed = (mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15 & 2**64 - 1
    return mixed ^ mixed >> 29


@given(st.lists(st.none() | st.floats() | st.floats(min_value=1e-4, max_value=1e16)))
@settings(max_examples=50)
def test_many_doubles_have_the_texts_of_each(numbers: list[float | None]) -> None:
    texts = [None if number is None else float_text(number) for number in numbers]
    rendered = float_texts(pl.Series(numbers, dtype=pl.Float64), "double")
    assert rendered is not None and rendered.to_list() == texts


@given(st.lists(st.none() | st.floats(width=32) | st.floats(-3e38, 3e38) | st.floats(1e-4, 1e16)))
@settings(max_examples=50)
def test_many_numbers_of_four_bytes_have_the_texts_of_each(numbers: list[float | None]) -> None:
    rendered = float_texts(pl.Series(numbers, dtype=pl.Float64), "real")
    not_finite = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    texts = [None if number is None else not_finite.get(repr(number), Decimal(repr(number))) for number in numbers]
    assert rendered is not None and rendered.to_list() == [canonical_text(text, "real") for text in texts]


def test_a_number_that_four_bytes_do_not_hold_is_none_of_them() -> None:
    most, past = 3.4028235677973362e38, 3.4028235677973366e38  # the midpoint between the largest and infinity
    assert float_texts(pl.Series([most, None]), "real") is not None
    assert float_texts(pl.Series([past, None]), "real") is None
    assert canonical_text(Decimal(most), "real") == "3.4028235e+38"
    assert str(canonical_text(Decimal(past), "real")).startswith("!")
