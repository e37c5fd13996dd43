"""Write records whose schemas are in a registry: Avro of two schemas in one topic, Protobuf, and keys of their own."""

import base64
import io
from collections.abc import Mapping
from typing import Any

import fastavro

from tests.histories.shapes.formats import (
    AVRO,
    AVRO_KEY,
    DESCRIPTORS,
    RecordFormat,
    avro_key,
    avro_row,
    avro_value,
    protobuf_value,
)
from tests.world.orders import Order
from tests.world.registry_server import RegistryServer

_NEWER: Mapping[str, Any] = {**AVRO, "fields": [*reversed(AVRO["fields"]), {"name": "channel", "type": "string"}]}
_NEWER_SCHEMA: Any = fastavro.parse_schema(dict(_NEWER))
_OLD, _NEW, _KEY, _PROTOBUF = range(1, 5)
_FIRST_MESSAGE = b"\x00"


def register_schemas(registry: RegistryServer) -> None:
    """Have a registry know the schemas by the numbers that the records name."""
    registry.register(_OLD, AVRO)
    registry.register(_NEW, _NEWER)
    registry.register(_KEY, AVRO_KEY, subject="orders-key")
    own = base64.b64encode(DESCRIPTORS.file[1].SerializeToString()).decode()
    registry.register(_PROTOBUF, own, subject="protobuf-value", schemaType="PROTOBUF")


def _prefix(number: int) -> bytes:
    return b"\x00" + number.to_bytes(4, "big")


def _avro_of_two_schemas(order: Order) -> bytes:
    """Write every other order by a newer schema, whose fields are in another order and one more."""
    if int(order["id"].removeprefix("O")) % 2:
        return _prefix(_OLD) + avro_value(order)
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _NEWER_SCHEMA, {**avro_row(order), "channel": "web"})
    return _prefix(_NEW) + body.getvalue()


_REGISTRY = {"registry": "{connection: registry}"}

REGISTRY_FORMATS = (
    RecordFormat(name="avro of a registry", value=_avro_of_two_schemas, settings={"value": "avro", **_REGISTRY}),
    RecordFormat(
        name="avro of a registry, keyed by a field of an Avro record key",
        value=_avro_of_two_schemas,
        key="kafka.key.id",
        settings={"value": "avro", "record_key": "avro", **_REGISTRY},
        record_key=lambda order: _prefix(_KEY).decode() + avro_key(order),
    ),
    RecordFormat(
        name="protobuf of a registry",
        value=lambda order: _prefix(_PROTOBUF) + _FIRST_MESSAGE + protobuf_value(order),
        settings={"value": "protobuf", **_REGISTRY},
    ),
)
