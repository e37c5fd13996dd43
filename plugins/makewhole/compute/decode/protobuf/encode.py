"""Encode a JSON object as one Protobuf message: each field fits its type exactly, or it is refused."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from google.protobuf import message_factory

from makewhole.compute.decode.avro.encode import exact_microseconds
from makewhole.compute.decode.protobuf.reference import (
    BYTES,
    DOUBLE,
    FLOAT,
    TIMESTAMP,
    WRAPPERS,
    is_map,
    name_in_map,
    renderer,
)
from makewhole.compute.keys import KeyProblem
from makewhole.compute.numbers import NOT_FINITE

_BOOLEAN, _STRING = 8, 9  # of FieldDescriptor
_MICROSECONDS = 10**6


def encode_message(descriptor: Any, document: Mapping[str, Any]) -> bytes:
    """Encode the fields of a message. One that the object has not is absent.

    Raises:
        KeyProblem: a field does not fit its type, cannot be null, or the schema does not have it; with its place.
    """
    message = message_factory.GetMessageClass(descriptor)()
    _fill(message, document, "")
    content: bytes = message.SerializeToString(deterministic=True)
    return content


def _fill(message: Any, document: Mapping[str, Any], within: str) -> None:
    fields = message.DESCRIPTOR.fields_by_name
    for name, value in document.items():
        place = f"{within}{name}"
        if name not in fields:
            raise KeyProblem(f"{place} is no field of its topic's schema")
        field = fields[name]
        if value is None:
            if not field.has_presence and not field.is_repeated:
                raise KeyProblem(f"{place} is null, and its field in the topic's schema cannot be")
            continue
        oneof = field.containing_oneof
        if oneof is not None and (other := message.WhichOneof(oneof.name)) is not None:
            both = f"{within}{other} and {place}"
            raise KeyProblem(f"{both} are of one oneof in the topic's schema, which holds one of them")
        try:
            _set(message, field, value, place)
        except KeyProblem:
            raise
        except (ValueError, TypeError, InvalidOperation, OverflowError, AttributeError):
            raise KeyProblem(f"{place} does not fit its type in the topic's schema") from None


def _set(message: Any, field: Any, value: Any, place: str) -> None:
    own = getattr(message, field.name)
    if is_map(field):
        inner = field.message_type.fields_by_name["value"]
        for key, member in value.items():
            typed = _map_key(field.message_type.fields_by_name["key"], key)
            if inner.message_type is None:
                own[typed] = _scalar(inner, member)
            else:
                _set_message(own[typed], member, f"{place}.{key}")
    elif field.is_repeated:
        for item in _as_list(value):
            if field.message_type is None:
                own.append(_scalar(field, item))
            else:
                _set_message(own.add(), item, f"{place}[]")
    elif field.message_type is None:
        setattr(message, field.name, _scalar(field, value))
    else:
        own.SetInParent()
        _set_message(own, value, place)


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _map_key(field: Any, key: str) -> Any:
    if field.type == _STRING:
        return key
    typed = key == "true" if field.type == _BOOLEAN else int(key)
    if name_in_map(typed) != key:
        raise ValueError  # it would be another name
    return typed


def _set_message(message: Any, value: Any, place: str) -> None:
    name = message.DESCRIPTOR.full_name
    if name == TIMESTAMP:
        message.seconds, rest = divmod(exact_microseconds(value), _MICROSECONDS)
        message.nanos = rest * 1_000
    elif name in WRAPPERS:
        message.value = _scalar(message.DESCRIPTOR.fields_by_name["value"], value)
    elif isinstance(value, Mapping) and not name.startswith("google.protobuf."):
        _fill(message, value, f"{place}.")
    else:
        raise TypeError


def _scalar(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        return int(value) if _is_whole(value) else _symbol(field, value)
    if field.type == _BOOLEAN:
        if not isinstance(value, bool):
            raise TypeError
        return value
    if field.type in (_STRING, BYTES):
        return value if field.type == _STRING else _bytes(value)
    if field.type in (DOUBLE, FLOAT):
        return _real(field, value)
    if not _is_whole(value):
        raise TypeError
    return int(value)


def _symbol(field: Any, name: Any) -> int:
    symbol = field.enum_type.values_by_name.get(name)
    if symbol is None:
        raise ValueError
    return int(symbol.number)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool) and value == int(value)


def _bytes(value: str) -> bytes:
    if not value.startswith("\\x"):
        raise ValueError
    return bytes.fromhex(value[2:])


def _real(field: Any, value: Any) -> float:
    if isinstance(value, str) and value in NOT_FINITE:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError
    if renderer(field)(float(value)) != value:
        raise ValueError  # it would be another number
    return float(value)
