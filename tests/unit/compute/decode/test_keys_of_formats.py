"""Test that records of every format are decoded alike, many at once and one by one, wherever their keys are."""

import base64
import json
from collections.abc import Callable, Mapping
from random import Random

import pyarrow as pa
import pytest

from makewhole.compute.decode import record_values
from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.value_format import ValueFormat
from makewhole.compute.row_filter import TypedTerm, filter_terms
from makewhole.model.points import KeyType
from makewhole.window.known_schemas import FileSchema
from tests.histories.shapes import formats
from tests.histories.shapes.changes import TYPES, draw_orders
from tests.world.orders import Order

pytestmark = pytest.mark.unit

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_DESCRIPTORS = base64.b64encode(formats.DESCRIPTORS.SerializeToString()).decode()
FORMATS: Mapping[str, tuple[ValueFormat, Callable[[Order], bytes]]] = {
    "json": (JSON, formats.json_value),
    "avro": (AvroFormat(FileSchema(json.dumps(formats.AVRO))), formats.avro_value),
    "protobuf": (ProtobufFormat(FileSchema(_DESCRIPTORS)), formats.protobuf_value),
    "connect": (ConnectFormat(), formats.connect_value),
    "debezium": (ChangeEventFormat(), formats.event_value),
}
KEYS = {
    ("$.id",): (KeyType.STRING,),
    ("kafka.key",): (KeyType.STRING,),
    ("kafka.partition", "kafka.offset"): (KeyType.BIGINT, KeyType.BIGINT),
}
FILTERS: tuple[Mapping[str, tuple[TypedTerm, ...]], ...] = (
    {},
    {"a→b": filter_terms("number > 100 and region != 'EU'", {"number": "bigint", "region": "string"})},
)


def batch_of(values: list[bytes | None], orders: list[Order]) -> pa.RecordBatch:
    count = len(values)
    return pa.record_batch(
        {
            "key": pa.array([order["id"].encode() for order in orders], pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array([None] * count, _HEADERS),
            "partition": pa.array([row % 3 for row in range(count)], pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
        }
    )


@pytest.mark.parametrize("where", FILTERS, ids=["all", "filtered"])
@pytest.mark.parametrize("key", KEYS, ids="+".join)
@pytest.mark.parametrize("name", FORMATS)
def test_records_are_decoded_alike_wherever_their_key_is(
    name: str, key: tuple[str, ...], where: Mapping[str, tuple[TypedTerm, ...]]
) -> None:
    form, value_of = FORMATS[name]
    orders = draw_orders(Random(3), 200)
    values: list[bytes | None] = [value_of(order) for order in orders]
    values[7], values[8] = b"\x00", None
    shape = ValueShape(key=key, key_layout=KEYS[key], compare=TYPES, format=form, filters=where)
    batch = batch_of(values, orders)
    assert record_values.is_columnar(shape)
    assert decode_values(batch, shape).equals(record_values._decode_one_by_one(batch, shape))
