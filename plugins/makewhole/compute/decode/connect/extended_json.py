"""Read MongoDB's extended JSON as plain JSON: `{"$oid": "…"}` is the text, `{"$numberLong": "7"}` the number.

Source: https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md
"""

import base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from makewhole.compute.decode.shapes.counts import counted_moment

_MILLISECOND_DIGITS = 3
_MOST_DIGITS = 20
_BYTES_AND_TYPE = {"$binary", "$type"}  # as older drivers, and Debezium by them, write bytes
_UUID, _UUID_BYTES = "04", 16


def plain_document(value: Any) -> Any:
    """Return a value with its types of MongoDB as JSON has them; one of an unknown form stays as it is."""
    if isinstance(value, list):
        return [plain_document(item) for item in value]
    if not isinstance(value, dict):
        return value
    read = _reading(value)
    if read is None:
        return {name: plain_document(inner) for name, inner in value.items()}
    try:
        return read()
    except (ValueError, TypeError, ArithmeticError, LookupError):
        return value


def _reading(value: Mapping[str, Any]) -> Callable[[], Any] | None:
    """Return what reads an object as a value of a type of MongoDB; None: by its names it is none."""
    if value.keys() == _BYTES_AND_TYPE:
        return lambda: _bytes_of_type(value["$binary"], value["$type"])
    if len(value) != 1:
        return None
    [(name, inner)] = value.items()
    read = _READ.get(name)
    return None if read is None else lambda: read(inner)


def _number(value: Any) -> Decimal | str:
    if not isinstance(value, str):
        raise TypeError("not a number")
    number = Decimal(value)
    return number if number.is_finite() else value


def _integer(value: Any) -> int:
    number = _number(value)
    if isinstance(number, str) or number != number.to_integral_value() or number.adjusted() > _MOST_DIGITS:
        raise ValueError("not an integer")
    return int(number)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _moment(value: Any) -> str:
    """Return a moment: a text of ISO 8601, or milliseconds since 1970."""
    if isinstance(value, str):
        return value
    milliseconds = (
        _integer(value["$numberLong"]) if isinstance(value, dict) and set(value) == {"$numberLong"} else value
    )
    return counted_moment(_MILLISECOND_DIGITS, milliseconds)


def _bytes(value: Any) -> str:
    return _bytes_of_type(value["base64"], value.get("subType", ""))


def _bytes_of_type(encoded: Any, kind: Any) -> str:
    """Return bytes as PostgreSQL writes a `bytea`; those of the type UUID as a UUID. In which order an older UUID (03)
    stands, the driver knows that wrote it."""
    if not isinstance(encoded, str) or not isinstance(kind, str):
        raise TypeError("no bytes")
    content = base64.b64decode(encoded, validate=True)
    return str(UUID(bytes=content)) if kind.zfill(2) == _UUID and len(content) == _UUID_BYTES else rf"\x{content.hex()}"


_READ: Mapping[str, Callable[[Any], Any]] = {
    "$oid": _text,
    "$uuid": _text,
    "$symbol": _text,
    "$numberInt": _integer,
    "$numberLong": _integer,
    "$numberDouble": _number,
    "$numberDecimal": _number,
    "$date": _moment,
    "$binary": _bytes,
}
