"""Turn values of JSON into what columns of Arrow hold, as `makewhole.datasets.nested_values.array_of` takes them."""

import json
import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isinf
from typing import Any

import numpy as np
import pyarrow as pa

from makewhole.compute.canonical import canonical_text
from makewhole.datasets.arrow_types import ColumnType
from makewhole.datasets.column_types import is_bytes, is_list, is_uuid

_DAY_MS = 86_400_000
_FLOATS: Mapping[int, tuple[Any, Any]] = {
    16: (np.float16, np.uint16),
    32: (np.float32, np.uint32),
    64: (np.float64, np.uint64),
}
"""The numbers of so many bits, and those that have their bits."""
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = date(1970, 1, 1)
_CLOCK = re.compile(r"(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?", re.ASCII)


def exact_value(value: Any, kind: ColumnType) -> Any:
    """Return a JSON value with exact numbers as a column of a type holds it.

    Raises:
        ValueError: it does not hold it.
    """
    if value is None:
        return None
    if pa.types.is_dictionary(kind):
        return exact_value(value, kind.value_type)
    if pa.types.is_struct(kind):
        return _parts(_json(value, dict), kind)
    if pa.types.is_map(kind):
        pairs = _json(value, dict).items()
        return [{"key": exact_value(k, kind.key_type), "value": exact_value(v, kind.item_type)} for k, v in pairs]
    if is_list(kind):
        return [exact_value(item, kind.value_type) for item in _json(value, list)]
    try:
        return _scalar(value, kind)
    except (ArithmeticError, TypeError, struct.error) as error:
        raise ValueError("no value of its type") from error


def _parts(value: Mapping[str, Any], kind: ColumnType) -> dict[str, Any]:
    unknown = {name for name, inner in value.items() if inner is not None} - {part.name for part in kind}
    if unknown:
        raise ValueError("it has parts that the column does not have")
    return {part.name: exact_value(value.get(part.name), part.type) for part in kind}


def _json(value: Any, wanted: type) -> Any:
    parsed = json.loads(value, parse_float=Decimal) if isinstance(value, str) else value
    if not isinstance(parsed, wanted):
        raise ValueError("no value of its type")
    return parsed


def _scalar(value: Any, kind: ColumnType) -> Any:
    number = next((convert for is_of, convert in _NUMBERS if is_of(kind)), None)
    if number is not None:
        return number(value, kind)
    if pa.types.is_boolean(kind):
        return _canonical(value, "boolean") == "true"
    if is_uuid(kind):
        return _canonical(value, "uuid").replace("-", "")
    if pa.types.is_timestamp(kind):
        return _moment(value, kind)
    if pa.types.is_date(kind):
        days = (date.fromisoformat(_canonical(value, "date")) - _EPOCH).days
        return days * _DAY_MS if pa.types.is_date64(kind) else days
    if pa.types.is_time(kind):
        return _time(value, kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return canonical_text(value, "json" if isinstance(value, dict | list) else "string")
    if is_bytes(kind) and isinstance(value, str) and value.startswith("\\x"):
        return bytes.fromhex(value[2:]).hex()
    raise ValueError("no value of its type")


def _canonical(value: Any, declared: str) -> str:
    text = canonical_text(value, declared)
    if text is None or text.startswith("!"):
        raise ValueError("no value of its type")
    return text


def _integer(value: Any, kind: ColumnType) -> int:
    number = int(_canonical(value, "int"))  # a fraction is none
    pa.scalar(number, kind)  # within its range
    return number


def _decimal(value: Any, kind: ColumnType) -> str:
    text = _canonical(value, f"decimal({kind.precision},{kind.scale})")
    if len(Decimal(text).as_tuple().digits) > kind.precision:
        raise ValueError("too many digits")
    return text


def _bits(value: Any, kind: ColumnType) -> int:
    number = float(_canonical(value, "double"))
    own, bits = _FLOATS[kind.bit_width]
    with np.errstate(over="ignore"):
        held = own(number)
    if np.isinf(held) and not isinf(number):
        raise ValueError("too large")
    return int(held.view(bits))


_NUMBERS: tuple[tuple[Callable[[ColumnType], bool], Callable[[Any, ColumnType], Any]], ...] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_floating, _bits),
)


def _moment(value: Any, kind: ColumnType) -> int:
    number, finer = divmod(int(_canonical(value, "timestamp")) * _PER_SECOND[kind.unit], 1_000_000)
    if finer:
        raise ValueError("finer than the column")
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("64 bits do not hold it")
    return number


def _time(value: Any, kind: ColumnType) -> int:
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("no time")
    clock, fraction = time.fromisoformat(match[1]), Decimal(f"0.{match[2] or 0}")
    seconds = (clock.hour * 60 + clock.minute) * 60 + clock.second
    number = (seconds + fraction) * _PER_SECOND[kind.unit]
    if number != int(number):
        raise ValueError("finer than the column")
    return int(number)


def exact_now(kind: ColumnType) -> Any:
    """Return the moment of now as a column of a type holds it."""
    now = datetime.now(UTC)
    is_coarse = pa.types.is_timestamp(kind) and kind.unit in ("s", "ms")
    return exact_value((now.replace(microsecond=0) if is_coarse else now).isoformat(), kind)
