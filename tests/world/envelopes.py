"""Write orders as Kafka Connect and Debezium do, byte for byte in their style: no spaces, the schema first."""

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.world.orders import Order, milliseconds

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_FIELDS = [
    {"type": "string", "optional": False, "field": "id"},
    {"type": "int32", "optional": True, "field": "number"},
    {"type": "string", "optional": True, "field": "region"},
    {
        "type": "bytes",
        "optional": True,
        "name": _DECIMAL,
        "version": 1,
        "parameters": {"scale": "2", "connect.decimal.precision": "8"},
        "field": "amount",
    },
    {"type": "int64", "optional": True, "name": "io.debezium.time.MicroTimestamp", "version": 1, "field": "at"},
]
_ROW = {"type": "struct", "fields": _FIELDS, "optional": True, "name": "shop.public.outbox.Value"}
_EVENT = {
    "type": "struct",
    "fields": [
        {**_ROW, "field": "before"},
        {**_ROW, "field": "after"},
        {"type": "struct", "fields": [{"type": "int64", "optional": True, "field": "lsn"}], "field": "source"},
        {"type": "string", "optional": False, "field": "op"},
        {"type": "int64", "optional": True, "field": "ts_ms"},
    ],
    "optional": False,
    "name": "shop.public.outbox.Envelope",
}
_KEY = {
    "type": "struct",
    "fields": [{"type": "string", "optional": False, "field": "id"}],
    "optional": False,
    "name": "shop.public.outbox.Key",
}


def compact(document: Any) -> bytes:
    """Write JSON as Java does."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def base64_decimal(number: str, scale: int = 2) -> str:
    """Return a number as `decimal.format=BASE64` writes it."""
    unscaled = int(Decimal(number).scaleb(scale))
    return base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()


def row_of(order: Order) -> dict[str, Any]:
    """Return the fields of an order by their logical types."""
    microseconds = milliseconds(order["at"]) * 1000 + datetime.fromisoformat(order["at"]).microsecond % 1000
    return {**order, "amount": base64_decimal(order["amount"]), "at": microseconds}


def enveloped(schema: Mapping[str, Any], payload: Any) -> bytes:
    """Return a payload in the envelope of JsonConverter."""
    return compact({"schema": schema, "payload": payload})


def connect_value(order: Order | None) -> bytes:
    """Return the value of an order, or of a deletion, as JsonConverter writes it behind Debezium's unwrap."""
    return enveloped(_ROW, None if order is None else row_of(order))


def connect_key(key: str) -> bytes:
    """Return the record key of an order as JsonConverter writes it with schemas."""
    return enveloped(_KEY, {"id": key})


def event(op: str, order: Order, lsn: int, *, is_typed: bool) -> dict[str, Any]:
    """Return a change event. `is_typed`: its values are those of logical types."""
    row = row_of(order) if is_typed else order
    bare = dict.fromkeys(order) | {"id": order["id"]}
    return {
        "before": bare if op == "d" else None,
        "after": None if op == "d" else row,
        "source": {"lsn": lsn},
        "op": op,
        "ts_ms": milliseconds(order["at"]),
    }


def change_event(op: str, order: Order, lsn: int = 1) -> bytes:
    """Return a change event of Debezium in the envelope of JsonConverter."""
    return enveloped(_EVENT, event(op, order, lsn, is_typed=True))


def bare_change_event(op: str, order: Order, lsn: int = 1) -> bytes:
    """Return a change event of Debezium without a schema."""
    return compact(event(op, order, lsn, is_typed=False))


def behind_prefix(body: bytes) -> bytes:
    """Return a value behind the prefix of a schema registry: a zero byte and the number of a schema."""
    return b"\0\0\0\0\7" + body


def json_in_string(order: Order) -> bytes:
    """Return an order as Debezium's outbox router writes a payload of `jsonb`."""
    return compact(json.dumps(order))
