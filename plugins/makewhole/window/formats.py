"""Know the format of a topic's values: which it is, and what describes it."""

from collections.abc import Callable, Mapping
from functools import lru_cache

from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat
from makewhole.compute.decode.record_keys import RECORD_KEY_FORMATS, TEXT_KEYS, RecordKeyFormat
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.decode.shapes.unit_values import UnitFormat
from makewhole.compute.decode.value_format import ValueFormat, path_of
from makewhole.compute.decode.whole_values import BytesFormat, JsonInStringFormat, TextFormat
from makewhole.config.connections import from_environment
from makewhole.lake.storage import Storage
from makewhole.model.connection import RegistryConnection, registry_of
from makewhole.model.points import TopicPoint
from makewhole.window.known_schemas import FileSchema, RegistrySchemas

_of_file = lru_cache(FileSchema)
_ELEMENTS = ElementFormat()


@lru_cache
def _of_registry(
    connection: RegistryConnection, storage: Storage, kind: str, form: str, subject: str
) -> RegistrySchemas:
    return RegistrySchemas(connection, storage, kind, form, subject)


@lru_cache
def _avro(schemas: FileSchema | RegistrySchemas) -> AvroFormat:
    return AvroFormat(schemas)


def _schemas(point: TopicPoint, storage: Storage | None, kind: str, form: str = "") -> FileSchema | RegistrySchemas:
    """Return the schemas of a point, the same each time, so that what is known of them is known once a process."""
    assert point.schema is not None, point.name
    if point.schema.registry is None:
        return _of_file(point.schema.text)
    connection = registry_of(from_environment(point.schema.registry))
    subject = point.schema.subject or f"{point.topic}-value"
    return _of_registry(connection, storage or Storage.from_environment(), kind, form, subject)


@lru_cache
def _protobuf(schemas: FileSchema | RegistrySchemas, message: str) -> ProtobufFormat:
    return ProtobufFormat(schemas, message)


def _message_of(point: TopicPoint) -> str:
    return point.schema.message if point.schema else ""


FORMATS: Mapping[str, Callable[[TopicPoint, Storage | None], ValueFormat]] = {
    "json": lambda *_: JSON,
    "avro": lambda point, storage: _avro(_schemas(point, storage, "AVRO")),
    "protobuf": lambda point, storage: _protobuf(
        _schemas(point, storage, "PROTOBUF", "serialized"), _message_of(point)
    ),
    "json_in_string": lambda *_: JsonInStringFormat(),
    "connect": lambda *_: ConnectFormat(),
    "debezium": lambda *_: ChangeEventFormat(),
    "string": lambda *_: TextFormat(),
    "bytes": lambda *_: BytesFormat(),
}
"""What makes the format of a point, by the word of its file (`makewhole.model.points.VALUE_FORMATS`)."""


def format_of(point: TopicPoint, storage: Storage | None = None) -> ValueFormat:
    """Return the format of the values of a topic, of their elements where they are divided. `storage`: where schemas
    are kept; None: that of the environment.

    Raises:
        ConfigurationError: the connection to its registry is not there, or cannot be understood.
    """
    form = FORMATS[point.value](point, storage) if point.explode is None else _ELEMENTS
    return UnitFormat(form, dict(point.units)) if point.units else form


def elements_of(point: TopicPoint, storage: Storage | None = None) -> Elements | None:
    """Return what divides the records of a topic into elements; None: nothing does. Raises as `format_of`."""
    if point.explode is None:
        return None
    return Elements(path=path_of(point.explode), format=FORMATS[point.value](point, storage))


def record_key_format_of(point: TopicPoint) -> RecordKeyFormat:
    """Return the format of the record keys of a topic."""
    return RECORD_KEY_FORMATS[point.record_key or TEXT_KEYS.name]
