"""Write orders as the elements of records, in every format that a record can have, and at several places in it."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2

from tests.histories.shapes.changes import TYPES
from tests.histories.shapes.formats import (
    AVRO,
    CONNECT_ROW,
    DESCRIPTORS,
    avro_row,
    connect_row,
    message_class,
    protobuf_value,
)
from tests.world.envelopes import behind_prefix
from tests.world.orders import Order
from tests.world.pipeline_file import Settings, flow

BUNDLE = "bundle"
"""The field of a record that says which orders belong together."""


@dataclass(frozen=True, kw_only=True)
class RecordShape:
    """A shape of records. `value` writes the orders of a bundle (None: no array, or none in it); `array` is their place
    in it; None: each record is one order. `key`: the place of the bundle's name. `settings`, `files`: of the point."""

    name: str
    value: Callable[[str, Sequence[Order] | None], bytes]
    array: str | None = "$.lines[*]"
    key: str = f"$.{BUNDLE}"
    settings: Settings = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def point(self) -> Settings:
        """The keys of the point that describe its records."""
        inner = "$" if self.array is None else self.array
        divided = {} if self.array is None else {"explode": _quoted(self.array)}
        columns = {"columns": flow({name: _quoted(f"{inner}.{name}") for name in TYPES})}
        return {**divided, "key": f"[{_quoted(self.key)}, {_quoted(f'{inner}.id')}]", **columns, **self.settings}


def _quoted(place: str) -> str:
    doubled = place.replace("'", "''")
    return f"'{doubled}'"


def _json(bundle: str, orders: Sequence[Order] | None) -> dict[str, Any]:
    return {BUNDLE: bundle, "lines": orders}


def _nested(bundle: str, orders: Sequence[Order] | None) -> dict[str, Any]:
    """Return a record whose array is in an object, which is none itself where there is no array."""
    return {"before": [1, 2], "of": None if orders is None else {"x": "[", "lines": orders, "y": "]"}, BUNDLE: bundle}


def _of_any_names(bundle: str, orders: Sequence[Order] | None) -> dict[str, Any]:
    return {"of order": {"a.b": orders, "ab": [{"id": "none"}]}, BUNDLE: bundle}


def _as_text(bundle: str, orders: Sequence[Order] | None) -> dict[str, Any]:
    return {BUNDLE: bundle, "lines": None if orders is None else json.dumps(orders)}


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document).encode()


_AVRO: Any = {
    "type": "record",
    "name": "Bundle",
    "fields": [
        {"name": BUNDLE, "type": "string"},
        {"name": "lines", "type": ["null", {"type": "array", "items": AVRO}]},
    ],
}
_AVRO_SCHEMA: Any = fastavro.parse_schema(_AVRO)


def _avro(bundle: str, orders: Sequence[Order] | None) -> bytes:
    body = io.BytesIO()
    lines = None if orders is None else [avro_row(order) for order in orders]
    fastavro.schemaless_writer(body, _AVRO_SCHEMA, {BUNDLE: bundle, "lines": lines})
    return body.getvalue()


def _descriptors() -> descriptor_pb2.FileDescriptorSet:
    kinds = descriptor_pb2.FieldDescriptorProto
    message = descriptor_pb2.DescriptorProto(name="Bundle")
    message.field.add(name=BUNDLE, number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    message.field.add(name="lines", number=2, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_REPEATED, type_name=".Order")
    timestamp, order = DESCRIPTORS.file
    own = descriptor_pb2.FileDescriptorProto(
        name="bundle.proto", syntax="proto3", dependency=[order.name], message_type=[message]
    )
    return descriptor_pb2.FileDescriptorSet(file=[timestamp, order, own])


_DESCRIPTORS = _descriptors()
_BUNDLE_MESSAGE = message_class(_DESCRIPTORS, "Bundle")


def _protobuf(bundle: str, orders: Sequence[Order] | None) -> bytes:
    lines = [protobuf_value(order) for order in orders or ()]
    message = _BUNDLE_MESSAGE(bundle=bundle)
    for line in lines:
        message.lines.add().ParseFromString(line)
    encoded: bytes = message.SerializeToString()
    return encoded


_CONNECT: Mapping[str, Any] = {
    "type": "struct",
    "fields": [
        {"field": BUNDLE, "type": "string"},
        {"field": "lines", "type": "array", "optional": True, "items": CONNECT_ROW},
    ],
}


def _connect(bundle: str, orders: Sequence[Order] | None) -> bytes:
    lines = None if orders is None else [connect_row(order) for order in orders]
    return _encoded({"schema": _CONNECT, "payload": {BUNDLE: bundle, "lines": lines}})


def _single(bundle: str, orders: Sequence[Order] | None) -> bytes:
    """Write a record of one order."""
    [order] = orders or ()
    return _encoded({BUNDLE: bundle, **order})


SINGLE = RecordShape(name="a record for each", value=_single, array=None)
BUNDLES = (
    RecordShape(name="json", value=lambda *args: _encoded(_json(*args))),
    RecordShape(name="json, nested", value=lambda *args: _encoded(_nested(*args)), array="$.of.lines[*]"),
    RecordShape(
        name="json, at any names",
        value=lambda *args: _encoded(_of_any_names(*args)),
        array="$['of order']['a.b'][*]",
    ),
    RecordShape(name="json, keyed by the record", value=lambda *args: _encoded(_json(*args)), key="kafka.key"),
    RecordShape(name="an array in a text", value=lambda *args: _encoded(_as_text(*args))),
    RecordShape(
        name="json behind the prefix of a registry",
        value=lambda *args: behind_prefix(_encoded(_json(*args))),
        settings={"value": "json_schema"},
    ),
    RecordShape(
        name="json in a string",
        value=lambda *args: json.dumps(json.dumps(_json(*args))).encode(),
        settings={"value": "json_in_string"},
    ),
    RecordShape(
        name="avro",
        value=_avro,
        settings={"value": "avro", "schema": "bundle.avsc"},
        files={"bundle.avsc": json.dumps(_AVRO).encode()},
    ),
    RecordShape(
        name="protobuf",
        value=_protobuf,
        settings={"value": "protobuf", "schema": "bundle.desc", "message": "Bundle"},
        files={"bundle.desc": _DESCRIPTORS.SerializeToString()},
    ),
    RecordShape(name="connect", value=_connect, settings={"value": "connect"}),
)
"""The shapes whose records have several orders each."""
