"""Test that items without bytes are read, and that so many of them as would fill the memory are not."""

import json
from dataclasses import replace
from typing import Any

import pytest

from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.avro.encode import encode_body, zigzag
from makewhole.compute.decode.avro.schema import parse_schema
from makewhole.compute.decode.record_values import decode_values
from makewhole.compute.decode.shapes.divided_records import decode_records
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.keys import KeyProblem
from tests.unit.compute.decode.avro.test_avro_values import record, shape_of
from tests.unit.compute.decode.avro.written import Schemas, batch, prefix

pytestmark = pytest.mark.unit

NOTHING = record({"y": "null"}, "Nothing")
WITHOUT_BYTES = {
    "null": ("null", None),
    "a record of null": (NOTHING, {"y": None}),
    "a record of records": (record({"a": NOTHING, "b": "shop.Nothing"}, "Both"), {"a": {"y": None}, "b": {"y": None}}),
    "a fixed of no size": ({"type": "fixed", "name": "F", "size": 0}, "\\x"),
}


@pytest.mark.parametrize(("items", "item"), WITHOUT_BYTES.values(), ids=WITHOUT_BYTES)
@pytest.mark.parametrize("number", [0, 1, 3, 500, 100_000])
def test_items_without_bytes_may_be_more_than_the_bytes_that_are_left(items: Any, item: Any, number: int) -> None:
    schema = record({"id": "long", "items": {"type": "array", "items": items}})
    form = AvroFormat(Schemas({"ids/1": schema}))

    value = prefix(1) + encode_body(parse_schema(json.dumps(schema)), {"id": 7, "items": [item] * number})

    assert form.document(value, ()) == {"id": 7, "items": [item] * number}
    together = decode_values(batch([value] * 3), shape_of(Schemas({"ids/1": schema}), {"id": "int"}))
    assert together.select("key", "problem").rows() == [("7", None)] * 3


@pytest.mark.parametrize("blocks", [[100_001], [60_000, 60_000], [2**62], [-(2**62)]], ids=str)
def test_more_items_without_bytes_than_the_memory_may_hold_are_refused(blocks: list[int]) -> None:
    schema = record({"id": "long", "items": {"type": "array", "items": "null"}})
    heads = [zigzag(count) + (b"\0" if count < 0 else b"") for count in blocks]
    value = prefix(1) + b"\x0e" + b"".join(heads) + b"\0"
    reason = "value has more than 100000 items without bytes"

    with pytest.raises(KeyProblem, match=f"^{reason}$"):
        AvroFormat(Schemas({"ids/1": schema})).document(value, ())
    with pytest.raises(KeyProblem, match=r"^items does not fit the type array of its topic's schema$"):
        encode_body(parse_schema(json.dumps(schema)), {"id": 7, "items": [None] * 100_001})


@pytest.mark.parametrize("divided", [False, True])
def test_many_blocks_of_items_without_bytes_are_taken_or_left_as_each_alone(divided: bool) -> None:
    schema = record({"id": "long", "items": {"type": "array", "items": "null"}})
    schemas = Schemas({"ids/1": schema})
    few, many = (b"".join(zigzag(count) for count in range(most, 0, -1)) + b"\0" for most in (300, 700))
    values: list[bytes | None] = [prefix(1) + b"\x0e" + content for content in (few, many, b"\x04\0", few)]
    shape = shape_of(schemas, {"id": "int"})
    if divided:
        shape = replace(shape, elements=Elements(path=("items",), format=AvroFormat(schemas)), format=ElementFormat())

    decoded = decode_records(batch(values), shape).frame

    reason = "value has more than 100000 items without bytes"
    count = [45_150, 1, 2, 45_150] if divided else [1] * 4
    problems = [None, reason, None, None]
    assert decoded["problem"].to_list() == [
        text for text, times in zip(problems, count, strict=True) for _ in range(times)
    ]
