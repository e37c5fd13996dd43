"""Read MongoDB's extended JSON as plain JSON: `{"$oid": "…"}` is the text, `{"$numberLong": "7"}` the number.

Source: https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md
"""

import base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from makewhole.compute.decode.shapes.counts import counted_moment

_MILLISECOND_DIGITS = 3
_MOST_DIGITS = 20


def plain_document(value: Any) -> Any:
    """Return a value with its types of MongoDB as JSON has them; one of an unknown form stays as it is."""
    if isinstance(value, list):
        return [plain_document(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(name, inner)] = value.items()
        read = _READ.get(name)
        if read is not None:
            try:
                return read(inner)
            except (ValueError, TypeError, ArithmeticError, LookupError):
                return value
    return {name: plain_document(inner) for name, inner in value.items()}


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
    """Return bytes as PostgreSQL writes a `bytea`."""
    return rf"\x{base64.b64decode(value['base64'], validate=True).hex()}"


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
