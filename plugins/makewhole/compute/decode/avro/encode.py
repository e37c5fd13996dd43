"""Encode a JSON object as one Avro body: what is read back has the same fields, or it is refused."""

import re
import struct
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from makewhole.compute.canonical import canonical_text
from makewhole.compute.decode.avro.schema import MOST_EMPTY, AvroType
from makewhole.compute.keys import KeyProblem
from makewhole.compute.numbers import NOT_FINITE

_LONG_MOST = 2**63
_MICROSECONDS_OF_DAY = 86_400 * 10**6
_FINER = re.compile(r"[.,][0-9]{6}0*[1-9]")
_UNITS = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}


class _Unfit(ValueError):  # noqa: N818 - the reason that a record is reported with
    """A value that a type does not hold."""


def encode_body(schema: AvroType, document: Mapping[str, Any]) -> bytes:
    """Encode the fields of a record. A field that the object has not is null, where the schema takes null.

    Raises:
        KeyProblem: a field does not fit its type exactly, or the schema does not have it; with its place.
    """
    return _encoded(schema, document, "value")


def _encoded(kind: AvroType, value: Any, place: str) -> bytes:
    try:
        return _ENCODERS[kind.kind](kind, value, place)
    except (_Unfit, ValueError, TypeError, InvalidOperation, OverflowError, AttributeError, struct.error) as error:
        if isinstance(error, KeyProblem):
            raise
        raise KeyProblem(f"{place} does not fit the type {kind.logical or kind.kind} of its topic's schema") from None


def zigzag(number: int) -> bytes:
    """Encode a number of at most 64 bits."""
    if not -_LONG_MOST <= number < _LONG_MOST:
        raise _Unfit
    left, encoded = ((number << 1) ^ (number >> 63)) & (2**64 - 1), bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*encoded, left))


def _sized(content: bytes) -> bytes:
    return zigzag(len(content)) + content


def _record(kind: AvroType, value: Any, place: str) -> bytes:
    if not isinstance(value, Mapping):
        raise _Unfit
    if unknown := sorted(set(value) - set(kind.names)):
        raise KeyProblem(f"{_below(place, unknown[0])} is no field of its topic's schema")
    return b"".join(
        _encoded(inner, value.get(name), _below(place, name))
        for name, inner in zip(kind.names, kind.inner, strict=True)
    )


def _below(place: str, name: str) -> str:
    return name if place == "value" else f"{place}.{name}"


def _union(kind: AvroType, value: Any, place: str) -> bytes:
    """Encode as the first branch that holds the value."""
    for number, branch in enumerate(kind.inner):
        if (branch.kind == "null") is not (value is None):
            continue
        try:
            return zigzag(number) + _encoded(branch, value, place)
        except KeyProblem:
            if kind.branch_beside_null() is not None:
                raise
    raise _Unfit


def _null(_: AvroType, value: Any, __: str) -> bytes:
    if value is not None:
        raise _Unfit
    return b""


def _boolean(_: AvroType, value: Any, __: str) -> bytes:
    if not isinstance(value, bool):
        raise _Unfit
    return bytes([value])


def _whole(kind: AvroType, value: Any, _: str) -> bytes:
    number = _number_of(kind, value)
    most = _LONG_MOST if kind.kind == "long" else 2**31
    if not -most <= number < most:
        raise _Unfit
    return zigzag(number)


def _number_of(kind: AvroType, value: Any) -> int:
    logical = kind.logical or ""
    if "timestamp" in logical:
        return _exactly(exact_microseconds(value) * _UNITS[logical.rpartition("-")[2]], 10**6)
    if logical == "date":
        return _exactly(exact_microseconds(canonical_text(value, "date")), _MICROSECONDS_OF_DAY)
    if logical.startswith("time-"):
        since_midnight = exact_microseconds(f"1970-01-01T{value}")
        return _exactly(since_midnight * _UNITS[logical.rpartition("-")[2]], 10**6)
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or value != int(value):
        raise _Unfit
    return int(value)


def exact_microseconds(value: Any) -> int:
    """Return a moment in microseconds since 1970.

    Raises:
        ValueError: it is none, or finer.
    """
    if _FINER.search(value):
        raise _Unfit
    return int(canonical_text(value, "timestamp") or "!")


def _exactly(number: int, divisor: int) -> int:
    whole, rest = divmod(number, divisor)
    if rest:
        raise _Unfit
    return whole


def _real(kind: AvroType, value: Any, _: str) -> bytes:
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if not is_number and value not in NOT_FINITE:
        raise _Unfit
    encoded = struct.pack("<f" if kind.kind == "float" else "<d", float(value))
    if is_number:
        [number] = struct.unpack("<f" if kind.kind == "float" else "<d", encoded)
        read = kind.json_value(number)
        if isinstance(read, str) or read != value:
            raise _Unfit
    return encoded


def _bytes(kind: AvroType, value: Any, _: str) -> bytes:
    content = _content(kind, value)
    if kind.kind == "bytes":
        return _sized(content)
    if len(content) != kind.size:
        raise _Unfit
    return content


def _content(kind: AvroType, value: Any) -> bytes:
    if kind.logical == "decimal":
        number = Decimal(value) if isinstance(value, int | Decimal | str) and not isinstance(value, bool) else None
        sign, digits, exponent = (number if number is not None else Decimal("NaN")).as_tuple()
        if not isinstance(exponent, int) or len(digits) + abs(exponent) > 1_000:
            raise _Unfit
        shifted = int("".join(map(str, digits))) * (-1 if sign else 1) * 10 ** max(exponent + kind.scale, 0)
        unscaled = _exactly(shifted, 10 ** max(-exponent - kind.scale, 0))
        if abs(unscaled) >= 10**kind.precision:
            raise _Unfit
        size = kind.size or (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        return unscaled.to_bytes(size, "big", signed=True)
    if kind.logical == "uuid":
        return bytes.fromhex(value.replace("-", ""))
    if not value.startswith("\\x"):
        raise _Unfit
    return bytes.fromhex(value[2:])


def _string(_: AvroType, value: Any, __: str) -> bytes:
    if not isinstance(value, str):
        raise _Unfit
    return _sized(value.encode())


def _enum(kind: AvroType, value: Any, _: str) -> bytes:
    return zigzag(kind.symbols.index(value))


def _array(kind: AvroType, value: Any, place: str) -> bytes:
    if not isinstance(value, list) or (len(value) > MOST_EMPTY and not kind.inner[0].has_bytes()):
        raise _Unfit
    items = b"".join(_encoded(kind.inner[0], item, f"{place}[]") for item in value)
    return zigzag(len(value)) + items + b"\x00" if value else b"\x00"


def _map(kind: AvroType, value: Any, place: str) -> bytes:
    if not isinstance(value, Mapping):
        raise _Unfit
    members = b"".join(
        _sized(name.encode()) + _encoded(kind.inner[0], member, _below(place, name)) for name, member in value.items()
    )
    return zigzag(len(value)) + members + b"\x00" if value else b"\x00"


_ENCODERS = {
    "null": _null,
    "boolean": _boolean,
    "int": _whole,
    "long": _whole,
    "float": _real,
    "double": _real,
    "bytes": _bytes,
    "fixed": _bytes,
    "string": _string,
    "enum": _enum,
    "array": _array,
    "map": _map,
    "union": _union,
    "record": _record,
}
