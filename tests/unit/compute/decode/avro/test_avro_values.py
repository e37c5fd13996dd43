"""Check that Avro values are decoded right: one as a library of others does, many as one, and as JSON of the same."""

import json
import sys
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import record_values
from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.avro.encode import encode_body
from makewhole.compute.decode.avro.schema import parse_schema
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.shapes.divided_records import decode_records
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.decode.value_format import WantedLeaf
from makewhole.compute.keys import KeyProblem
from makewhole.model.points import KeyType
from tests.unit.compute.decode.avro.written import SIMPLE, Drawn, Schemas, batch, body, fields, prefix, read_back
from tests.world.examples import examples

pytestmark = pytest.mark.unit

TYPES = ["string", "int", "bigint", "double", "boolean", "decimal(12,2)", "decimal(38,9)", "timestamp", "timestamp(3)"]
TYPES += ["date", "json", "char", "uuid"]


def record(parts: dict[str, Any], name: str = "Order") -> dict[str, Any]:
    schema = {"type": "record", "name": name, "namespace": "shop"}
    return {**schema, "fields": [{"name": field, "type": kind} for field, kind in parts.items()]}


ORDER = record(
    {
        "id": "long",
        "state": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]},
        "total": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        "note": ["null", "string"],
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "lines": {"type": "array", "items": record({"sku": "string", "n": "int"}, "Line")},
        "to": ["null", record({"city": ["string", "null"], "day": {"type": "int", "logicalType": "date"}}, "To")],
    }
)
GOOD = {
    "id": 7,
    "state": "PAID",
    "total": b"\x02\xbc",
    "note": None,
    "at": 1_359_633_600_000_000,
    "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": -2}],
    "to": {"city": "Zürich", "day": 15_736},
}
SCHEMAS = Schemas({"ids/7": ORDER})


def shape_of(schemas: Schemas, compare: dict[str, str], **more: Any) -> ValueShape:
    """Return a shape with columns whose names are paths."""
    places = {name: f"$.{name}" for name in compare}
    return ValueShape(key=("$.id",), compare=compare, places=places, format=AvroFormat(schemas), **more)


def good(number: int) -> bytes:
    return prefix(7) + body(ORDER, {**GOOD, "id": number})


def test_a_value_has_the_fields_that_json_would_have() -> None:
    assert AvroFormat(SCHEMAS).document(good(7), ()) == {
        "id": 7,
        "state": "PAID",
        "total": Decimal("7.00"),
        "note": None,
        "at": "2013-01-31T12:00:00.000000Z",
        "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": -2}],
        "to": {"city": "Zürich", "day": "2013-01-31"},
    }


def test_many_values_are_decoded_at_once() -> None:
    compare = {"state": "string", "total": "decimal(12,3)", "note": "string", "at": "timestamp", "to.day": "date"}
    shape = shape_of(SCHEMAS, {**compare, "absent": "string"}, key_layout=(KeyType.BIGINT,))
    values: list[bytes | None] = [good(number) for number in range(300)]

    _, left = shape.format.decode_together(batch(values), record_values._wanted(shape))

    assert not len(left)
    decoded = decode_values(batch(values), shape)
    assert decoded["key"].to_list() == [str(number) for number in range(300)]
    assert decoded.drop("key", "is_tombstone").unique().rows() == [
        (None, "PAID", "7.000", None, "1359633600000000", "2013-01-31", None, None, [])
    ]


NO_ZERO = "value does not begin with the zero byte before the number of its schema"
NO_SYMBOL = "value has a branch or a symbol that its schema does not have"
BAD: dict[str, tuple[bytes | None, str]] = {
    "a tombstone": (None, "value is null (a tombstone)"),
    "nothing": (b"", "value is shorter than the prefix that names its schema"),
    "another first byte": (
        b"\x01" + good(1)[1:],
        "value does not begin with the zero byte before the number of its schema",
    ),
    "JSON": (b'{"id": 7}', NO_ZERO),
    "an unknown schema": (prefix(8) + good(1)[5:], "schema ids/8 is not in the registry"),
    "cut off": (good(1)[:-1], "value ends before its schema does"),
    "prefix alone": (prefix(7), "value ends before its schema does"),
    "one byte more": (good(1) + b"\x00", "value goes on behind what its schema describes"),
    "a symbol too high": (
        prefix(7) + b"\x02\x04" + good(1)[7:],
        "value has a branch or a symbol that its schema does not have",
    ),
    "a symbol below zero": (
        prefix(7) + b"\x02\x01" + good(1)[7:],
        "value has a branch or a symbol that its schema does not have",
    ),
    "a length below zero": (prefix(7) + b"\x02\x00\x01", "value has a length below zero"),
    "a number of 65 bits": (prefix(7) + b"\xff" * 9 + b"\x02", "value has a number of more than 64 bits"),
}


@pytest.mark.parametrize(("value", "problem"), BAD.values(), ids=BAD)
def test_a_bad_value_is_named_and_leaves_its_neighbours_alone(value: bytes | None, problem: str) -> None:
    shape = shape_of(SCHEMAS, {"state": "string", "total": "decimal(12,2)"})

    decoded = decode_values(batch([good(1), value, good(2), good(3)]), shape)

    assert decoded["key"].to_list() == ["1", None, "2", "3"]
    assert decoded["problem"].to_list() == [None, problem, None, None]
    assert decoded["c:total"].to_list() == ["7.00", None, "7.00", "7.00"]


def test_text_that_is_no_utf_8_is_a_bad_value_also_in_a_field_that_is_not_read() -> None:
    schemas = Schemas({"ids/1": record({"id": "long", "text": "string"})})

    decoded = decode_values(
        batch([prefix(1) + b"\x02\x04\xc3\x28", prefix(1) + b"\x02\x04\xc3\xbc"]), shape_of(schemas, {})
    )

    assert decoded.select("key", "problem").rows() == [(None, "value is not valid UTF-8"), ("1", None)]


def test_each_record_is_read_by_the_schema_that_it_names() -> None:
    """A field that becomes nullable and another one that is put before it: the same topic, two schemas."""
    newer = record({"added": ["null", "string"], "id": "string", "total": ["null", "double"]})
    schemas = Schemas({"ids/7": ORDER, "ids/9": newer})
    values = [good(1), prefix(9) + body(newer, {"added": "x", "id": "2", "total": 7.0}), good(3)]

    decoded = decode_values(batch([*values]), shape_of(schemas, {"total": "decimal(12,2)", "added": "string"}))

    assert decoded.select("key", "c:total", "c:added").rows() == [
        ("1", "7.00", None),
        ("2", "7.00", "x"),
        ("3", "7.00", None),
    ]


def test_a_schema_is_found_by_the_header_where_there_is_one() -> None:
    guid = bytes(range(16))
    schemas = Schemas({"ids/7": ORDER, "guids/00010203-0405-0607-0809-0a0b0c0d0e0f": ORDER})
    headers = [
        [{"key": "__value_schema_id", "value": value}] for value in (b"\x01" + guid, b"\x00\x00\x00\x00\x07", b"\x02")
    ]

    decoded = decode_values(
        batch([good(1)[5:], good(2)[5:], good(3)[5:], good(4)], [*headers, []]), shape_of(schemas, {})
    )

    assert decoded.select("key", "problem").rows() == [
        ("1", None),
        ("2", None),
        (None, "header __value_schema_id names no schema"),
        ("4", None),
    ]


def test_values_of_a_schema_file_have_no_prefix() -> None:
    schemas = Schemas({"file": ORDER}, are_named=False)

    decoded = decode_values(batch([good(1)[5:], good(2), None]), shape_of(schemas, {}))

    assert decoded["key"].to_list()[::2] == ["1", None]
    assert decoded["key"][1] is None


def test_what_contains_itself_is_decoded_one_by_one() -> None:
    node = record({"id": "long", "next": ["null", "shop.Order"]})
    value = prefix(1) + body(node, {"id": 1, "next": {"id": 2, "next": None}})

    decoded = decode_values(batch([value] * 3), shape_of(Schemas({"ids/1": node}), {"next.id": "int"}))

    assert decoded.select("key", "c:next.id").rows() == [("1", "2")] * 3


@pytest.mark.parametrize("is_null_first", [True, False])
@pytest.mark.parametrize("divided", [False, True])
def test_null_in_place_of_a_record_is_a_bad_value(is_null_first: bool, divided: bool) -> None:
    lines = {"type": "array", "items": record({"n": "int"}, "Line")}
    schema = ["null", record({"id": "long", "lines": lines})] if is_null_first else [record({"id": "long"}), "null"]
    schemas = Schemas({"ids/1": schema})
    null, of_record = (b"\0", b"\2") if is_null_first else (b"\2", b"\0")
    row = b"\x0e" + (b"\x02\x02\0" if is_null_first else b"")
    values: list[bytes | None] = [
        prefix(1) + content for content in (of_record + row, null, null + b"\0", of_record + row)
    ]
    shape = shape_of(schemas, {})
    if divided and is_null_first:
        elements = Elements(path=("lines",), format=AvroFormat(schemas))
        shape = replace(shape, key=("$.id", "$.lines.n"), format=ElementFormat(), elements=elements)
    _, left = AvroFormat(schemas).decode_together(batch(values), {"c:id": WantedLeaf(("id",), "string")})

    decoded = decode_records(batch(values), shape).frame

    goes_on = "value goes on behind what its schema describes"
    assert decoded["problem"].to_list() == [None, "value is not a record", goes_on, None]
    assert left.tolist() == [1, 2]


def test_a_value_within_itself_is_as_deep_at_any_depth_of_calls() -> None:
    node = record({"id": "long", "next": ["null", "shop.Order"]})
    values: list[bytes | None] = [prefix(1) + b"\x02\x02" * (depth - 1) + b"\x02\x00" for depth in (1, 200, 201, 2_000)]
    shape = shape_of(Schemas({"ids/1": node}), {"next.id": "int"})

    def called(depth: int) -> list[tuple[Any, ...]]:
        return called(depth - 1) if depth else decode_values(batch(values), shape).select("key", "problem").rows()

    too_deep = (None, "value is nested more than 200 deep")
    assert called(0) == called(150) == [("1", None), ("1", None), too_deep, too_deep]


def test_a_value_that_is_too_deep_for_its_calls_is_named() -> None:
    node = record({"id": "long", "next": ["null", "shop.Order"]})
    form, value = AvroFormat(Schemas({"ids/1": node})), prefix(1) + b"\x02\x02" * 199 + b"\x02\x00"
    limit = sys.getrecursionlimit()

    def called(depth: int) -> Any:
        return called(depth - 1) if depth else form.document(value, ())

    with pytest.raises(KeyProblem, match="value is nested more deeply than it can be read"):
        called(limit - 200)


def test_a_change_event_whose_fields_lie_deeper_is_named() -> None:
    row = record({"id": "long"}, "Row")
    event = record({"before": ["null", row], "after": ["null", "shop.Row"], "source": "string", "op": "string"})
    value = prefix(1) + body(event, {"before": None, "after": {"id": 1}, "source": "s", "op": "c"})

    [problem] = decode_values(batch([value]), shape_of(Schemas({"ids/1": event}), {}))["problem"]

    assert problem.startswith("value is a change event of Debezium (before, after, op), and has no field id; write")


# Drawn


@pytest.mark.parametrize("drawn", SIMPLE, ids=lambda drawn: json.dumps(drawn.schema))
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_each_type_is_rendered_many_at_once_as_alone_in_every_declared_type(drawn: Drawn, data: st.DataObject) -> None:
    columns = {f"f{number}": declared for number, declared in enumerate(TYPES)}
    schema = record({"id": drawn.schema, "v": ["null", drawn.schema], **dict.fromkeys(columns, drawn.schema)})
    raw = data.draw(st.lists(drawn.values, min_size=2, max_size=5))
    datums = [{"id": value, "v": value, **dict.fromkeys(columns, value)} for value in raw]
    values: list[bytes | None] = [prefix(1) + body(schema, datum) for datum in datums]
    kind = data.draw(st.sampled_from([(), *((kind,) for kind in KeyType)]))
    shape = shape_of(Schemas({"ids/1": schema}), columns, version="$.v", key_layout=kind)

    decoded = decode_values(batch(values), shape)

    assert decoded.rows() == record_values._decode_one_by_one(batch(values), shape).rows()


@st.composite
def topics(draw: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw a schema, and raw values of it."""
    drawn = [draw(fields(f"f{number}")) for number in range(draw(st.integers(1, 4)))]
    schema = record({"id": "long", **{f"f{number}": field.schema for number, field in enumerate(drawn)}})
    parts = {"id": st.integers(0, 9), **{f"f{number}": field.values for number, field in enumerate(drawn)}}
    return schema, draw(st.lists(st.fixed_dictionaries(parts), min_size=1, max_size=6))


@settings(max_examples=examples(150), deadline=None)
@given(topics(), st.data())
def test_many_values_are_decoded_as_each_alone_and_as_json_of_the_same(
    topic: tuple[dict[str, Any], list[dict[str, Any]]], data: st.DataObject
) -> None:
    schema, datums = topic
    paths = [path for name in schema["fields"] for path in (name["name"], f"{name['name']}.in")]
    compare = {path: data.draw(st.sampled_from(TYPES)) for path in paths if path != "id"}
    version = data.draw(st.sampled_from([None, *(f"$.{path}" for path in paths)]))
    shape = shape_of(Schemas({"ids/1": schema}), compare, version=version)
    values: list[bytes | None] = [prefix(1) + body(schema, datum) for datum in datums]

    together = decode_values(batch(values), shape)

    alone = record_values._decode_one_by_one(batch(values), shape)
    assert together.rows() == alone.rows()
    documents = [shape.format.document(value, ()) for value in values]
    texts: list[bytes | None] = [as_json(document).encode() for document in documents]
    of_json = ValueShape(key=shape.key, compare=compare, places=shape.places, version=version, format=JSON)
    assert decode_values(batch(texts), of_json).rows() == alone.rows()


@settings(max_examples=examples(100), deadline=None)
@given(topics(), st.binary(min_size=1, max_size=3), st.integers(0, 40), st.integers(0, 3))
def test_damaged_values_are_taken_or_left_as_each_alone(
    topic: tuple[dict[str, Any], list[dict[str, Any]]], damage: bytes, at: int, removed: int
) -> None:
    schema, datums = topic
    shape = shape_of(Schemas({"ids/1": schema}), {"f0": "string"})
    usual = body(schema, datums[0])
    damaged = usual[:at] + damage + usual[at + removed :]
    values: list[bytes | None] = [prefix(1) + usual, prefix(1) + damaged, prefix(1) + usual]

    decoded = decode_values(batch(values), shape)

    assert decoded.rows() == record_values._decode_one_by_one(batch(values), shape).rows()


@settings(max_examples=examples(100), deadline=None)
@given(topics())
def test_raw_values_are_those_that_a_library_of_others_reads(
    topic: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    schema, datums = topic
    for datum in datums:
        content = body(schema, datum)
        document = AvroFormat(Schemas({"ids/1": schema})).document(prefix(1) + content, ())
        assert have_same_values(document, read_back(schema, content))


@settings(max_examples=examples(100), deadline=None)
@given(topics())
def test_what_is_encoded_is_read_back(topic: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    schema, datums = topic
    parsed = parse_schema(json.dumps(schema))
    form = AvroFormat(Schemas({"ids/1": schema}))
    for datum in datums:
        document = form.document(prefix(1) + body(schema, datum), ())
        try:
            encoded = encode_body(parsed, document)
        except KeyProblem:
            continue
        assert as_json(form.document(prefix(1) + encoded, ())) == as_json(document)


def as_json(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{as_json(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(as_json, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def have_same_values(document: Any, raw: Any) -> bool:
    """Return whether a document has the raw values; what a logical type makes of one is not looked at."""
    if isinstance(document, dict):
        return list(document) == list(raw) and all(have_same_values(document[name], raw[name]) for name in document)
    if isinstance(document, list):
        return len(document) == len(raw) and all(map(have_same_values, document, raw))
    if isinstance(raw, float):
        return np.isnan(raw) or float(document) == raw or np.float32(document) == np.float32(raw)
    return type(document) is not type(raw) or document == raw or "-" in str(document)
