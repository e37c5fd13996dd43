"""Decode one Protobuf message with Google's library: the reference for many at once.

A field that its schema gives no presence has its default where it is absent; one with presence is null there.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from makewhole.compute.decode.avro.schema import bytes_value, float_value
from makewhole.compute.keys import KeyProblem
from makewhole.compute.moments import moment_text, time_text

_NANOSECONDS, _MICROSECONDS = 10**9, 10**6
_NO_TEXT = "value is not valid UTF-8"
_Render = Callable[[Any], Any]


def document_of(descriptor: Any, body: bytes) -> dict[str, Any]:
    """Decode a body to its fields, by the names of the schema.

    Raises:
        KeyProblem: it is no message, or a text in it is none.
    """
    try:
        message = _class_of(descriptor).FromString(body)
    except DecodeError:
        raise KeyProblem("value is no message of its schema") from None
    try:
        return _fields(message)
    except UnicodeDecodeError:  # a name in a map
        raise KeyProblem(_NO_TEXT) from None


@lru_cache(maxsize=256)
def _class_of(descriptor: Any) -> Any:
    return message_factory.GetMessageClass(descriptor)


def _fields(message: Any) -> dict[str, Any]:
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def _field(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if is_map(field):
        render = renderer(field.message_type.fields_by_name["value"])
        return {name_in_map(key): render(value[key]) for key in value}
    if field.is_repeated:
        return [renderer(field)(item) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return renderer(field)(value)


def is_map(field: Any) -> bool:
    """Return whether a field is a map."""
    return bool(field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry)


def is_one_value(kind: Any) -> bool:
    """Return whether a message of a type is one value of a JSON field, which has no fields itself."""
    return kind.full_name in _WELL_KNOWN


def name_in_map(key: Any) -> str:
    """Return the name under which an object has what a map has under a key."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def renderer(field: Any) -> _Render:
    """Return what makes the value of a JSON field of a single value of a field."""
    if field.message_type is not None:
        return _WELL_KNOWN.get(field.message_type.full_name, _fields)
    if field.enum_type is not None:
        return symbol_of(field)
    return _RENDERERS.get(field.type, _as_it_is)


def symbol_of(field: Any) -> _Render:
    """Return what names the numbers of an enum; one that has no name stays a number."""
    symbols = {number: value.name for number, value in field.enum_type.values_by_number.items()}
    return lambda number: symbols.get(number, number)


def moment_of(seconds: int, nanoseconds: int) -> str:
    """Return a moment of the type Timestamp, with nine digits where six do not hold it."""
    since_1970 = seconds * _NANOSECONDS + nanoseconds
    whole, rest = divmod(since_1970, _NANOSECONDS // _MICROSECONDS)
    return moment_text(since_1970, _NANOSECONDS, "Z") if rest else moment_text(whole, _MICROSECONDS, "Z")


def _duration(message: Any) -> str:
    """Return a duration as PostgreSQL writes an interval of seconds."""
    nanoseconds = message.seconds * _NANOSECONDS + message.nanos
    sign = "-" if nanoseconds < 0 else ""
    return sign + time_text(abs(nanoseconds) * _MICROSECONDS // _NANOSECONDS)


def _as_it_is(value: Any) -> Any:
    return value


def _text(value: str | bytes) -> str:
    """Return a text. Google's library checks those of proto3 alone, and returns as bytes what is none."""
    if isinstance(value, bytes):
        raise KeyProblem(_NO_TEXT)
    return value


def _wrapped(message: Any) -> Any:
    return renderer(message.DESCRIPTOR.fields_by_name["value"])(message.value)


TIMESTAMP = "google.protobuf.Timestamp"
WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
DOUBLE, FLOAT, STRING, BYTES = 1, 2, 9, 12  # of FieldDescriptor
_RENDERERS: Mapping[int, _Render] = {
    DOUBLE: lambda value: float_value(np.float64(value)),
    FLOAT: lambda value: float_value(np.float32(value)),
    STRING: _text,
    BYTES: bytes_value,
}
_WELL_KNOWN: Mapping[str, _Render] = {
    TIMESTAMP: lambda message: moment_of(message.seconds, message.nanos),
    "google.protobuf.Duration": _duration,
    **dict.fromkeys(WRAPPERS, _wrapped),
}
