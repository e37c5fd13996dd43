"""Make records of several lines in every format that is divided: the same lines in each."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from bench.topics.formats import PREFIX, OneSchema

LINES = 4
"""Elements of a record."""
Value = Callable[[int], bytes]
_KINDS: Mapping[str, Any] = {
    "no": "long",
    "sku": "string",
    "amount": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    "quantity": "long",
    "at": {"type": "long", "logicalType": "timestamp-millis"},
    "is_gift": "boolean",
}
_LINE = {"type": "record", "name": "Line", "fields": [{"name": name, "type": kind} for name, kind in _KINDS.items()]}
AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "customer", "type": "string"},
            {"name": "lines", "type": {"type": "array", "items": _LINE}},
        ],
    }
)
_CONNECT_TYPES = {
    "no": "int32",
    "sku": "string",
    "amount": "string",
    "quantity": "int32",
    "at": "int64",
    "is_gift": "boolean",
}
_PROTOBUF_TYPES = {"no": 3, "sku": 9, "amount": 9, "quantity": 3, "at": 11, "is_gift": 8}


def line(number: int) -> dict[str, Any]:
    """Return one line of all, as JSON has it."""
    minute, second = divmod(number, 60)
    return {
        "no": number % LINES,
        "sku": f"S{number % 977}",
        "amount": f"{number % 1_000_000 // 100}.{number % 100:02d}",
        "quantity": 1 + number % 9,
        "at": f"2026-01-{1 + minute // 1440 % 28:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:{second:02d}Z",
        "is_gift": number % 2 == 0,
    }


def format_of(form: str) -> Any:
    """Return the format of the values."""
    from makewhole.compute.decode.avro.avro_format import AvroFormat
    from makewhole.compute.decode.connect.change_events import ChangeEventFormat
    from makewhole.compute.decode.connect.connect_values import ConnectFormat
    from makewhole.compute.decode.json_values import JSON
    from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat

    makers: Mapping[str, Callable[[], Any]] = {
        "json": lambda: JSON,
        "avro": lambda: AvroFormat(OneSchema(AVRO_SCHEMA)),
        "protobuf": lambda: ProtobufFormat(OneSchema(_protobuf_file()[0])),
        "connect": ConnectFormat,
        "debezium": ChangeEventFormat,
    }
    return makers[form]()


def _record(number: int, line_of: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    lines = [line_of(number * LINES + at) for at in range(LINES)]
    return {"id": f"O{number}", "customer": f"C{number % 1000}", "lines": lines}


def _counted(number: int) -> dict[str, Any]:
    """Return a line whose moment is in milliseconds since 1970."""
    made = line(number)
    return {**made, "at": int(datetime.fromisoformat(made["at"]).astimezone(UTC).timestamp()) * 1000}


def _json() -> Value:
    return lambda number: json.dumps(_record(number, line)).encode()


def _avro() -> Value:
    from makewhole.compute.decode.avro.encode import encode_body
    from makewhole.compute.decode.avro.schema import parse_schema

    schema = parse_schema(AVRO_SCHEMA)
    return lambda number: PREFIX + encode_body(schema, _record(number, line))


def _struct() -> dict[str, Any]:
    """Return the schema of a record as Kafka Connect's JsonConverter writes it."""
    fields: list[dict[str, Any]] = [{"type": kind, "field": name} for name, kind in _CONNECT_TYPES.items()]
    fields[list(_CONNECT_TYPES).index("at")]["name"] = "org.apache.kafka.connect.data.Timestamp"
    lines = {"type": "array", "items": {"type": "struct", "fields": fields}, "field": "lines"}
    texts = [{"type": "string", "field": name} for name in ("id", "customer")]
    return {"type": "struct", "fields": [*texts, lines]}


def _enveloped(schema: Any, payload_of: Callable[[int], Any]) -> Value:
    opening = '{"schema":' + json.dumps(schema, separators=(",", ":")) + ',"payload":'
    return lambda number: (opening + json.dumps(payload_of(number), separators=(",", ":")) + "}").encode()


def _connect() -> Value:
    return _enveloped(_struct(), lambda number: _record(number, _counted))


def _debezium() -> Value:
    row = {**_struct(), "field": "after"}
    schema = {"type": "struct", "fields": [row, {"type": "string", "field": "op"}]}
    return _enveloped(
        schema,
        lambda number: {"before": None, "after": _record(number, _counted), "op": "c", "ts_ms": 1_700_000_000_000},
    )


@cache
def _protobuf_file() -> tuple[str, Any]:
    """Return the description of a file as a registry has it, and the class of its first message."""
    import base64

    from google.protobuf import descriptor_pb2, message_factory

    from makewhole.compute.decode.protobuf.descriptors import message_at
    from makewhole.compute.decode.schema_texts import SchemaText

    file = descriptor_pb2.FileDescriptorProto(name="orders.proto", package="bench", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    order, own = file.message_type.add(name="Order"), file.message_type.add(name="Line")
    for number, name in enumerate(("id", "customer"), 1):
        order.field.add(name=name, number=number, type=9, label=1)
    order.field.add(name="lines", number=3, type=11, label=3, type_name=".bench.Line")
    for number, (name, kind) in enumerate(_PROTOBUF_TYPES.items(), 1):
        named = {"type_name": ".google.protobuf.Timestamp"} if kind == 11 else {}
        own.field.add(name=name, number=number, type=kind, label=1, **named)
    text = base64.b64encode(file.SerializeToString()).decode()
    return text, message_factory.GetMessageClass(message_at(SchemaText(text), (0,)))


def _protobuf() -> Value:
    _, message = _protobuf_file()

    def value(number: int) -> bytes:
        record = _record(number, _counted)
        made = message(id=record["id"], customer=record["customer"])
        for order_line in record["lines"]:
            added = made.lines.add(**{name: inner for name, inner in order_line.items() if name != "at"})
            added.at.seconds = order_line["at"] // 1000
        return bytes(PREFIX + b"\x00" + made.SerializeToString())

    return value


VALUES: Mapping[str, Callable[[], Value]] = {
    "json": _json,
    "avro": _avro,
    "protobuf": _protobuf,
    "connect": _connect,
    "debezium": _debezium,
}
"""Makers of what makes the value of a record by its number, by format."""
