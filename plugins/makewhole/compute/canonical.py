"""Render compared columns as canonical text of their declared types: equal values give equal text on every system.

PostgreSQL itself renders a table's column (`postgres/read/expressions.py`); this module renders JSON values. Null stays
null. A value that its declared type cannot hold keeps its own text behind `!`, so that it can only equal itself.

JSON has no NaN and no infinity. The texts that PostgreSQL and its JSON write for them are these values.
"""

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from ipaddress import IPv4Address, IPv6Address
from math import isinf
from typing import Any

import numpy as np
import polars as pl
import polars_hash as plh

from makewhole.compute.moments import (
    ENDLESS,
    MICROSECOND_DIGITS,
    day_of,
    microseconds_of,
    rounded_microseconds,
    time_of,
)
from makewhole.compute.numbers import MOST_DIGITS, NOT_FINITE, exact_number, filtered_number, is_count
from makewhole.compute.numbers import plain_text as plain_text
from makewhole.compute.structures import array_text, json_text, parts_text, written_json

ARRAY = "[]"
"""The end of the type of an array, behind that of its elements."""
FLOATING = ("double", "real")
"""Types of floating-point numbers. `real`, of four bytes, is of no file: of columns where tables hold such alone."""
PARTS = "parts"
"""The type of a column that has parts, or moments inside lists: JSON by the values of its parts."""
COUNT, FILTERED = "a count", "a filtered number"
"""Types of no column: of a number that counts in a unit, and of one as a filter reads it, which is never rounded."""
_EXACT = Context(prec=MOST_DIGITS + 100)
_DECIMAL = re.compile(r"decimal\(\s*\d+\s*,\s*(\d+)\s*\)")
_MOMENT = re.compile(r"timestamp(?:\(([0-6])\))?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_LEAST_PLAIN, _PAST_PLAIN = 1e-3, 1e15  # of doubles whose texts have no exponent
_PAST_REALS = float(2**128 - 2**103)  # and what is as large is rounded to infinity
_PAIR = "[0-9a-fA-F]{2}"
_MACADDR = re.compile(
    f"{_PAIR}(:{_PAIR}){{5}}|{_PAIR}(-{_PAIR}){{5}}|({_PAIR}){{3}}[:-]({_PAIR}){{3}}|({_PAIR}){{6}}"
    f"|({_PAIR}){{2}}[.-]({_PAIR}){{2}}[.-]({_PAIR}){{2}}"
)
_OCTET, _GROUP = "(25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})", "[0-9a-fA-F]{1,4}"
_IN_IPV6 = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(\.(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}"
_IPV6 = "|".join(
    [
        f"({_GROUP}:){{7}}{_GROUP}",
        f"({_GROUP}:){{6}}{_IN_IPV6}",
        *(f"{_GROUP}(:{_GROUP}){{{n - 1}}}::({_GROUP}(:{_GROUP}){{0,{6 - n}}})?" for n in range(1, 7)),
        f"{_GROUP}(:{_GROUP}){{6}}::",
        f"::({_GROUP}(:{_GROUP}){{0,6}})?",
        *(f"{_GROUP}(:{_GROUP}){{{n - 1}}}::({_GROUP}:){{0,{5 - n}}}{_IN_IPV6}" for n in range(1, 6)),
        f"::({_GROUP}:){{0,5}}{_IN_IPV6}",
    ]
)
ADDRESS_PATTERN = rf"{_OCTET}(\.{_OCTET}){{3}}(/0?(3[0-2]|[12]?[0-9]))?|({_IPV6})(/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))?"
"""Texts that are network addresses, for Python and PostgreSQL alike."""
PLAIN_ADDRESS_PATTERN = _IN_IPV6
"""Texts that are written as PostgreSQL writes an address."""
_ADDRESS, _PLAIN_ADDRESS = re.compile(ADDRESS_PATTERN), re.compile(PLAIN_ADDRESS_PATTERN)
_TRUE, _FALSE = ("true", "t", "yes", "y", "on", "1"), ("false", "f", "no", "n", "off", "0")


def decimal_scale(declared: str) -> int | None:
    """Return the scale of `decimal(p,s)`; None for any other type."""
    match = _DECIMAL.fullmatch(declared.strip().lower())
    return int(match[1]) if match else None


def moment_digits(declared: str) -> int | None:
    """Return the digits of a second that count in `timestamp`, or in `timestamp(p)`; None for any other type."""
    match = _MOMENT.fullmatch(declared.strip().lower())
    return None if match is None else int(match[1] or MICROSECOND_DIGITS)


def canonical_text(value: Any, declared: str) -> str | None:
    """Render one decoded JSON value (numbers as int or Decimal) as canonical text of its declared type."""
    if value is None:
        return None
    try:
        text = _renderer(declared)(value)
        if text is not None:
            text.encode()
        return text
    except (ValueError, TypeError, InvalidOperation, OverflowError, RecursionError):
        return "!" + ascii(_as_text(value))


def _as_text(value: Any) -> Any:
    """Return what a column of texts would hold of a value, so that it equals itself there and in another topic."""
    try:
        return written_json(value) if isinstance(value, dict | list) else _string(value)
    except (TypeError, RecursionError):
        return value


def column_text(text: str | None, declared: str) -> str | None:
    """Return the canonical text of what a column holds, from what a statement gives for it.

    What PostgreSQL does not render itself comes as its own output behind `!`, and is read as a record's text is: so a
    value has one text on both sides, and a text that is no value of its type stops no statement.
    """
    if text is None:
        return None
    if declared in FLOATING and not text.startswith("!"):
        return canonical_text(text, declared)
    return canonical_text(text[1:], declared) if text.startswith("!") and not is_own_text(declared) else text


def is_own_text(declared: str) -> bool:
    """Return whether the canonical text of a type is any text as it is, so that `!` at its beginning is its own."""
    return declared in ("string", "char")


def _renderer(declared: str) -> Callable[[Any], str | None]:
    if declared.endswith(ARRAY):
        element = declared.removesuffix(ARRAY)
        return lambda value: array_text(value, lambda item: canonical_text(item, element))
    scale = decimal_scale(declared)
    if scale is not None:
        return lambda value: _as_not_finite(value) or _decimal(value, scale)
    digits = moment_digits(declared)
    if digits is not None:
        return lambda value: _timestamp(value, digits)
    return _RENDERERS[declared.strip().lower()]


def _as_not_finite(value: Any) -> str | None:
    return value if isinstance(value, str) and value in NOT_FINITE else None


def _decimal(value: Any, scale: int) -> str:
    exact = exact_number(value)
    if exact and exact.adjusted() > MOST_DIGITS:
        raise ValueError("too many digits")
    number = exact.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_EXACT)
    return format(abs(number) if number == 0 else number, "f")


def _integer(value: Any) -> str:
    """Render a number by its value: one with a fraction has it, as it has in a column, and equals only itself."""
    if (text := _as_not_finite(value)) is not None:
        return text
    return plain_text(exact_number(value))


def _count(value: Any) -> str:
    if isinstance(value, str) and not is_count(value):
        raise ValueError("not a count")
    return _integer(value)


def _filtered(value: Any) -> str:
    number = filtered_number(value)
    if isinstance(number, str):
        return number
    try:
        return plain_text(number)
    except ValueError:
        return str(number)


def plain_texts(texts: pl.Series) -> pl.Series:
    """Return the texts of numbers without exponent as `plain_text` has them: without the zeros that end a fraction."""
    whole = pl.col(texts.name).str.strip_chars_end("0").str.strip_chars_end(".")
    has_fraction = pl.col(texts.name).str.contains(".", literal=True)
    return texts.to_frame().select(pl.when(has_fraction).then(whole).otherwise(pl.col(texts.name))).to_series()


def _double(value: Any) -> str:
    return float_text(_float(value))


def _real(value: Any) -> str:
    number = _float(value)
    if abs(number) >= _PAST_REALS and not isinf(number):
        raise OverflowError("no real is so large")
    return float_text(float(str(np.float32(number))))


def _float(value: Any) -> float:
    if (text := _as_not_finite(value)) is not None:
        return float(text)
    number = float(exact_number(value))
    if isinf(number):
        raise OverflowError("no double is so large")
    return number


def float_text(value: float) -> str:
    """Return the shortest text that parses to this double; zero has no sign."""
    return repr(value + 0.0 if value else 0.0)


def float_texts(numbers: pl.Series, declared: str) -> pl.Series | None:
    """Return the texts of doubles in a type of `FLOATING`, those without an exponent all at once; null stays null.

    None: one is too large for the type.
    """
    if declared == "real":
        if ((numbers.abs() >= _PAST_REALS) & numbers.is_finite()).any():
            return None
        numbers = numbers.cast(pl.Float32).cast(pl.String).cast(pl.Float64)
    unsigned_zero = pl.when(pl.col("n") == 0).then(0.0).otherwise(pl.col("n"))
    positive = numbers.to_frame("n").select(unsigned_zero).to_series()
    sizes = positive.abs()
    is_plain = ((sizes == 0) | ((sizes >= _LEAST_PLAIN) & (sizes < _PAST_PLAIN))).fill_null(True)
    texts = positive.cast(pl.String)
    left = (~is_plain).arg_true()
    if not len(left):
        return texts
    return texts.scatter(left, [float_text(number) for number in positive.gather(left)])


def _boolean(value: Any) -> str:
    """Render true and false in the words that PostgreSQL reads."""
    if not isinstance(value, bool | int | str | Decimal):
        raise TypeError("not a boolean")
    word = str(value).strip().lower()
    if word in _TRUE:
        return "true"
    if word in _FALSE:
        return "false"
    raise ValueError("not a boolean")


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() and abs(value.adjusted()) < MOST_DIGITS else str(value)
    raise TypeError("not a string")


def _char(value: Any) -> str:
    return _string(value).rstrip(" ")


def _uuid(value: Any) -> str:
    if not _UUID.fullmatch(value):
        raise ValueError("not a UUID")
    digits = value.replace("-", "").lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _macaddr(value: Any) -> str:
    if not isinstance(value, str) or not _MACADDR.fullmatch(value):
        raise ValueError("no address of a device")
    digits = re.sub("[-:.]", "", value).lower()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))


def address_text(text: str) -> str:
    """Return a network address as PostgreSQL's `inet` writes it: without the mask that leaves one host.

    Raises:
        ValueError: it is none.
    """
    if _PLAIN_ADDRESS.fullmatch(text):
        return text
    if not _ADDRESS.fullmatch(text):
        raise ValueError("no network address")
    host, _, mask = text.partition("/")
    is_long = ":" in host
    written = _ipv6_text(IPv6Address(host)) if is_long else ".".join(str(int(octet)) for octet in host.split("."))
    return written if not mask or int(mask) == (128 if is_long else 32) else f"{written}/{int(mask)}"


def _ipv6_text(address: IPv6Address) -> str:
    """Return an address as PostgreSQL writes it: the last four bytes as those of IPv4 where they stand for one."""
    number = int(address)
    is_mapped = number >> 32 == 0xFFFF
    if is_mapped or 1 << 16 <= number < 1 << 32:
        return f"::{'ffff:' if is_mapped else ''}{IPv4Address(number & 0xFFFFFFFF)}"
    return str(address)


def _timestamp(value: Any, digits: int) -> str:
    """Render microseconds since 1970 in UTC, rounded to so many digits of a second."""
    if value in ENDLESS:
        return f"!{value}"
    if not isinstance(value, str):
        raise TypeError("not a moment")
    return str(rounded_microseconds(microseconds_of(value), digits))


def _date(value: Any) -> str:
    if value in ENDLESS:
        return f"!{value}"
    if not isinstance(value, str):
        raise TypeError("not a day")
    return day_of(value)


_RENDERERS: dict[str, Callable[[Any], str | None]] = {
    "string": _string,
    "char": _char,
    "int": _integer,
    "bigint": _integer,
    "double": _double,
    "real": _real,
    "boolean": _boolean,
    "date": _date,
    "time": lambda value: time_of(_string(value)),
    "macaddr": _macaddr,
    "uuid": _uuid,
    "inet": lambda value: address_text(_string(value)),
    "json": json_text,
    PARTS: parts_text,
    COUNT: _count,
    FILTERED: _filtered,
}


_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying loses nothing
_NULL_HASH = 0x6D616B6577686F6C  # of no text more than of any other
_SHIFTS = (np.uint64(29), np.uint64(32))


def with_row_hash(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Add `row_hash`: the xxh3-64 of the canonical text of each compared column, mixed into one in their order.

    No step loses anything of either side. So where one column differs the hashes of rows differ if those of its texts
    do, and null is not the empty text.
    """
    if not columns:
        return frame.with_columns(pl.lit(0, dtype=pl.UInt64).alias("row_hash"))
    hashes = frame.select(plh.col(name).nchash.xxh3_64().fill_null(_NULL_HASH) for name in columns)
    mixed = np.zeros(len(frame), dtype=np.uint64)
    for column in hashes:
        mixed = (mixed ^ (mixed >> _SHIFTS[0])) * _FACTOR + column.to_numpy()
    mixed = (mixed ^ (mixed >> _SHIFTS[1])) * _FACTOR
    return frame.with_columns(pl.Series("row_hash", mixed ^ (mixed >> _SHIFTS[0]), dtype=pl.UInt64))
