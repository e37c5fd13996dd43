"""Test that record keys which a schema describes are read alike many at once and one by one, and bad ones as none."""

import base64
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from makewhole.compute.decode import record_values
from makewhole.compute.decode.record_keys import RecordKeyFormat
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.schema_keys import avro_keys, protobuf_keys
from makewhole.compute.decode.schema_texts import KEY_SCHEMA_HEADER
from makewhole.compute.decode.unread_keys import unread_keys
from makewhole.model.points import KeyType
from makewhole.window.known_schemas import FileSchema
from tests.histories.shapes import formats
from tests.histories.shapes.changes import draw_orders
from tests.unit.compute.decode.avro.written import HEADERS, Schemas, body, prefix

pytestmark = pytest.mark.unit

RECORD = {
    "type": "record",
    "name": "OrderKey",
    "fields": [{"name": "region", "type": "string"}, {"name": "id", "type": ["null", "string"]}],
}
NUMBER, TEXT, MAYBE = "long", {"type": "string"}, ["null", "string"]
SCHEMAS = {"ids/1": RECORD, "ids/2": NUMBER, "ids/3": TEXT, "ids/4": MAYBE}


def batch_of(keys: list[bytes | None], headers: list[Any] | None = None) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array([b'{"number": 1}'] * len(keys), pa.binary()),
            "headers": pa.array(headers or [None] * len(keys), HEADERS),
        }
    )


def shape_of(form: RecordKeyFormat, key: str, kind: KeyType = KeyType.STRING) -> ValueShape:
    return ValueShape(key=(key,), key_layout=(kind,), compare={"number": "int"}, record_key=form)


def named(form: RecordKeyFormat, key: str, keys: list[bytes | None], headers: list[Any] | None = None) -> Any:
    """Return the keys and problems of records, which are the same one by one."""
    shape, batch = shape_of(form, key), batch_of(keys, headers)
    assert record_values.is_columnar(shape)
    decoded = decode_values(batch, shape)
    assert decoded.equals(record_values._decode_one_by_one(batch, shape))
    return decoded.select("key", "problem").rows()


def avro(*, are_named: bool = True, **schemas: Any) -> RecordKeyFormat:
    return avro_keys(Schemas(schemas or SCHEMAS, are_named=are_named, header=KEY_SCHEMA_HEADER))


def test_a_field_of_an_avro_key_is_the_key_of_its_record_and_a_bad_one_is_named() -> None:
    good = prefix(1) + body(RECORD, {"region": "EU", "id": "A7"})
    none = prefix(1) + body(RECORD, {"region": "EU", "id": None})

    assert named(avro(), "kafka.key.id", [good, none, good + b"\0", prefix(9) + good[5:], b"A7", None, good[:-1]]) == [
        ("A7", None),
        (None, "key is null"),
        (None, "record key goes on behind what its schema describes"),
        (None, "record key: schema ids/9 is not in the registry"),
        (None, "record key is shorter than the prefix that names its schema"),
        (None, "key is null"),
        (None, "record key ends before its schema does"),
    ]


def test_a_simple_avro_key_is_the_key_as_a_whole_and_a_record_is_none() -> None:
    keys = [
        prefix(2) + body(NUMBER, 70),
        prefix(3) + body("string", "Ä7"),
        prefix(4) + body(MAYBE, "x"),
        prefix(4) + body(MAYBE, None),
        prefix(1) + body(RECORD, {"region": "EU", "id": "A7"}),
    ]
    named_keys = named(avro(), "kafka.key", list(keys))
    assert named_keys[:4] == [("70", None), ("Ä7", None), ("x", None), (None, "key is null")]
    assert named_keys[4][0] is None


def test_a_schema_file_describes_keys_without_a_prefix() -> None:
    form = avro(are_named=False, file=RECORD)
    assert named(form, "kafka.key.id", [body(RECORD, {"region": "EU", "id": "A7"})]) == [("A7", None)]


def test_the_header_of_keys_names_their_schema_and_that_of_values_does_not() -> None:
    bare, other = body(RECORD, {"region": "EU", "id": "A7"}), b"\x00\x00\x00\x00\x02"
    header = [{"key": KEY_SCHEMA_HEADER, "value": b"\x00\x00\x00\x00\x01"}]
    of_value = [{"key": "__value_schema_id", "value": other}]
    keys = [bare, prefix(1) + bare, prefix(1) + bare]
    assert named(avro(), "kafka.key.id", list(keys), [header, of_value, None]) == [("A7", None)] * 3


def test_a_field_of_a_protobuf_key_is_the_key_of_its_record() -> None:
    text = base64.b64encode(formats.DESCRIPTORS.SerializeToString()).decode()
    orders = draw_orders(Random(5), 20)
    form = protobuf_keys(FileSchema(text), "")
    keys: list[bytes | None] = [formats.protobuf_value(order) for order in orders]
    expected = [(str(order["id"]), None) for order in orders]
    assert named(form, "kafka.key.id", [*keys, b"\xff"]) == [
        *expected,
        (None, "record key is no message of its schema"),
    ]


def test_an_unread_record_is_of_the_key_that_its_avro_key_has_and_of_any_where_the_schema_is_not_known() -> None:
    good = prefix(1) + body(RECORD, {"region": "EU", "id": "A7"})
    header = [{"key": KEY_SCHEMA_HEADER, "value": b"\x00\x00\x00\x00\x01"}]
    batch = batch_of([good, prefix(9) + good[5:], good[5:]], [None, None, header])
    unread = pa.array([None] * 3, pa.string())
    shape = shape_of(avro(), "kafka.key.id")
    assert unread_keys(batch, pl.Series(pl.from_arrow(unread)), shape).to_list() == ["A7", None, "A7"]
