"""Convert values of Kafka Connect's JSON to what PostgreSQL's JSON has for them, by the logical types of their schema.

A logical type is a schema's `name`: of Connect itself (`org.apache.kafka.connect.data.*`) and of Debezium
(`io.debezium.*`). Bytes without one are the text of `bytea`. A value that is none of its type stays as it is: it equals
only itself. Source: https://debezium.io/documentation/reference/3.2/connectors/postgresql.html#postgresql-data-types
"""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from functools import partial
from typing import Any

from makewhole.compute.decode.shapes.counts import counted_day, counted_moment, whole_number
from makewhole.compute.moments import time_text
from makewhole.compute.placeholders import is_placeholder

Convert = Callable[[Any], Any]
_CONNECT, _TIME, _DATA = "org.apache.kafka.connect.data.", "io.debezium.time.", "io.debezium.data."
_DECIMAL = f"{_CONNECT}Decimal"
JSON_TEXT = f"{_DATA}Json"
_EXACT = Context(prec=100_000)
_MILLI, _MICRO, _NANO = 3, 6, 9
_MICROSECONDS, _DAY_MICROSECONDS = 10**6, 86_400 * 10**6
_MOST_BITS = 1_000_000
_SCALE = re.compile(r"[0-9]{1,4}")
_SIGNED_YEAR = re.compile(r"([+-])([0-9]{4,6})(-.*)", re.DOTALL)


def conversion(schema: Any) -> Convert | None:
    """Return what converts the values of a schema; None: they are right as they are."""
    if not isinstance(schema, dict):
        return None
    convert = _by_name(schema) or _by_type(schema)
    return None if convert is None else partial(_converted, convert)


def field_conversions(schema: Any) -> dict[str, Convert]:
    """Return what converts the fields of a struct's schema, by field; those that are right as they are are left out."""
    fields = schema.get("fields") if isinstance(schema, dict) else None
    conversions = {}
    for field in fields if isinstance(fields, list) else []:
        convert, name = conversion(field), field.get("field") if isinstance(field, dict) else None
        if convert is not None and isinstance(name, str):
            conversions[name] = convert
    return conversions


def is_plain_struct(schema: Any) -> bool:
    """Return whether a schema is a struct of fields that are converted one by one."""
    fields = schema.get("fields") if isinstance(schema, dict) and schema.get("type") == "struct" else None
    return isinstance(fields, list) and all(isinstance(field, dict) for field in fields) and _by_name(schema) is None


def element_schema(schema: Any, path: Sequence[str]) -> Any:
    """Return the schema of values in which an element stands in place of its array at a path.

    Raises:
        ValueError: what is there, or on the way, is converted as a whole.
    """
    if path and is_plain_struct(schema):
        name, *rest = path
        return {**schema, "fields": [_field_of_element(field, name, rest) for field in schema["fields"]]}
    if not path and isinstance(schema, dict) and schema.get("type") == "array" and _by_name(schema) is None:
        return schema.get("items")
    if conversion(schema) is not None:
        raise ValueError("not converted element by element")
    return None


def _field_of_element(field: Mapping[str, Any], name: str, path: Sequence[str]) -> Any:
    if field.get("field") != name:
        return field
    inner = element_schema(field, path)
    return {**(inner if isinstance(inner, dict) else {}), "field": name}


def moment_digits_of(schema: Mapping[str, Any]) -> int | None:
    """Return the digits of a second that the values of a schema count since 1970; None: they are no such counts."""
    return _MOMENTS.get(str(schema.get("name")))


def decimal_scale_of(schema: Mapping[str, Any]) -> int | None:
    """Return the places of the decimals of a schema; None: they are none."""
    parameters = schema.get("parameters")
    scale = parameters.get("scale") if isinstance(parameters, dict) else None
    if schema.get("name") != _DECIMAL or not isinstance(scale, str) or not _SCALE.fullmatch(scale):
        return None
    return int(scale)


def _converted(convert: Convert, value: Any) -> Any:
    """Convert a value; null, a placeholder of the capture, and what is no value of its type stay as they are."""
    if value is None or is_placeholder(value):
        return value
    try:
        return convert(value)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return value


def _by_name(schema: Mapping[str, Any]) -> Convert | None:
    name, parameters = schema.get("name"), schema.get("parameters")
    make = _NAMED.get(name) if isinstance(name, str) else None
    return None if make is None else make(parameters if isinstance(parameters, dict) else {})


def _by_type(schema: Mapping[str, Any]) -> Convert | None:
    kind = schema.get("type")
    if kind == "bytes":
        return _hexadecimal
    if kind == "struct":
        conversions = field_conversions(schema)
        return partial(_struct, conversions) if conversions else None
    inner = conversion(schema.get({"array": "items", "map": "values"}.get(str(kind), "")))
    if inner is None:
        return None
    return partial(_array if kind == "array" else _map, inner)


def _struct(conversions: Mapping[str, Convert], value: Any) -> Any:
    return {name: conversions[name](inner) if name in conversions else inner for name, inner in value.items()}


def _array(convert: Convert, value: Any) -> Any:
    if not isinstance(value, list):
        raise TypeError("not an array")
    return [convert(item) for item in value]


def _map(convert: Convert, value: Any) -> Any:
    """Convert the values of a map: an object, or pairs where its keys are no texts."""
    if isinstance(value, dict):
        return {name: convert(inner) for name, inner in value.items()}
    return [[key, convert(inner)] for key, inner in value]


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError("not bytes")
    return base64.b64decode(value, validate=True)


def _hexadecimal(value: Any) -> str:
    """Return bytes as PostgreSQL writes a `bytea`."""
    return rf"\x{_bytes(value).hex()}"


def _decimal(scale: int, value: Any) -> Any:
    """Return a number of the converter's `decimal.format`: BASE64, big-endian two's complement, or NUMERIC."""
    if not isinstance(value, str):
        return value
    unscaled = _bytes(value)
    if not unscaled:
        raise ValueError("no digits")
    return Decimal(int.from_bytes(unscaled, "big", signed=True)).scaleb(-scale, _EXACT)


def _scaled_decimal(value: Any) -> Any:
    return _decimal(whole_number(value["scale"]), value["value"]) if set(value) == {"scale", "value"} else value


def _bits(length: int, value: Any) -> str:
    """Return bits as PostgreSQL writes a `bit(n)`; they come as little-endian bytes."""
    if length > _MOST_BITS:
        raise ValueError("too many bits")
    return f"{int.from_bytes(_bytes(value), 'little'):0{length}b}"


def _moment_with_zone(value: Any) -> Any:
    """Return a moment of ISO 8601 whose year has a sign as PostgreSQL writes it: the year -0043 is 44 BC."""
    signed = _SIGNED_YEAR.fullmatch(value)
    if signed is None:
        return value
    sign, year, rest = signed.groups()
    return f"{year}{rest}" if sign == "+" else f"{int(year) + 1:04d}{rest} BC"


def _clock(digits: int, value: Any) -> str:
    microseconds, finer = divmod(whole_number(value) * _MICROSECONDS, 10**digits)
    if finer or not 0 <= microseconds <= _DAY_MICROSECONDS:
        raise ValueError("no time of a day that PostgreSQL has")
    return time_text(microseconds)


def _in_utc(value: Any) -> str:
    """Return a time in UTC as PostgreSQL writes a `timetz`."""
    return f"{value.removesuffix('Z')}+00" if value.endswith("Z") else str(value)


def _without_zone(value: Any) -> str:
    return str(value.removesuffix("Z"))


def _constant(convert: Convert) -> Callable[[Mapping[str, Any]], Convert]:
    return lambda _: convert


def _with_number(convert: Callable[[int, Any], Any], parameter: str) -> Callable[[Mapping[str, Any]], Convert]:
    """Return what makes a conversion by a number among the schema's parameters."""
    return lambda parameters: lambda value: convert(int(parameters[parameter]), value)


_MOMENTS = {
    f"{_CONNECT}Timestamp": _MILLI,
    f"{_TIME}Timestamp": _MILLI,
    f"{_TIME}MicroTimestamp": _MICRO,
    f"{_TIME}NanoTimestamp": _NANO,
}
_NAMED: Mapping[str, Callable[[Mapping[str, Any]], Convert]] = {
    **{name: _constant(partial(counted_moment, digits)) for name, digits in _MOMENTS.items()},
    _DECIMAL: _with_number(_decimal, "scale"),
    f"{_CONNECT}Date": _constant(counted_day),
    f"{_CONNECT}Time": _constant(partial(_clock, _MILLI)),
    f"{_TIME}Date": _constant(counted_day),
    f"{_TIME}Time": _constant(partial(_clock, _MILLI)),
    f"{_TIME}MicroTime": _constant(partial(_clock, _MICRO)),
    f"{_TIME}NanoTime": _constant(partial(_clock, _NANO)),
    f"{_TIME}ZonedTimestamp": _constant(_moment_with_zone),
    f"{_TIME}ZonedTime": _constant(_in_utc),
    f"{_TIME}IsoTime": _constant(_without_zone),
    f"{_DATA}VariableScaleDecimal": _constant(_scaled_decimal),
    f"{_DATA}Bits": _with_number(_bits, "length"),
}
