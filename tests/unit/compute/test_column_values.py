"""Test how the values of a record are encoded for a table, and which of them stand for no value."""

import json
from typing import Any

import pytest

from makewhole.compute.column_values import ColumnValue, as_object, parse_fields
from makewhole.model.errors import RefusedError

pytestmark = pytest.mark.unit


def value(raw: str, declared: str, column: str) -> ColumnValue:
    """Return a field of a record, given as JSON, for a column of a type."""
    return ColumnValue.of_record(parse_fields(f'{{"x": {raw}}}'.encode())["x"], declared, column)


ZONED, DAY = "timestamp with time zone", "date"


@pytest.mark.parametrize(
    ("declared", "column", "raw", "written"),
    [
        ("timestamp", ZONED, '"2013-01-01T12:00:00+02:00"', "2013-01-01T10:00:00+00:00"),
        ("timestamp", ZONED, '"20130101T120000Z"', "2013-01-01T12:00:00+00:00"),
        ("timestamp", ZONED, '"9999-12-31T23:59:59.9999996-01:00"', "9999-12-31T23:59:59.9999996-01:00"),
        ("date", ZONED, '"2013-01-31T12:34:56+02:00"', "2013-01-31T10:34:56+00:00"),
        (
            "timestamp(3)",
            "timestamp without time zone",
            '"2013-01-31T12:34:56.123456+01"',
            "2013-01-31T11:34:56.123456+00:00",
        ),
        ("date", DAY, '"2013-01-31T12:34:56Z"', "2013-01-31"),
        ("date", DAY, '"20130228"', "2013-02-28"),
        ("int", "bigint", "7.0", "7"),
        ("int", "bigint", "1e2", "100"),
        ("int", "bigint", '"007"', "7"),
        ("decimal(6,2)", "numeric", '"$1,234.50"', "1234.5"),
        ("string", "text", "1e2", "100"),
        ("string", "text", "-0.0", "-0.0"),
        ("boolean", "boolean", '"Y"', "true"),
        ("boolean", "integer", "true", 1),
        ("json", "jsonb", '"{\\"b\\": [1.10]}"', {"b": [1.1]}),
        ("json", "text", '{"b": 1.10, "a": null}', '{"b":1.10,"a":null}'),
    ],
)
def test_what_a_column_would_read_otherwise_is_encoded_for_it(
    declared: str, column: str, raw: str, written: Any
) -> None:
    assert json.loads(value(raw, declared, column).as_json) == written


@pytest.mark.parametrize(
    ("declared", "column", "raw"),
    [
        ("timestamp", ZONED, '"2013-01-01T12:00:00Z"'),
        ("date", ZONED, '"2013-01-31T12:34:56Z"'),
        ("timestamp", ZONED, '"2013-01-01 12:00"'),
        ("timestamp", ZONED, '"infinity"'),
        ("timestamp", "text", '"2013-01-01T12:00:00.1234567+02:00"'),
        ("date", "text", '"2013-01-01T12:00:00+02:00"'),
        ("int", "integer", "7"),
        ("int", "integer", "true"),
        ("int", "text", "7.0"),
        ("string", "text", '"a"'),
        ("string", "text", "1.10"),
        ("string", "text", "true"),
        ("string", "text", '{"a": 1.10, "b": [1E+2, null]}'),
        ("boolean", "boolean", "true"),
        ("boolean", "text", '"Y"'),
        ("char", "text", '"a  "'),
        ("uuid", "character varying", '"A0EEBC999C0B4EF8BB6D6BB9BD380A11"'),
        ("json", "text", '"{\\"b\\": 1.10,\\n\\"a\\": 2}"'),
        ("json", "jsonb", '"a"'),
        ("decimal(6,1)", "numeric", "7.04"),
        ("double", "double precision", "0.12345678901234567890"),
        ("date", DAY, '"2013-02-28"'),
        ("date", DAY, "null"),
    ],
)
def test_what_a_column_reads_exactly_stays_as_it_is(declared: str, column: str, raw: str) -> None:
    assert value(raw, declared, column).as_json.replace(" ", "") == raw.replace(" ", "")


@pytest.mark.parametrize(
    ("declared", "column", "raw", "is_exact"),
    [
        ("date", DAY, '"2013-01-31T23:30:00-05:00"', False),
        ("date", DAY, '"2013-01-01T00:00:00+02:00"', False),
        ("date", DAY, '"2012-12-31T22:00:00-02:00"', True),
        ("timestamp", DAY, '"2012-12-31T24:00:00Z"', True),
        ("date", DAY, '"2013-01-31T12:34:56Z"', True),
        ("date", DAY, '"n/a"', True),
        ("date", ZONED, '"2013-01-31T23:30:00-05:00"', True),
        ("json", "jsonb", '"5"', False),
        ("json", "json", '"null"', False),
        ("json", "jsonb", '"\\"a\\""', False),
        ("json", "jsonb", '"{}"', True),
        ("json", "jsonb", '"a"', True),
        ("json", "jsonb", "5", True),
        ("json", "text", '"5"', True),
    ],
)
def test_what_has_two_readings_in_a_column_is_not_exact(declared: str, column: str, raw: str, is_exact: bool) -> None:
    assert (value(raw, declared, column).why_inexact is None) is is_exact


def test_a_column_of_texts_is_held_to_the_very_text() -> None:
    assert value('"Y"', "boolean", "text").expected == ("string", "Y")
    assert value("1.50", "decimal(6,1)", "text").expected == ("string", "1.50")
    assert value('"a  "', "string", "bpchar").expected == ("char", "a")
    assert value("null", "boolean", "text").expected == ("string", None)
    assert value('"Y"', "boolean", "boolean").expected == ("boolean", "true")


def test_an_object_has_its_columns_in_order_and_nothing_else() -> None:
    fields = parse_fields(b'\xef\xbb\xbf{"b": 7.0, "c": 1, "a": "x"} ')
    columns = {name: ColumnValue.of_record(fields.get(name), "int", "integer") for name in ("d", "b")}
    assert as_object(columns) == b'{"d":null,"b":"7"}'
    assert as_object({}) == b"{}"


@pytest.mark.parametrize("raw", ["1e999999999", '"\\ud800"', "1e99999999999999999999"])
def test_what_no_table_holds_is_still_json(raw: str) -> None:
    assert json.loads(value(raw, "double", "double precision").as_json) is not None


@pytest.mark.parametrize(
    ("raw", "column"),
    [
        ("1e99999999999999999999", "jsonb"),
        ('[{"a": 1e99999999999999999999}]', "json"),
        ('"[1e99999999999999999999]"', "jsonb"),
        ('"{\\"a\\": [-1e99999999999999999999]}"', "jsonb"),
        ('["[1e99999999999999999999]", 1e99999999999999999999]', "jsonb[]"),
    ],
)
def test_a_number_that_cannot_be_written_is_refused_and_stops_nothing(raw: str, column: str) -> None:
    written = value(raw, "json", column)

    assert written.why_inexact == "the record has a number whose exponent is too large to be written"
    assert written.as_json
    assert written.expected


@pytest.mark.parametrize("depth", [201, 400, 3_000])
def test_json_that_is_too_deep_to_be_written_is_refused_and_stops_nothing(depth: int) -> None:
    written = ColumnValue.of_record("[" * depth + "]" * depth, "json", "jsonb")

    assert written.why_inexact == "the record has JSON that is nested more than 200 deep"


def test_a_large_number_in_json_is_written() -> None:
    assert value('"[1e300, 1e2000]"', "json", "jsonb").why_inexact is None
    assert value('"[1e99999999999999999999]"', "json", "text").why_inexact is None


@pytest.mark.parametrize(("text", "reason"), [(b"no json", "not JSON"), (b"[1]", "not a JSON object")])
def test_a_value_that_is_no_object_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(RefusedError, match=f"unfit: the record's value is {reason}"):
        parse_fields(text)


@pytest.mark.parametrize(
    ("raw", "is_placeholder"),
    [
        ('"__debezium_unavailable_value"', True),
        ('"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="', True),
        ('"__debezium_unavailable_value "', False),
        ("null", False),
        ("7", False),
        ("{}", False),
    ],
)
def test_what_a_capture_did_not_send_is_known_by_its_placeholder(raw: str, is_placeholder: bool) -> None:
    assert value(raw, "string", "text").is_placeholder is is_placeholder
