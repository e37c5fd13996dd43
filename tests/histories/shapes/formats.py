"""Write the records of orders in every format that a topic can have, by other libraries than the product's."""

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from tests.histories.shapes.changes import TYPES
from tests.world.envelopes import behind_prefix
from tests.world.orders import Order
from tests.world.pipeline_file import Settings, flow


@dataclass(frozen=True, kw_only=True)
class RecordFormat:
    """A format. `settings` are those of the topic point, `files` what lies beside the pipeline file; a record is its
    value, its key and its headers."""

    name: str
    value: Callable[[Order], bytes]
    settings: Settings = field(default_factory=dict)
    key: str = '"$.id"'
    record_key: Callable[[Order], str] = lambda order: str(order["id"])
    headers: Callable[[Order], Mapping[str, str]] = lambda _: {}
    files: Mapping[str, bytes] = field(default_factory=dict)


# JSON


def json_value(order: Order) -> bytes:
    """Write the value of an order as JSON."""
    return json.dumps(order).encode()


def _json_in_another_order(order: Order) -> bytes:
    """Write the members in an order of their own for each record, with blanks: no layout is shared."""
    names = sorted(order, key=lambda name: hash((order["id"], name)))
    return json.dumps({name: order[name] for name in names}, indent=len(order["id"]) % 3, ensure_ascii=False).encode()


def _nested(order: Order, path: Sequence[str] = ("of_order", "a", "b")) -> bytes:
    inner: dict[str, Any] = {name: order[name] for name in ("amount", "remark", "at")}
    rest = {name: value for name, value in order.items() if name not in inner}
    return json_value({**rest, "amount": "another", **reduce(lambda held, name: {name: held}, reversed(path), inner)})


_NESTED = {"columns": flow({name: f'"$.of_order.a.b.{name}"' for name in ("amount", "remark", "at")})}
_ANY_NAMES = ("of order", "a.b", "it's")
_OF_ANY_NAMES = {
    "columns": flow({name: f"\"$['of order']['a.b']['it\\\\'s'].{name}\"" for name in ("amount", "remark", "at")})
}


def _counted(order: Order) -> bytes:
    """Write the value of an order with its moment in microseconds and its day in days, as a schema's types do."""
    return json_value({**order, **{name: connect_row(order)[name] for name in ("at", "due")}})


_COUNTED = {"columns": flow({"at": '{field: "$.at", as: timestamp(us)}', "due": '{field: "$.due", as: date(days)}'})}


# Avro and Protobuf

_AVRO_TYPES: Mapping[str, Any] = {
    "id": "string",
    "number": "long",
    "region": "string",
    "amount": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "due": {"type": "int", "logicalType": "date"},
    "is_paid": "boolean",
    "remark": ["null", "string"],
}
AVRO: Mapping[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": name, "type": kind} for name, kind in _AVRO_TYPES.items()],
}
_AVRO_SCHEMA: Any = fastavro.parse_schema(dict(AVRO))
AVRO_KEY = {"type": "record", "name": "OrderKey", "fields": [{"name": "id", "type": "string"}]}
_AVRO_KEY_SCHEMA: Any = fastavro.parse_schema(AVRO_KEY)


def avro_row(order: Order) -> dict[str, Any]:
    """Return the fields of an order as Avro's library takes them."""
    return {
        **order,
        "amount": Decimal(order["amount"]),
        "at": datetime.fromisoformat(order["at"]),
        "due": date.fromisoformat(order["due"]),
    }


def avro_value(order: Order) -> bytes:
    """Write the value of an order in Avro, without a prefix."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _AVRO_SCHEMA, avro_row(order))
    return body.getvalue()


def avro_key(order: Order) -> str:
    """Return a record key in Avro: the bytes of a short one are a text."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _AVRO_KEY_SCHEMA, {"id": order["id"]})
    return body.getvalue().decode()


def _descriptors() -> descriptor_pb2.FileDescriptorSet:
    kinds = descriptor_pb2.FieldDescriptorProto
    message = descriptor_pb2.DescriptorProto(name="Order")
    types = {"number": kinds.TYPE_INT64, "is_paid": kinds.TYPE_BOOL, "at": kinds.TYPE_MESSAGE}
    for number, name in enumerate(["id", *TYPES], start=1):
        kind = types.get(name, kinds.TYPE_STRING)
        of_message = {"type_name": ".google.protobuf.Timestamp"} if kind == kinds.TYPE_MESSAGE else {}
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL, **of_message)
    message.oneof_decl.add(name="_remark")
    message.field[-1].proto3_optional, message.field[-1].oneof_index = True, 0
    timestamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamp)
    own = descriptor_pb2.FileDescriptorProto(
        name="order.proto", syntax="proto3", dependency=[timestamp.name], message_type=[message]
    )
    return descriptor_pb2.FileDescriptorSet(file=[timestamp, own])


DESCRIPTORS = _descriptors()


def message_class(descriptors: descriptor_pb2.FileDescriptorSet, name: str) -> Any:
    """Return the class of a message of this name."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptors.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


_ORDER = message_class(DESCRIPTORS, "Order")


def protobuf_value(order: Order) -> bytes:
    """Write the value of an order in Protobuf, without a prefix."""
    values = {name: value for name, value in order.items() if value is not None and name != "at"}
    message = _ORDER(**values)
    message.at.FromDatetime(datetime.fromisoformat(order["at"]))
    encoded: bytes = message.SerializeToString()
    return encoded


# Kafka Connect and Debezium

_CONNECT_FIELDS: tuple[Mapping[str, Any], ...] = (
    {"field": "id", "type": "string"},
    {"field": "number", "type": "int64"},
    {"field": "region", "type": "string"},
    {
        "field": "amount",
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2"},
    },
    {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1},
    {"field": "due", "type": "int32", "name": "org.apache.kafka.connect.data.Date", "version": 1},
    {"field": "is_paid", "type": "boolean"},
    {"field": "remark", "type": "string", "optional": True},
)
CONNECT_ROW = {"type": "struct", "fields": _CONNECT_FIELDS, "optional": True, "name": "shop.Value"}
_EVENT = {
    "type": "struct",
    "fields": [
        {**CONNECT_ROW, "field": "before"},
        {**CONNECT_ROW, "field": "after"},
        {"field": "op", "type": "string"},
        {"field": "source", "type": "struct", "fields": [{"field": "lsn", "type": "int64"}]},
    ],
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def connect_row(order: Order) -> dict[str, Any]:
    """Return the fields of an order as Connect's converters write them."""
    unscaled, since = int(Decimal(order["amount"]) * 100), datetime.fromisoformat(order["at"]) - _EPOCH
    return {
        **order,
        "amount": base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode(),
        "at": (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds,
        "due": (date.fromisoformat(order["due"]) - _EPOCH.date()).days,
    }


def connect_value(order: Order) -> bytes:
    """Write the value of an order as Kafka Connect's JsonConverter does with schemas."""
    return json.dumps({"schema": CONNECT_ROW, "payload": connect_row(order)}, separators=(",", ":")).encode()


def event_value(order: Order) -> bytes:
    """Write the value of an order as a change event of Debezium, in Connect's envelope."""
    event = {"before": None, "after": connect_row(order), "op": "c", "source": {"lsn": len(order["id"])}}
    return json.dumps({"schema": _EVENT, "payload": event}, separators=(",", ":"), ensure_ascii=False).encode()


FORMATS = (
    RecordFormat(name="json", value=json_value),
    RecordFormat(name="json in any order", value=_json_in_another_order),
    RecordFormat(name="json, nested", value=_nested, settings=_NESTED),
    RecordFormat(
        name="json, nested in fields of any names",
        value=lambda order: _nested(order, _ANY_NAMES),
        settings=_OF_ANY_NAMES,
    ),
    RecordFormat(name="json, counted since 1970", value=_counted, settings=_COUNTED),
    RecordFormat(name="json, keyed by the record", value=json_value, key="kafka.key"),
    RecordFormat(
        name="json, keyed by a field of the record key",
        value=json_value,
        key="kafka.key.id",
        settings={"record_key": "json"},
        record_key=lambda order: json.dumps({"id": order["id"]}),
    ),
    RecordFormat(
        name="json, keyed by a header",
        value=lambda order: json_value({name: value for name, value in order.items() if name != "id"}),
        key='"header:id"',
        headers=lambda order: {"id": order["id"]},
    ),
    RecordFormat(
        name="json behind the prefix of a registry",
        value=lambda order: behind_prefix(json_value(order)),
        settings={"value": "json_schema"},
    ),
    RecordFormat(
        name="json, keyed by a text behind the prefix of a registry",
        value=json_value,
        key="kafka.key",
        settings={"record_key": "json_schema"},
        record_key=lambda order: behind_prefix(json.dumps(order["id"]).encode()).decode(),
    ),
    RecordFormat(
        name="json in a string",
        value=lambda order: json.dumps(json.dumps(order)).encode(),
        settings={"value": "json_in_string"},
    ),
    RecordFormat(
        name="avro",
        value=avro_value,
        settings={"value": "avro", "schema": "order.avsc"},
        files={"order.avsc": json.dumps(AVRO).encode()},
    ),
    RecordFormat(
        name="avro, keyed by a field of an Avro record key",
        value=avro_value,
        key="kafka.key.id",
        settings={
            "value": "avro",
            "schema": "order.avsc",
            "record_key": "{format: avro, schema: key.avsc}",
        },
        record_key=avro_key,
        files={"order.avsc": json.dumps(AVRO).encode(), "key.avsc": json.dumps(AVRO_KEY).encode()},
    ),
    RecordFormat(
        name="json, keyed by an Avro text",
        value=json_value,
        key="kafka.key",
        settings={"record_key": "{format: avro, schema: text.avsc}"},
        record_key=avro_key,
        files={"text.avsc": b'"string"'},
    ),
    RecordFormat(
        name="protobuf",
        value=protobuf_value,
        settings={"value": "protobuf", "schema": "order.desc"},
        files={"order.desc": DESCRIPTORS.SerializeToString()},
    ),
    RecordFormat(name="connect", value=connect_value, settings={"value": "connect"}),
    RecordFormat(name="debezium", value=event_value, settings={"value": "debezium"}),
)
