"""Know the format of a topic's values: which it is, and what describes it."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.deleted_rows import DeletedRowsFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.record_keys import RECORD_KEY_FORMATS, TEXT_KEYS, RecordKeyFormat
from makewhole.compute.decode.schema_keys import avro_keys, protobuf_keys
from makewhole.compute.decode.schema_texts import KEY_SCHEMA_HEADER
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.decode.shapes.prefixed_json import PrefixedJsonFormat
from makewhole.compute.decode.shapes.unit_values import UnitFormat
from makewhole.compute.decode.value_format import ValueFormat, path_of
from makewhole.compute.decode.whole_values import BytesFormat, JsonInStringFormat, TextFormat
from makewhole.config.connections import from_environment
from makewhole.lake.storage import Storage
from makewhole.model.connection import RegistryConnection, registry_of
from makewhole.model.points import TopicPoint, ValueSchema
from makewhole.window.known_schemas import FileSchema, RegistrySchemas

if TYPE_CHECKING:
    from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat

_of_file = lru_cache(FileSchema)
_ELEMENTS = ElementFormat()
_OF_ROWS = ("json", "json_schema", "connect", "avro", "protobuf")
"""Formats whose values can be marked as those of deleted rows."""


@lru_cache
def _of_registry(connection: RegistryConnection, storage: Storage, *how: str) -> RegistrySchemas:
    return RegistrySchemas(connection, storage, *how)


def _schemas(point: TopicPoint, storage: Storage | None, kind: str, form: str = "") -> FileSchema | RegistrySchemas:
    """Return the schemas of a point's values, the same each time, so that what is known of them is known once a
    process."""
    assert point.schema is not None, point.name
    return _described(point.schema, storage, kind, form, point.schema.subject or f"{point.topic}-value")


def _described(schema: ValueSchema, storage: Storage | None, *how: str) -> FileSchema | RegistrySchemas:
    if schema.registry is None:
        return _of_file(schema.text)
    connection = registry_of(from_environment(schema.registry))
    return _of_registry(connection, storage or Storage.from_environment(), *how)


@lru_cache
def _protobuf(schemas: FileSchema | RegistrySchemas, message: str) -> "ProtobufFormat":
    from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat  # Google's library, for these alone

    return ProtobufFormat(schemas, message)


def _key_schemas(point: TopicPoint, storage: Storage | None, kind: str, form: str = "") -> FileSchema | RegistrySchemas:
    """Return the schemas of a point's record keys: those of its own, or the registry of its values."""
    schema = point.key_schema or point.schema
    assert schema is not None, point.name
    return _described(schema, storage, kind, form, f"{point.topic}-key", KEY_SCHEMA_HEADER)


_avro = lru_cache(AvroFormat)
_avro_keys, _protobuf_keys = lru_cache(avro_keys), lru_cache(protobuf_keys)


def _message_of(schema: ValueSchema | None) -> str:
    return schema.message if schema else ""


FORMATS: Mapping[str, Callable[[TopicPoint, Storage | None], ValueFormat]] = {
    "json": lambda *_: JSON,
    "avro": lambda point, storage: _avro(_schemas(point, storage, "AVRO")),
    "protobuf": lambda point, storage: _protobuf(
        _schemas(point, storage, "PROTOBUF", "serialized"), _message_of(point.schema)
    ),
    "json_schema": lambda *_: PrefixedJsonFormat(),
    "json_in_string": lambda *_: JsonInStringFormat(),
    "connect": lambda *_: ConnectFormat(),
    "debezium": lambda *_: ChangeEventFormat(),
    "string": lambda *_: TextFormat(),
    "bytes": lambda *_: BytesFormat(),
}
"""Makers of the format of a point, by the word of its file (`makewhole.model.points.VALUE_FORMATS`)."""


def format_of(point: TopicPoint, storage: Storage | None = None) -> ValueFormat:
    """Return the format of the values of a topic, of their elements where they are divided. `storage`: where schemas
    are kept; None: that of the environment.

    Raises:
        ConfigurationError: the connection to its registry is not there, or cannot be understood.
    """
    form = FORMATS[point.value](point, storage) if point.explode is None else _ELEMENTS
    form = DeletedRowsFormat(form) if point.explode is None and point.value in _OF_ROWS else form
    return UnitFormat(form, dict(point.units)) if point.units else form


def elements_of(point: TopicPoint, storage: Storage | None = None, *, takes_latest: bool = False) -> Elements | None:
    """Return what divides the records of a topic into elements; None: nothing does. `takes_latest` as `Elements` has
    it. Raises as `format_of`."""
    if point.explode is None:
        return None
    form = FORMATS[point.value](point, storage)
    return Elements(path=path_of(point.explode), format=form, takes_latest=takes_latest)


_KEY_FORMATS: Mapping[str, Callable[[TopicPoint, Storage | None], RecordKeyFormat]] = {
    "avro": lambda point, storage: _avro_keys(_key_schemas(point, storage, "AVRO")),
    "protobuf": lambda point, storage: _protobuf_keys(
        _key_schemas(point, storage, "PROTOBUF", "serialized"), _message_of(point.key_schema)
    ),
}


def record_key_format_of(point: TopicPoint, storage: Storage | None = None) -> RecordKeyFormat:
    """Return the format of the record keys of a topic. Raises as `format_of`."""
    name = point.record_key or TEXT_KEYS.name
    described = _KEY_FORMATS.get(name)
    return RECORD_KEY_FORMATS[name] if described is None else described(point, storage)
