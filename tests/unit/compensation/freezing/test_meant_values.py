"""Test what a row must hold by a record, and how the record's value is spelled for a table."""

import json
from typing import Any

import pytest

from makewhole.compensation.freezing.meant_values import RecordValue
from makewhole.model.errors import RefusedError

pytestmark = pytest.mark.unit


def spelled(fields: str, compare: dict[str, str], zoneless: tuple[str, ...] = ()) -> bytes:
    record = RecordValue.parse(f"{{{fields}}}".encode())
    return record.spelled(record.meant(compare), zoneless, lambda text: f"server read {text}")


@pytest.mark.parametrize(
    ("declared", "raw", "written"),
    [
        ("timestamp", '"2013-01-01T12:00:00+02:00"', "2013-01-01T10:00:00+00:00"),
        ("timestamp", '"20130101T120000Z"', "2013-01-01T12:00:00+00:00"),
        ("timestamp", '"9999-12-31T23:59:59.9999996-01:00"', "9999-12-31T23:59:59.9999996-01:00"),
        ("int", "7.0", "7"),
        ("int", "1e2", "100"),
        ("int", '"007"', "7"),
        ("string", "1e2", "1E+2"),
        ("string", "-0.0", "-0.0"),
        ("boolean", '"TRUE"', "true"),
        ("date", '"20130228"', "2013-02-28"),
    ],
)
def test_what_a_table_would_read_otherwise_is_spelled_again(declared: str, raw: str, written: Any) -> None:
    text = spelled(f'"id": 1, "x": {raw}', {"x": declared})
    assert json.loads(text)["x"] == written
    assert text.startswith(f'{{"id": 1, "x": {raw}'.encode()), "the record's own text stays in front"


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
        ("string", '{"a": 1}'),
        ("boolean", "true"),
        ("decimal(6,1)", "7.04"),
        ("double", "0.12345678901234567890"),
        ("date", '"2013-02-28"'),
        ("date", "null"),
    ],
)
def test_what_a_table_reads_as_it_is_judged_stays_as_it_is(declared: str, raw: str) -> None:
    text = f'"id": 1, "x": {raw}'
    assert spelled(text, {"x": declared}) == f"{{{text}}}".encode()


def test_a_field_that_is_absent_is_meant_to_be_null_and_is_not_added() -> None:
    record = RecordValue.parse(b'{"id": 1} ')
    assert record.meant({"x": "int"}) == (("x", "int", None),)
    assert spelled('"id": 1', {"x": "int"}) == b'{"id": 1}'


def test_columns_without_a_zone_that_are_not_compared_get_the_moment_too() -> None:
    text = spelled(
        '"a": "2013-01-01T12:00+02:00", "b": "Jan 1 12:00 +02", "c": "2013-01-01", "d": 5', {}, ("a", "b", "d")
    )
    assert json.loads(text) == {
        "a": "2013-01-01T10:00:00+00:00",
        "b": "server read Jan 1 12:00 +02",
        "c": "2013-01-01",
        "d": 5,
    }


def test_an_empty_object_and_a_nested_field_are_written_flat() -> None:
    assert spelled('"a": {"b": 7.0}', {"a.b": "int"}) == b'{"a": {"b": 7.0},"a.b":"7"}'


def test_a_byte_order_mark_is_left_out_and_a_number_past_all_bounds_fills_no_memory() -> None:
    assert RecordValue.parse(b'\xef\xbb\xbf{"x": 1}').text == b'{"x": 1}'
    assert json.loads(spelled('"x": 1e999999999', {"x": "string"}))["x"] == "1E+999999999"


@pytest.mark.parametrize(("text", "reason"), [(b"no json", "not JSON"), (b"[1]", "not a JSON object")])
def test_a_value_that_is_no_object_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(RefusedError, match=f"unfit: the record's value is {reason}"):
        RecordValue.parse(text)
