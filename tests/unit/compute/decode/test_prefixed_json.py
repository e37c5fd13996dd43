"""Test JSON behind the prefix of a schema registry, as a value and as a record key: alike together and one by one."""

import json
from typing import Any
from unittest import mock

import pytest

from makewhole.compute.decode import record_values
from makewhole.compute.decode.record_keys import RECORD_KEY_FORMATS
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.schema_texts import KEY_SCHEMA_HEADER, SCHEMA_HEADER
from makewhole.compute.decode.shapes.divided_records import decode_records
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.decode.shapes.prefixed_json import PrefixedJsonFormat
from makewhole.compute.keys import KeyProblem
from makewhole.model.points import TopicPoint
from makewhole.window.formats import format_of
from tests.unit.compute.decode.avro.written import batch, prefix
from tests.unit.compute.decode.test_schema_keys import named

pytestmark = pytest.mark.unit

SHAPE = ValueShape(key=("$.id",), compare={"n": "int"}, format=PrefixedJsonFormat())
KEYS = RECORD_KEY_FORMATS["json_schema"]
NO_PREFIX = "value does not begin with the zero byte before the number of its schema"


def value(number: int, **more: Any) -> bytes:
    return prefix(number % 3 + 1) + json.dumps({"id": f"O{number}", "n": number, **more}).encode()


def named_by(header: str, content: bytes) -> list[dict[str, Any]]:
    return [{"key": header, "value": content}]


def test_usual_values_are_decoded_together_whatever_their_schema() -> None:
    values: list[bytes | None] = [value(number, more=1) if number % 5 else value(number) for number in range(300)]

    with mock.patch.object(record_values, "_decode_one_by_one") as alone:
        decoded = decode_values(batch(values), SHAPE)

    assert not alone.called
    assert decoded["key"].to_list() == [f"O{number}" for number in range(300)]
    assert decoded["c:n"].to_list() == [str(number) for number in range(300)]


@pytest.mark.parametrize("neighbours", [0, 300])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"id": "a", "n": 1}', NO_PREFIX),
        (b"", "value is shorter than the prefix that names its schema"),
        (b"\0\0\0\0", "value is shorter than the prefix that names its schema"),
        (prefix(1), "value is not JSON"),
        (prefix(1) + b'{"id": "a"', "value is not JSON"),
        (prefix(1) + b"[]", "value is not a JSON object"),
        (prefix(1) + b'{"n": 1}', "key is null"),
        (b"\1" + prefix(1)[1:] + b'{"id": "a"}', NO_PREFIX),
        (prefix(1) + b'{"id": "\xff"}', "value is not valid UTF-8"),
        (None, "value is null (a tombstone)"),
    ],
)
def test_a_value_that_is_none_of_the_format_has_no_key(content: bytes | None, problem: str, neighbours: int) -> None:
    values = [value(number) for number in range(neighbours)]

    decoded = decode_values(batch([*values, content]), SHAPE)

    assert decoded.row(-1)[:2] == (None, problem)
    assert decoded["key"].to_list()[:-1] == [f"O{number}" for number in range(neighbours)]
    assert decoded.equals(record_values._decode_one_by_one(batch([*values, content]), SHAPE))


@pytest.mark.parametrize("values", [[None, None], [b"{}", b"x"], [prefix(1)]])
def test_a_batch_without_any_usual_value_is_read_one_by_one(values: list[bytes | None]) -> None:
    elements = Elements(path=("lines",), format=PrefixedJsonFormat())
    divided = ValueShape(key=("$.id", "$.lines.sku"), compare={}, format=ElementFormat(), elements=elements)

    assert decode_values(batch(values), SHAPE).equals(record_values._decode_one_by_one(batch(values), SHAPE))
    assert decode_records(batch(values), divided).frame["key"].to_list() == [None] * len(values)


def test_a_header_stands_for_the_prefix() -> None:
    plain, wrong = value(2)[5:], named_by(SCHEMA_HEADER, b"7")
    headers: list[Any] = [[], named_by(SCHEMA_HEADER, prefix(7)), named_by(SCHEMA_HEADER, b"\1" + bytes(16)), wrong]

    decoded = decode_values(batch([value(1), plain, plain, plain], headers), SHAPE)

    assert decoded.select("key", "problem").rows() == [
        ("O1", None),
        ("O2", None),
        ("O2", None),
        (None, f"header {SCHEMA_HEADER} names no schema"),
    ]


def test_a_row_that_is_marked_as_deleted_deletes_its_key() -> None:
    point = TopicPoint(name="orders", connection="log", topic="orders", key=("$.id",), value="json_schema")
    shape = ValueShape(key=("$.id",), compare={"n": "int"}, format=format_of(point), keeps_tombstones=True)

    decoded = decode_values(batch([value(1, __deleted="true"), value(2, __deleted="false")]), shape)

    assert decoded.select("key", "is_tombstone").rows() == [("O1", True), ("O2", False)]


def test_the_elements_of_an_array_are_found_as_those_of_plain_json() -> None:
    values = [value(number, lines=[{"sku": number}, {"sku": -number}]) for number in range(1, 200)]
    elements = Elements(path=("lines",), format=PrefixedJsonFormat())
    shape = ValueShape(key=("$.id", "$.lines.sku"), compare={"n": "int"}, format=ElementFormat(), elements=elements)

    with mock.patch.object(Elements, "values_of") as alone:
        frame = decode_records(batch([*values, value(200, lines=[])]), shape).frame

    assert not alone.called
    assert frame["key"].to_list() == [f'["O{at}","{sku}"]' for at in range(1, 200) for sku in (at, -at)]
    broken = decode_records(batch([values[0], b"{}"]), shape).frame
    assert broken["problem"].to_list() == [None, None, "value is shorter than the prefix that names its schema"]


def test_a_template_sees_the_fields_and_no_record_is_made() -> None:
    form = PrefixedJsonFormat()

    assert form.template_value(value(7), None)["n"] == 7
    with pytest.raises(KeyProblem, match="no record of a JSON Schema is made of a row"):
        form.encode(b"{}")


def test_a_record_key_is_the_json_behind_its_prefix() -> None:
    keys = [prefix(1) + b'{"id": "A7"}', b'{"id": "A7"}', prefix(1) + b'"A7"', None, b'{"id": "A8"}']
    headers = [None, None, None, None, named_by(KEY_SCHEMA_HEADER, prefix(1))]

    assert named(KEYS, "kafka.key.id", keys, headers) == [
        ("A7", None),
        (None, NO_PREFIX.replace("value", "record key")),
        (None, "record key is no object, and has no field"),
        (None, "key is null"),
        ("A8", None),
    ]
    whole: list[bytes | None] = [
        prefix(1) + b'"A7"',
        prefix(2) + b"70",
        b'"A7000"',
        prefix(1) + b'"' + b"x" * 40 + b'"',
        b'"A9"',
    ]
    assert named(KEYS, "kafka.key", whole, headers) == [
        ("A7", None),
        ("70", None),
        (None, NO_PREFIX.replace("value", "record key")),
        ("x" * 40, None),
        ("A9", None),
    ]
