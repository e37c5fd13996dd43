"""Write orders as the values of records: JSON, or Avro by a schema that both sides have as a file."""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from makewhole.compute.decode.avro.encode import zigzag
from makewhole.native.arrays import Int64s

STATES = ("NEW", "PAID", "SHIPPED", "DONE")
_NOTE, _CHANNEL = "standard delivery, two parcels", "web"
Number = TypeVar("Number", int, Int64s)
AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "order_id", "type": "string"},
            {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
            {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": STATES}},
            {"name": "note", "type": ["null", "string"]},
            {"name": "channel", "type": "string"},
        ],
    }
)


class OrderFormat(StrEnum):
    """The format of the values of orders."""

    JSON = "json"
    AVRO = "avro"


def order_value(form: OrderFormat, number: int) -> bytes:
    """Return the value of the record of an order: about 110 bytes as JSON, 60 as Avro."""
    return _WRITERS[form](key_of(number), cents_of(number), number % len(STATES))


def key_of(number: int) -> str:
    """Return the key of an order."""
    return f"O{number:010d}"


def cents_of(number: Number) -> Number:
    """Return the amount of an order, or of an array of them."""
    return number * 7919 % 1_000_000


def _json_value(key: str, cents: int, state: int) -> bytes:
    return (
        f'{{"order_id":"{key}","amount":{cents / 100:.2f},"status":"{STATES[state]}",'
        f'"note":"{_NOTE}","channel":"{_CHANNEL}"}}'
    ).encode()


def _avro_value(key: str, cents: int, state: int) -> bytes:
    amount = cents.to_bytes(cents.bit_length() // 8 + 1, "big")
    return b"".join((_sized(key.encode()), _sized(amount), zigzag(state), _AVRO_END))


def _sized(content: bytes) -> bytes:
    return zigzag(len(content)) + content


_AVRO_END = zigzag(1) + _sized(_NOTE.encode()) + _sized(_CHANNEL.encode())
_WRITERS: Mapping[OrderFormat, Callable[[str, int, int], bytes]] = {
    OrderFormat.JSON: _json_value,
    OrderFormat.AVRO: _avro_value,
}
