"""Test that Avro values whose types Kafka Connect names are read as Connect has them."""

import json
from decimal import Decimal
from typing import Any

import pytest

from makewhole.compute.decode import record_values
from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.avro.encode import encode_body
from makewhole.compute.decode.avro.schema import parse_schema
from makewhole.compute.decode.record_values import decode_values
from tests.unit.compute.decode.avro.test_avro_values import record, shape_of
from tests.unit.compute.decode.avro.written import Schemas, batch, body, prefix

pytestmark = pytest.mark.unit

MICROSECONDS, MILLISECONDS = 9_223_372_036_825_200_000, 9_223_372_036_825_200
LEAST_MICROSECONDS, LEAST_MILLISECONDS = -9_223_372_036_832_400_000, -9_223_372_036_832_400
ENDLESS = [
    ("long", "io.debezium.time.MicroTimestamp", None, (MICROSECONDS, LEAST_MICROSECONDS)),
    ("long", "io.debezium.time.Timestamp", None, (MILLISECONDS, LEAST_MILLISECONDS)),
    ("int", "io.debezium.time.Date", None, (-2_147_472_692, -2_147_472_691)),
    ("long", "org.apache.kafka.connect.data.Timestamp", "timestamp-millis", (MILLISECONDS, LEAST_MILLISECONDS)),
    ("int", "org.apache.kafka.connect.data.Date", "date", (-2_147_472_692, -2_147_472_691)),
]


@pytest.mark.parametrize(("kind", "name", "logical", "numbers"), ENDLESS, ids=[name for _, name, _, _ in ENDLESS])
def test_infinities_of_postgresql_are_these_where_connect_names_the_type(
    kind: str, name: str, logical: str | None, numbers: tuple[int, int]
) -> None:
    named = {"type": kind, "connect.version": 1, "connect.name": name} | ({"logicalType": logical} if logical else {})
    schema = record({"id": "long", "at": ["null", named]})
    values: list[bytes | None] = [
        prefix(1) + body(schema, {"id": at, "at": number}) for at, number in enumerate((*numbers, 0))
    ]
    shape = shape_of(Schemas({"ids/1": schema}), {"at": "date"}, version="$.at")

    decoded = decode_values(batch(values), shape)

    assert decoded["c:at"].to_list() == ["!infinity", "!-infinity", "1970-01-01"]
    assert decoded.rows() == record_values._decode_one_by_one(batch(values), shape).rows()
    assert [shape.format.document(value, ())["at"] for value in values[:2]] == ["infinity", "-infinity"]


CONNECT_DECIMAL = {"type": "bytes", "connect.version": 1, "connect.name": "org.apache.kafka.connect.data.Decimal"}
DECIMALS = [
    ({"scale": 127, "precision": 64, "logicalType": "decimal"}, 5 * 10**127, "5"),
    ({"scale": 127, "precision": 64, "logicalType": "decimal"}, -5, "-5e-127"),
    ({"scale": 2, "precision": 64, "logicalType": "decimal"}, 12_345, "123.45"),
    ({"scale": -3, "precision": 64, "logicalType": "decimal"}, 12, "12000"),
    ({"connect.parameters": {"scale": "-3"}}, 12, "12000"),
    ({"connect.parameters": {"scale": "4", "connect.decimal.precision": "3"}}, 12_345, "1.2345"),
    ({"scale": 40, "precision": 10, "logicalType": "decimal"}, 10**40, "1"),
]


@pytest.mark.parametrize(("more", "unscaled", "number"), DECIMALS, ids=str)
@pytest.mark.parametrize("declared", ["decimal(38,9)", "decimal(12,2)", "string", "int", "double"])
def test_decimals_of_connect_have_any_scale(more: dict[str, Any], unscaled: int, number: str, declared: str) -> None:
    schema = record({"id": "long", "v": ["null", {**CONNECT_DECIMAL, **more}]})
    content = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    values: list[bytes | None] = [prefix(1) + body(schema, {"id": at, "v": content}) for at in range(3)]
    shape = shape_of(Schemas({"ids/1": schema}), {"v": declared}, version="$.v")

    document = shape.format.document(values[0], ())

    assert document["v"] == Decimal(number)
    assert decode_values(batch(values), shape).rows() == record_values._decode_one_by_one(batch(values), shape).rows()
    encoded = encode_body(parse_schema(json.dumps(schema)), document)
    assert shape.format.document(prefix(1) + encoded, ())["v"] == Decimal(number)


def test_a_scale_above_the_precision_is_none_where_avro_alone_names_the_type() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 4}
    schema = record({"id": "long", "v": decimal})

    form = AvroFormat(Schemas({"ids/1": schema}))
    assert form.document(prefix(1) + body(schema, {"id": 1, "v": b"\x05"}), ())["v"] == "\\x05"


def test_the_same_number_is_its_moment_where_avro_alone_names_the_type() -> None:
    schema = record({"id": "long", "at": {"type": "long", "logicalType": "timestamp-micros"}})
    value = prefix(1) + body(schema, {"id": 1, "at": MICROSECONDS})

    assert AvroFormat(Schemas({"ids/1": schema})).document(value, ())["at"] == "294247-01-10T04:00:25.200000Z"
