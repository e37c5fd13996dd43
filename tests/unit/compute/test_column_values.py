"""Test how the values of a record are encoded for a table, and which of them stand for no value."""

import json
from typing import Any

import pytest

from makewhole.compute.column_values import ColumnValue, as_object, parse_fields
from makewhole.model.errors import RefusedError

pytestmark = pytest.mark.unit


def value(raw: str, declared: str) -> ColumnValue:
    """Return a field of a record, given as JSON."""
    return ColumnValue.of_record(parse_fields(f'{{"x": {raw}}}'.encode())["x"], declared)


@pytest.mark.parametrize(
    ("declared", "raw", "written"),
    [
        ("timestamp", '"2013-01-01T12:00:00+02:00"', "2013-01-01T10:00:00+00:00"),
        ("timestamp", '"20130101T120000Z"', "2013-01-01T12:00:00+00:00"),
        ("timestamp", '"9999-12-31T23:59:59.9999996-01:00"', "9999-12-31T23:59:59.9999996-01:00"),
        ("int", "7.0", "7"),
        ("int", "1e2", "100"),
        ("int", '"007"', "7"),
        ("string", "1e2", "100"),
        ("string", "-0.0", "-0.0"),
        ("boolean", '"TRUE"', "true"),
        ("date", '"20130228"', "2013-02-28"),
    ],
)
def test_what_a_table_would_read_otherwise_is_encoded_again(declared: str, raw: str, written: Any) -> None:
    assert json.loads(value(raw, declared).as_json) == written


@pytest.mark.parametrize(
    ("declared", "raw"),
    [
        ("timestamp", '"2013-01-01T12:00:00Z"'),
        ("timestamp", '"2013-01-01 12:00"'),
        ("timestamp", '"infinity"'),
        ("int", "7"),
        ("int", "true"),
        ("string", '"a"'),
        ("string", "1.10"),
        ("string", "true"),
        ("string", '{"a": 1.10, "b": [1E+2, null]}'),
        ("boolean", "true"),
        ("decimal(6,1)", "7.04"),
        ("double", "0.12345678901234567890"),
        ("date", '"2013-02-28"'),
        ("date", "null"),
    ],
)
def test_what_a_table_reads_as_it_is_compared_stays_as_it_is(declared: str, raw: str) -> None:
    assert value(raw, declared).as_json.replace(" ", "") == raw.replace(" ", "")


def test_an_object_has_its_columns_in_order_and_nothing_else() -> None:
    fields = parse_fields(b'\xef\xbb\xbf{"b": 7.0, "c": 1, "a": "x"} ')
    columns = {name: ColumnValue.of_record(fields.get(name), "int") for name in ("d", "b")}
    assert as_object(columns) == b'{"d":null,"b":"7"}'
    assert as_object({}) == b"{}"


@pytest.mark.parametrize("raw", ["1e999999999", '"\\ud800"', "1e99999999999999999999"])
def test_what_no_table_holds_is_still_json(raw: str) -> None:
    assert json.loads(value(raw, "double").as_json) is not None


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
    assert value(raw, "string").is_placeholder is is_placeholder
