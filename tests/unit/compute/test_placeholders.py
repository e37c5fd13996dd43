"""Test that what Debezium sends in place of a value that did not change is known, whatever format and type it is in."""

import json
from typing import Any

import pytest

from makewhole.compute.column_values import ColumnValue
from makewhole.compute.decode import record_values
from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.shapes.divided_records import decode_records
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.decode.value_format import ValueFormat
from makewhole.compute.normalise import with_known_hashes
from tests.unit.compute.decode.avro.written import Schemas, batch, body, prefix
from tests.unit.compute.decode.protobuf import messages
from tests.unit.compute.decode.protobuf.messages import FIELD, class_of, new_file

pytestmark = pytest.mark.unit

TEXT = "__debezium_unavailable_value"
MAP = {TEXT: TEXT}
MAP_TEXT = json.dumps(MAP, separators=(",", ":"))
DAY = {"type": "int", "connect.version": 1, "connect.name": "io.debezium.time.Date"}


def of_avro(schema: Any, value: Any) -> tuple[ValueFormat, bytes]:
    fields = [{"name": "id", "type": "long"}, {"name": "v", "type": schema}]
    record = {"type": "record", "name": "Row", "fields": fields}
    return AvroFormat(Schemas({"file": record}, are_named=False)), body(record, {"id": 7, "v": value})


def of_protobuf(kind: int, value: Any) -> tuple[ValueFormat, bytes]:
    file = new_file(Row=[("id", FIELD.TYPE_INT64), ("v", kind)])
    content: bytes = class_of(file)(id=7, v=value).SerializeToString()
    return ProtobufFormat(messages.Schemas({"ids/7": file})), prefix(7) + b"\x00" + content


def of_json(value: Any) -> tuple[ValueFormat, bytes]:
    return JSON, json.dumps({"id": 7, "v": value}).encode()


UNSENT = {
    "text": of_json(TEXT),
    "an hstore as JSON": of_json(MAP_TEXT),
    "an hstore as a map": of_json(MAP),
    "Avro, text": of_avro(["null", "string"], TEXT),
    "Avro, bytes": of_avro(["null", "bytes"], TEXT.encode()),
    "Avro, fixed": of_avro({"type": "fixed", "name": "F", "size": len(TEXT)}, TEXT.encode()),
    "Avro, days": of_avro({"type": "array", "items": DAY}, [*TEXT.encode()]),
    "Avro, days or null": of_avro(["null", {"type": "array", "items": ["null", DAY]}], [*TEXT.encode()]),
    "Avro, a map": of_avro({"type": "map", "values": ["null", "string"]}, MAP),
    "Protobuf, bytes": of_protobuf(FIELD.TYPE_BYTES, TEXT.encode()),
}


@pytest.mark.parametrize("declared", ["string", "char", "json", "date", "double", "uuid", "date[]", "string[]"])
@pytest.mark.parametrize(("form", "value"), UNSENT.values(), ids=UNSENT)
def test_it_is_compared_with_nothing_and_never_written(form: ValueFormat, value: bytes, declared: str) -> None:
    shape = ValueShape(key=("$.id",), compare={"v": declared}, format=form)

    decoded = decode_values(batch([value] * 3), shape)

    assert decoded.rows() == record_values._decode_one_by_one(batch([value] * 3), shape).rows()
    assert with_known_hashes(decoded, ["c:v"])["row_hash"].to_list() == [None] * 3
    raw = form.document(value, ())["v"]
    assert ColumnValue.of_record(raw, declared, "text").is_placeholder
    assert ColumnValue.of_record(raw, declared, "jsonb").is_placeholder


SENT = {
    "days": of_avro({"type": "array", "items": DAY}, [*TEXT.encode()][:-1]),
    "bytes": of_avro("bytes", TEXT.encode() + b"!"),
    "another member": of_json({**MAP, "a": "b"}),
    "another value": of_json({TEXT: "b"}),
}


@pytest.mark.parametrize(("form", "value"), SENT.values(), ids=SENT)
def test_what_is_nearly_the_same_is_a_value(form: ValueFormat, value: bytes) -> None:
    decoded = decode_values(batch([value]), ValueShape(key=("$.id",), compare={"v": "json"}, format=form))

    assert with_known_hashes(decoded, ["c:v"])["row_hash"].null_count() == 0


def test_days_that_are_elements_of_a_record_are_read_together_as_each_alone() -> None:
    form, unsent = of_avro({"type": "array", "items": DAY}, [*TEXT.encode()])
    _, sent = of_avro({"type": "array", "items": DAY}, [0, 15_736])
    elements = Elements(path=("v",), format=form)
    shape = ValueShape(key=("$.id", "$.v"), compare={}, format=ElementFormat(), elements=elements)

    decoded = decode_records(batch([sent, unsent]), shape)[1]

    alone = elements.divided(batch([sent, unsent]), shape.fields).batch
    assert decoded.rows() == decode_values(alone, shape).rows()
